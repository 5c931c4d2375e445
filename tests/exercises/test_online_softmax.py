"""Softmax in blocks: how far a right kernel's result may lie from the exact one, and what is said of wrong ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grader import falling, leading, normal
from grader.course.folder import Folder, load_test_file
from grader.explain.verdict import FAIL, PASS, Verdict
from grader.numerics.layouts import repeated
from tests.conftest import ROOT, mutant

ID = "13_online_softmax"
SOLUTION = (ROOT / "solutions" / ID / "online_softmax.py").read_text()


def judged(bench, old: str, new: str, *data, **constants) -> Verdict:
    """Of the solution with one change."""
    assert SOLUTION.count(old) == 1
    return bench(SOLUTION.replace(old, new), ID).check(*data, **constants)


def test_many_iterations_along_a_row_that_rises_slowly_are_paid_for(bench):
    """Each iteration rescales the sum, by a factor just below 1: the errors of all have one sign."""
    data = falling(1, 20000) * -0.0005
    assert bench(SOLUTION, ID).check(data, BLOCK_N=64, dtypes=("float32",)).outcome == PASS
    half = bench(mutant(f"{ID}/half_exponentials"), ID).check(data, dtypes=("float32",))
    assert half.outcome == FAIL


def test_the_rounding_is_that_of_softmax_and_grows_with_the_row():
    rounding = load_test_file(Folder(ROOT / "exercises" / ID)).rounding

    def factor(columns: int) -> float:
        x = torch.zeros(1, columns, dtype=torch.float64)
        ref = torch.softmax(x, dim=1)
        return float((rounding(ref, x) / ref).max()) * 2**24

    assert factor(256) == pytest.approx(20 + 4)
    assert factor(2560) == pytest.approx(20 + 40)


def test_a_store_that_stands_still_is_told_apart_from_a_mask_that_leaves_columns_out(bench):
    still = bench(mutant(f"{ID}/second_pass_stands_still"), ID).check(normal(4, 10000))
    assert still.id == "unwritten" and "the store does not move with the loop" in still.lines[0]
    masked = judged(bench, "/ total, mask=cols < N)", "/ total, mask=cols < N - 1)", normal(4, 10000))
    assert masked.lines[0] == "The last column of z is never written: the mask or the block leaves it out."


def test_a_stand_in_is_said_to_be_kept_only_where_nothing_else_does_harm(bench):
    """Until blocks of -inf, and numbers far below 0, were right by themselves, either may be the reason."""
    hole = leading(float("-inf"), normal(2, 9000) - 200)
    judged = bench(mutant(f"{ID}/stand_in_kept"), ID)
    assert judged.check(hole).id != "stand-in-kept"
    for data in (leading(float("-inf"), normal(2, 9000)), normal(2, 300) - 200):
        assert judged.check(data).outcome == PASS
    assert judged.check(hole).id == "stand-in-kept"


def test_a_loop_that_ends_too_early_is_not_told_from_a_block_of_minus_infinity_alone(bench):
    """What is left of such a block is inf and NaN, and other mistakes give that too."""
    judged = bench(mutant(f"{ID}/maximum_forgotten"), ID)
    assert judged.check(leading(float("-inf"), normal(2, 9000))).id != "blocks-left-out"


def test_a_loop_that_ends_too_early_is_told_where_all_columns_are_alike(bench):
    """All elements of z are the same number there, and each end of the loop gives another."""
    judged = bench(mutant(f"{ID}/stops_at_32768"), ID)
    alike = replace(normal(1, 37654), layout=repeated(1))
    verdict = judged.check(alike, dtypes=("float32",))
    assert verdict.id == "blocks-left-out" and verdict.lines[0].startswith("Only the first 32768 of 37654 columns")
