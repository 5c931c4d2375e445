"""Throughput over size in words: rates, shares, and what is said where something was not measured."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from grader.show.curves import Curves, number_text, rate_text, shape_text


def curves(**rates: list[float | None]) -> Curves:
    sizes = [1024 << place for place in range(len(rates["yours"]))]
    return Curves("01_masked_add", "a GPU", 60 << 20, "n elements, fp32", "GB/s", "copy", sizes, rates)


@pytest.mark.parametrize(
    ("rate", "text"),
    [(None, "not measured"), (4173.4, "4 173 GB/s"), (1234567, "1 234 567 GB/s"), (99.7, "100 GB/s"),
     (10, "10 GB/s"), (9.96, "10 GB/s"), (0.123, "0.12 GB/s"), (0, "0 GB/s")],
)  # fmt: skip
def test_a_rate_has_as_many_digits_as_it_is_worth(rate, text):
    assert rate_text(rate, "GB/s") == text


def test_digits_stand_in_threes():
    assert (number_text(999), number_text(1024), number_text(134217728)) == ("999", "1 024", "134 217 728")


@pytest.mark.parametrize(
    ("shape", "text"), [((7,), "n elements"), ((7, 4096), "n x 4096"), ((7, 7), "n x n"), ((8, 3, 8), "n x 3 x n")]
)
def test_a_shape_is_told_with_n_for_its_first_axis(shape, text):
    assert shape_text(SimpleNamespace(shape=shape)) == text


def test_a_share_is_of_the_ceiling_and_none_without_both():
    one = curves(yours=[1.0, None, 3.0, 0.0], copy=[4.0, 4.0, None, 4.0])
    assert [one.share("yours", place) for place in range(4)] == [0.25, None, None, None]
    assert one.highest == 4.0 and one.kernels == ["yours"]
    assert curves(yours=[None], copy=[None]).highest == 0.0


def test_the_summary_tells_the_largest_size_and_its_gaps():
    one = curves(yours=[1.0, None], solution=[1.0, 20.0], copy=[1.0, 4260.0])
    assert one.summary == "At n = 2 048: yours not measured, solution 20 GB/s, copy 4 260 GB/s."
    assert curves(yours=[], copy=[]).summary == "Nothing was measured."


def test_medals_ask_for_a_solution_that_was_timed_at_the_largest_size():
    assert curves(yours=[90.0], solution=[100.0], copy=[120.0]).medal_rates == {"silver": 90.0, "gold": 97.0}
    for without in (curves(yours=[9.0], copy=[9.0]), curves(yours=[9.0, 9.0], solution=[9.0, None], copy=[9.0, 9.0])):
        assert without.medal_rates == {} and without.medals_told == ""


def test_the_caption_says_what_was_timed_and_what_was_flushed():
    assert curves(yours=[1.0], copy=[1.0]).caption.startswith("The first argument is n elements, fp32. Each figure is")
    assert "the L2 cache (60 MiB) was flushed" in curves(yours=[1.0], copy=[1.0]).caption
