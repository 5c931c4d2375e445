"""Beginners' lanes: what is said of them is true of the number that is multiplied, or of the block that is too."""

from __future__ import annotations

import pytest

from grader import normal
from tests.explain.first_mistakes import told

ADD, SUM = ("01_masked_add", (normal(1024), normal(1024))), ("07_row_sum", (normal(12, 3000),))
LANES = "offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)"
ONE_EACH = "Each program writes one element of z, and a grid of 1 program is enough for blocks of 1024: all lanes of a"

# The exercise and its arguments, the change, the beginning of the first sentence.
MISTAKES = {
    "lanes are multiplied too": (ADD, (LANES, "offsets = (tl.program_id(0) + tl.arange(0, BLOCK_N)) * BLOCK_N"), ""),
    "lanes alone are multiplied": (ADD, (LANES, "offsets = tl.program_id(0) * tl.arange(0, BLOCK_N)"), ONE_EACH),
    "the row in the place of the block": (SUM, ("cols = start + ", "cols = row + "), ""),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_blocks_are_called_1_apart_only_where_they_are(bench, name):
    (id, data), change, said = MISTAKES[name]
    first, _ = told(bench, id, (change,), data, {})
    assert first.startswith(said) and "begin 1 apart" not in first, first


def test_of_a_kernel_that_stores_one_value_no_lanes_are_told(bench):
    """A sum of a row has lanes, and none of them leads to z."""
    grid = ("(M,)", "(triton.cdiv(N, BLOCK_N),)")
    first, _ = told(bench, "07_row_sum", (grid,), (normal(12, 2048),), {})
    assert first == "The end of z is not covered by a grid of 1 program, which writes one element."
