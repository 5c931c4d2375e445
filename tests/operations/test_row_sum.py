"""Sums along rows: what is said of loops whose turns begin less than a block apart."""

from __future__ import annotations

import pytest

from grader import integers, normal
from grader.explain.verdict import FAIL, PASS
from grader.operations.mistakes.turns import times_counted
from tests.conftest import ROOT

EXERCISES = {"07_row_sum": "Columns count several times: the loop", "13_online_softmax": "in the sum: the first loop"}


def source(exercise: str, loop: str) -> str:
    """Of the solution, with this as its first loop."""
    text = (ROOT / "solutions" / exercise / f"{exercise[3:]}.py").read_text()
    assert "range(0, N, BLOCK_N)" in text
    return text.replace("range(0, N, BLOCK_N)", loop, 1)


@pytest.mark.parametrize(("columns", "step", "apart"), [(10, 4, 1), (10, 4, 2), (17, 8, 4), (5, 8, 1), (8, 8, 4)])
def test_columns_are_counted_as_turns_would_add_them(columns, step, apart):
    times = [0] * columns
    for start in range(0, columns, apart):
        for column in range(start, min(start + step, columns)):
            times[column] += 1
    assert times_counted(columns, step, apart).tolist() == times


@pytest.mark.parametrize("exercise", EXERCISES)
@pytest.mark.parametrize(
    ("loop", "columns", "told"),
    [
        ("range(N)", 64, "makes 64 turns for 64 columns in blocks of 64, and 1 is enough"),
        ("range(N)", 200, "makes 200 turns for 200 columns in blocks of 64, and 4 are enough"),
        ("range(0, N, BLOCK_N // 2)", 200, "makes 7 turns for 200 columns in blocks of 64, and 4 are enough"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_turns_that_begin_less_than_a_block_apart_are_counted(bench, exercise, loop, columns, told, dtype):
    verdict = bench(source(exercise, loop), exercise).check(normal(12, columns), BLOCK_N=64, dtypes=(dtype,))
    apart = 1 if loop == "range(N)" else 32
    counted = next((line for line in verdict.lines if f"{EXERCISES[exercise]} {told}" in line), "")
    assert verdict.id == "no-advance" and counted, verdict.lines
    assert counted.endswith(f"Let its range step by BLOCK_N = 64, and not by {apart}.")


def test_whole_numbers_tell_it_too(bench):
    judged = bench(source("07_row_sum", "range(N)"), "07_row_sum")
    verdict = judged.check(integers(12, 200), bound="exact", BLOCK_N=64, dtypes=("float32",))
    assert "makes 200 turns for 200 columns" in " ".join(verdict.lines)


def test_other_wrong_loops_are_not_taken_for_it(bench):
    for loop in ("range(0, N, 2 * BLOCK_N)", "range(0, N - 1, BLOCK_N)", "range(0, 2 * N, BLOCK_N)"):
        verdict = bench(source("07_row_sum", loop), "07_row_sum").check(normal(12, 193), BLOCK_N=64)
        assert verdict.outcome == (PASS if "2 * N" in loop else FAIL)
        assert not any("Columns count several times" in line for line in verdict.lines)
