"""What beginners write first in 02, where tiles have two axes: the sentence and the line it sends to."""

from __future__ import annotations

import pytest

from grader import normal, output
from grader.explain.verdict import PASS
from tests.conftest import ROOT
from tests.explain.first_mistakes import told

# ---- 02_strided_blocks -----------------------------------------------------------------------------------------------

ROWS = "rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]  # [BLOCK_M, 1]"
COLS = "cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]  # [1, BLOCK_N]"
LOAD = "tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)"
STORE = "tl.store(z_ptr + rows * stride_zm + cols * stride_zn, tile, mask=mask)"
MASK = "mask = (rows < M) & (cols < N)"
GRID = "grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))"
LAUNCH = "strided_copy_kernel[grid]("

# The call that is judged: data, and block sizes.
OF_COPIES_CALLS = {
    "": ((normal(20, 24), output(20, 24)), dict(BLOCK_M=16, BLOCK_N=32)),
    "square": ((normal(20, 24), output(20, 24)), dict(BLOCK_M=16, BLOCK_N=16)),
}

OF_COPIES = {
    "no none at all": (
        (
            (ROWS, "rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)"),
            (COLS, "cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)"),
        ),
        "Tiles of different shapes meet in line 17: along axis 0 they have 16 and 32 elements. A column of",
        "mask = (rows < M) & (cols < N)",
    ),
    "no none at all, square": (
        (
            (ROWS, "rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)"),
            (COLS, "cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)"),
        ),
        "Each program writes one element of each row and each column of its tile of z: its rows and columns",
        "",
        "square",
    ),
    "forgot none in rows": (
        ((ROWS, "rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)"),),
        "Tiles of different shapes meet in line 17: along axis 1 they have 16 and 32 elements. A column of",
        "mask = (rows < M) & (cols < N)",
    ),
    "both stand up": (
        ((COLS, "cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[:, None]"),),
        "Tiles of different shapes meet in line 17: along axis 0 they have 16 and 32 elements. A column of",
        "mask = (rows < M) & (cols < N)",
    ),
    "np.newaxis": (
        ((COLS, "cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[np.newaxis, :]"),),
        "Line 16: .newaxis is not allowed in a kernel. In a kernel it is None, as in x[:, None].",
        "cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[np.newaxis, :]",
    ),
    "unsqueeze": (
        ((COLS, "cols = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)).unsqueeze(0)"),),
        "Line 16: .unsqueeze is not allowed in a kernel. In a kernel it is x[:, None] or x[None, :].",
        "cols = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)).unsqueeze(0)",
    ),
    "reshape(1,-1)": (
        ((COLS, "cols = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)).reshape(1, -1)"),),
        "The compiler refuses line 16: each size of a tile has to be a power of two, and -1 stands for none.",
        "cols = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)).reshape(1, -1)",
    ),
    "arange N": (
        ((COLS, "cols = tl.arange(0, N)[None, :]"),),
        "tl.arange needs sizes known at compile time: a tl.constexpr such as BLOCK_N (line 16). A block that",
        "cols = tl.arange(0, N)[None, :]",
    ),
    "arange one arg": (
        ((COLS, "cols = tl.program_id(0) * BLOCK_N + tl.arange(BLOCK_N)[None, :]"),),
        "The compiler refuses line 16: tl.arange lacks the argument end, as in tl.arange(0, BLOCK_N).",
        "cols = tl.program_id(0) * BLOCK_N + tl.arange(BLOCK_N)[None, :]",
    ),
    "arange start runtime": (
        ((COLS, "start = tl.program_id(0) * BLOCK_N\n    cols = tl.arange(start, start + BLOCK_N)[None, :]"),),
        "tl.arange needs sizes known at compile time: a tl.constexpr such as BLOCK_N (line 17). A block that",
        "cols = tl.arange(start, start + BLOCK_N)[None, :]",
    ),
    "mask without parens": (
        ((MASK, "mask = rows < M & cols < N"),),
        "Line 17: & binds more tightly than a comparison, so that rows < M & cols < N is not two",
        "mask = rows < M & cols < N",
    ),
    "mask chained": (
        ((MASK, "mask = 0 <= rows < M & (cols < N)"),),
        "Line 17: & binds more tightly than a comparison, so that 0 <= rows < M & (cols < N) is not two",
        "mask = 0 <= rows < M & (cols < N)",
    ),
    "mask one dim": (
        (("stride_xn, mask=mask", "stride_xn, mask=tl.arange(0, BLOCK_M) < M"),),
        "Tiles of different shapes meet in line 18: along axis 1 they have 32 and 16 elements. A column of",
        "tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=tl.arange(0, BLOCK_M) < M)",
    ),
    "x[rows, cols]": (
        ((LOAD, "tile = x_ptr[rows, cols]"),),
        "The compiler refuses line 18: x_ptr is an address and cannot be indexed: tl.load(x_ptr + offsets)",
        "tile = x_ptr[rows, cols]",
    ),
    "load twod": (
        ((LOAD, "tile = tl.load(x_ptr + rows, cols, mask=mask)"),),
        "The compiler refuses line 18: an argument stands where none belongs. Offsets are added to an address:",
        "tile = tl.load(x_ptr + rows, cols, mask=mask)",
    ),
    "misspelt mask": (
        ((LOAD, "tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, masks=mask)"),),
        "The compiler refuses line 18: tl.load has no argument masks. Is mask meant?",
        "tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, masks=mask)",
    ),
    "store argument order": (
        ((STORE, "tl.store(tile, z_ptr + rows * stride_zm + cols * stride_zn, mask=mask)"),),
        "tl.load and tl.store take pointers first, as x_ptr + offsets (line 19), and here numbers stand",
        "tl.store(tile, z_ptr + rows * stride_zm + cols * stride_zn, mask=mask)",
    ),
    "program_id(2)": (
        (("tl.program_id(1", "tl.program_id(2"),),
        "Programs overlap: the kernel uses tl.program_id(2), but the grid has 2 axes.",
        "rows = tl.program_id(2) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
    ),
    "program_id none": (
        (("tl.program_id(1", "tl.program_id("),),
        "The compiler refuses line 15: tl.program_id lacks the argument axis, as in tl.program_id(0).",
        "rows = tl.program_id() * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
    ),
    "program_id (0,1)": (
        ((ROWS, "i, j = tl.program_id(0, 1)\n    " + ROWS),),
        "The compiler refuses line 15: tl.program_id gets too many arguments: it takes axis.",
        "i, j = tl.program_id(0, 1)",
    ),
    "stride() in kernel": (
        (("stride_xm + cols * stride_xn,", "x_ptr.stride(0) + cols * x_ptr.stride(1),"),),
        "Line 18: .stride is not allowed in a kernel. In a kernel it is an argument of the kernel, as",
        "tile = tl.load(x_ptr + rows * x_ptr.stride(0) + cols * x_ptr.stride(1), mask=mask)",
    ),
    "forgot program": (
        ((ROWS, "rows = tl.program_id(1) + tl.arange(0, BLOCK_M)[:, None]"),),
        "Line 15 adds the number of a program to its lanes: blocks that follow each other begin 1 apart",
        "rows = tl.program_id(1) + tl.arange(0, BLOCK_M)[:, None]",
    ),
    "grid number": (
        ((GRID, "grid = triton.cdiv(N, BLOCK_N) * triton.cdiv(M, BLOCK_M)"),),
        "strided_copy raises TypeError in line 28: the grid must be a tuple, such as (n,): (n) without the comma is n.",
        "strided_copy_kernel[grid](",
    ),
    "grid tl.cdiv": (
        ((GRID, "grid = (tl.cdiv(N, BLOCK_N), tl.cdiv(M, BLOCK_M))"),),
        "Line 26 stands in a host function and calls tl.cdiv: there it is triton.cdiv.",
        "grid = (tl.cdiv(N, BLOCK_N), tl.cdiv(M, BLOCK_M))",
    ),
    "grid slash": (
        ((GRID, "grid = (N / BLOCK_N, M / BLOCK_M)"),),
        "strided_copy raises TypeError in line 28: the grid must hold whole numbers: triton.cdiv rounds up.",
        "strided_copy_kernel[grid](",
    ),
    "launch without grid": (
        ((LAUNCH, "strided_copy_kernel("),),
        "strided_copy_kernel is called in line 28 and not launched: a launch has a grid, as in",
        "strided_copy_kernel(",
    ),
    "strides times 4": (
        (("rows * stride_xm + cols * stride_xn,", "(rows * stride_xm + cols * stride_xn) * 4,"),),
        "The mask of the load in line 18 lets lanes outside of x through, past its last row. If the",
        "tile = tl.load(x_ptr + (rows * stride_xm + cols * stride_xn) * 4, mask=mask)",
    ),
    "return tile": (
        ((STORE, "return tile"),),
        "Nothing was written to z: the kernel has no tl.store, and a kernel gives its results in no other",
        "",
    ),
    "rows for loop": (
        (
            (
                "tl.store(z_ptr + rows * stride_zm + cols * stride_zn, tile, mask=mask",
                "for r in range(BLOCK_M):\n        tl.store(z_ptr + r * stride_zm, tile[r, 0]",
            ),
        ),
        "The compiler refuses line 20: an index picks no element of a tile: mask and reduce, as in",
        "tl.store(z_ptr + r * stride_zm, tile[r, 0])",
    ),
}


@pytest.mark.parametrize("name", OF_COPIES)
def test_a_first_mistake_in_a_strided_copy(bench, name):
    changes, said, line, *which = OF_COPIES[name]
    sentence, place = told(bench, "02_strided_blocks", changes, *OF_COPIES_CALLS["".join(which)])
    assert sentence.startswith(said) and place.startswith(line) and bool(place) == bool(line), (sentence, place)


def test_and_between_the_two_comparisons_of_a_mask_is_right(bench):
    text = (ROOT / "solutions/02_strided_blocks/strided_blocks.py").read_text(encoding="utf-8")
    assert text.count("(rows < M) & (cols < N)") == 1
    text = text.replace("(rows < M) & (cols < N)", "(rows < M) and (cols < N)")
    assert bench(text, "02_strided_blocks").check(normal(101, 153), output(101, 153)).outcome == PASS
