"""Beginners' mistakes that lead to wrong places: the sentence names what is to blame, and the line where it stands."""

from __future__ import annotations

import pytest

from grader import normal, output
from tests.explain.first_mistakes import told

MASK = "mask = (rows < M) & (cols < N)"
LINES = (
    ("tl.arange(0, BLOCK_M)[:, None]", "tl.arange(0, BLOCK_M)"),
    ("tl.arange(0, BLOCK_N)[None, :]", "tl.arange(0, BLOCK_N)"),
    ("x_ptr + rows * stride_xm + cols * stride_xn", "x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn"),
    ("z_ptr + rows * stride_zm + cols * stride_zn", "z_ptr + rows[:, None] * stride_zm + cols[None, :] * stride_zn"),
)
LOAD = "tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)"
STORE = "tl.store(z_ptr + rows * stride_zm + cols * stride_zn, tile, mask=mask)"
ROW_BY_ROW = """for i in range(BLOCK_M):
        row = tl.program_id(1) * BLOCK_M + i
        tile = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N)
        tl.store(z_ptr + row * stride_zm + cols * stride_zn, tile, mask=cols < N)"""
SQUARE = (normal(64, 64), output(64, 64)), dict(BLOCK_M=64, BLOCK_N=64)
AT_EDGES = (normal(101, 153), output(101, 153)), dict(BLOCK_M=64, BLOCK_N=64)
BOTH_AXES = (normal(1, 64), output(1, 64)), dict(BLOCK_M=64, BLOCK_N=64)

OF_COPIES = {
    "the strides are multiplied": (
        (LOAD, LOAD.replace("stride_xm + cols", "stride_xm * cols")), SQUARE,
        "The address of the load in line 18 leads outside of x, into which the first program's tile fits: no mask is",
    ),
    "offsets count bytes": (
        (LOAD, LOAD.replace("stride_xm", "stride_xm * 4")), SQUARE,
        "The address of the load in line 18 leads outside of x, into which the first program's tile fits: no mask is",
    ),
    "a mask that the tile does not fit": (
        (MASK, "mask = (rows < M) | (cols < N)"), BOTH_AXES, "The mask of the store in line 19 lets lanes outside of z",
    ),
    "half of the number": (
        ("tl.program_id(1) * BLOCK_M", "tl.program_id(1) // 2 * BLOCK_M"), AT_EDGES,
        "Programs overlap: two programs that differ along axis 1 alone write the same elements, and whichever",
    ),
    "a mask that compares the offset with the number of elements": (
        (MASK, "mask = rows * stride_zm + cols * stride_zn < M * N"), AT_EDGES,
        "Programs overlap: some lanes of two programs that differ along axis 0 alone write the same elements",
    ),
    "tiles longer than they are apart": (
        ("tl.program_id(0) * BLOCK_N", "tl.program_id(0) * (BLOCK_N // 2)"), AT_EDGES,
        "Programs overlap: some lanes of two programs that differ along axis 0 alone write the same elements",
    ),
    "a loop over rows without their limit": (
        (f"{LOAD}\n    {STORE}", ROW_BY_ROW), AT_EDGES,
        "The mask of the store in line 21 lets lanes outside of z through. In an iteration of the loop no lane is",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_COPIES)
def test_what_leads_astray_is_told(bench, name):
    change, (data, sizes), said = OF_COPIES[name]
    sentence, _ = told(bench, "02_strided_blocks", (change,), data, sizes)
    assert sentence.startswith(said)


def test_a_tile_that_a_loop_goes_on_to_is_no_first_tile(bench):
    """It lies past the end, whatever its first one does."""
    change = "mask=(start + k[:, None] < K) & (n[None, :] < N)", "mask=n[None, :] < N"
    data, sizes = (normal(64, 75), normal(75, 71)), dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
    sentence, _ = told(bench, "05_grouped_matmul", (change,), data, sizes)
    assert sentence.startswith("The mask of the load in line 36 lets lanes outside of b through")


def test_a_mask_of_two_lines_is_told(bench):
    sentence, line = told(bench, "02_strided_blocks", LINES, *AT_EDGES)
    assert sentence.startswith("The mask in line 17 is one line of lanes, and the tile has rows and columns: two lines")
    assert line == MASK


def test_a_mask_of_a_tile_is_not_blamed(bench):
    of_a_tile = (MASK, "mask = (rows < M)[:, None] & (cols <= N)[None, :]")
    sentence, _ = told(bench, "02_strided_blocks", (*LINES, of_a_tile), *AT_EDGES)
    assert sentence.startswith("The mask of the store in line 19 lets lanes outside of z through")


def test_the_line_that_asks_for_an_unused_number_is_where_to_edit(bench):
    unused = ("rows = tl.program_id(1) * BLOCK_M +", "pid_m = tl.program_id(1)\n    rows =")
    sentence, line = told(bench, "02_strided_blocks", (unused,), *AT_EDGES)
    assert sentence.startswith("Programs overlap: nothing in the kernel depends on tl.program_id(1)")
    assert line == "pid_m = tl.program_id(1)"
