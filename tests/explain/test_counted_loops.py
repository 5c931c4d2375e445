"""A loop that counts blocks where its body means places, or the other way round: what is told of it, and where."""

from __future__ import annotations

import pytest

from grader import normal
from tests.explain.first_mistakes import told

LOOP, COLUMNS = "for start in range(0, N, BLOCK_N):", "cols = start + lanes"

WRONG = {
    "blocks for places": (
        ((LOOP, "for start in range(0, tl.cdiv(N, BLOCK_N)):"),),
        "The loop in line 18 counts blocks, and line 19 takes start, the number of a block, for the place where it "
        "begins: blocks that follow each other begin 1 apart then. The number times the block size is that place.",
        COLUMNS,
    ),
    "the number of blocks has a name": (
        ((LOOP, "blocks = (N + BLOCK_N - 1) // BLOCK_N\n    for i in range(blocks):"), (COLUMNS, "cols = lanes + i")),
        "The loop in line 19 counts blocks, and line 20 takes i, the number of a block, for the place where it begins:",
        "cols = lanes + i",
    ),
    "the step is forgotten": (
        ((LOOP, "for start in range(0, N):"),),
        "The loop in line 18 counts start in steps of 1, and line 19 takes it for the place where a block begins: "
        "blocks that follow each other begin 1 apart then. Let range step by the block size.",
        "for start in range(0, N):",
    ),
    "places for blocks": (
        ((COLUMNS, "cols = start * BLOCK_N + lanes"),),
        "The loop in line 18 counts start in steps of BLOCK_N, so that it is the place where a block begins, and line "
        "19 takes it for the number of a block: times BLOCK_N, blocks begin too far apart.",
        "cols = start * BLOCK_N + lanes",
    ),
    "ends at the number of blocks": (
        ((LOOP, "for start in range(0, tl.cdiv(N, BLOCK_N), BLOCK_N):"),),
        "The loop in line 18 ends at the number of blocks, and counts start in steps of BLOCK_N, as places: it leaves "
        "blocks out. Let range go up to the size.",
        "for start in range(0, tl.cdiv(N, BLOCK_N), BLOCK_N):",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_loop_that_counts_something_else_than_its_body_means_is_told(bench, name):
    changes, said, line = WRONG[name]
    sentence, place = told(bench, "07_row_sum", changes, (normal(4, 1000),), dict(BLOCK_N=64))
    assert sentence.startswith(said) and place == line, (sentence, place)


def test_another_mistake_beside_a_loop_over_blocks_is_not_put_down_to_the_loop(bench):
    """Blocks that are counted and multiplied are right, an end that is rounded up to whole blocks is, and so is a loop
    that moves lanes by single places, as a convolution's does."""
    changes = (
        (LOOP, "for start in range(0, tl.cdiv(N, BLOCK_N) * BLOCK_N, BLOCK_N):"),
        ("tl.sum(partial, 0))", "tl.sum(partial, 0) + tl.program_id(0))"),
    )
    sentence, _ = told(bench, "07_row_sum", changes, (normal(4, 1000),), dict(BLOCK_N=64))
    assert "loop" not in sentence
    changes = (
        (LOOP, "for i in range(tl.cdiv(N, BLOCK_N)):"),
        (COLUMNS, "start = i * BLOCK_N\n        cols = start + lanes"),
        ("tl.sum(partial, 0))", "tl.sum(partial, 0) + tl.program_id(0))"),
    )
    sentence, _ = told(bench, "07_row_sum", changes, (normal(4, 1000),), dict(BLOCK_N=64))
    assert "loop" not in sentence
    changes = (
        (LOOP, "for start in range(0, N, BLOCK_N):\n      for tap in range(taps):"),
        (COLUMNS, "cols = start + (lanes + tap)"),
        ("stride_xn, BLOCK_N: tl.constexpr", "stride_xn, taps, BLOCK_N: tl.constexpr"),
        ("x.stride(1), BLOCK_N=BLOCK_N", "x.stride(1), 2, BLOCK_N=BLOCK_N"),
    )
    sentence, _ = told(bench, "07_row_sum", changes, (normal(4, 1000),), dict(BLOCK_N=64))
    assert "loop" not in sentence
