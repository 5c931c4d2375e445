"""What beginners write first in 04, where a tile is turned: the sentence and the line it sends to."""

from __future__ import annotations

import pytest

from grader import normal
from tests.conftest import ROOT
from tests.explain.first_mistakes import told

# ---- 04_transpose ----------------------------------------------------------------------------------------------------

M_ = "m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)"
XP = "x_ptrs = x_ptr + m[:, None] * stride_xm + n[None, :] * stride_xn  # [BLOCK_M, BLOCK_N]"
ZP = "z_ptrs = z_ptr + n[:, None] * stride_zn + m[None, :] * stride_zm  # [BLOCK_N, BLOCK_M]"
LOAD = "tile = tl.load(x_ptrs, mask=(m[:, None] < M) & (n[None, :] < N))"
STORE = "tl.store(z_ptrs, tl.trans(tile), mask=(n[:, None] < N) & (m[None, :] < M))"
ALLOC = "z = torch.empty((N, M), dtype=x.dtype, device=x.device)"
GRID = "grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))"

# The call that is judged: data, and block sizes.
OF_TRANSPOSES_CALLS = {
    "": ((normal(20, 40),), dict(BLOCK_M=16, BLOCK_N=32)),
    "square": ((normal(20, 40),), dict(BLOCK_M=32, BLOCK_N=32)),
    "own": ((normal(20, 40),), {}),
}

OF_TRANSPOSES = {
    "tile.t()": (
        (("tl.trans(tile)", "tile.t()"),),
        "Line 22: .t is not allowed in a kernel. In a kernel it is tl.trans(x).",
        "tl.store(z_ptrs, tile.t(), mask=(n[:, None] < N) & (m[None, :] < M))",
    ),
    "tl.transpose": (
        (("tl.trans(tile)", "tl.transpose(tile)"),),
        "Line 22: triton.language.transpose is not allowed in a kernel. In a kernel it is tl.trans(x).",
        "tl.store(z_ptrs, tl.transpose(tile), mask=(n[:, None] < N) & (m[None, :] < M))",
    ),
    "torch.transpose": (
        (("tl.trans(tile)", "torch.transpose(tile, 0, 1)"),),
        "Line 22: torch.transpose is not allowed in a kernel. In a kernel it is tl.trans(x).",
        "tl.store(z_ptrs, torch.transpose(tile, 0, 1), mask=(n[:, None] < N) & (m[None, :] < M))",
    ),
    "torch.empty in kernel": (
        ((STORE, "out = torch.empty((BLOCK_N, BLOCK_M))\n    " + STORE),),
        "Line 22: torch.empty is not allowed in a kernel. In a kernel it is tl.zeros(shape, dtype).",
        "out = torch.empty((BLOCK_N, BLOCK_M))",
    ),
    "trans of pointers": (
        ((STORE, "tl.store(tl.trans(z_ptrs), tile, mask=(n[:, None] < N) & (m[None, :] < M))"),),
        "Tiles of different shapes meet in line 22: along axis 0 they have 16 and 32 elements. A column of",
        "tl.store(tl.trans(z_ptrs), tile, mask=(n[:, None] < N) & (m[None, :] < M))",
    ),
    "trans of line": (
        (("+ n[None, :]", "+ tl.trans(n)"),),
        "The compiler refuses line 18: tl.trans invoked with a 0- or 1-dimensional tensor.",
        "x_ptrs = x_ptr + m[:, None] * stride_xm + tl.trans(n) * stride_xn",
    ),
    "trans twice": (
        ((LOAD, "tile = tl.trans(tl.load(x_ptrs, mask=(m[:, None] < M) & (n[None, :] < N)))"),),
        "Tiles of different shapes meet in line 22: along axis 0 they have 32 and 16 elements. A column of",
        "tl.store(z_ptrs, tl.trans(tile), mask=(n[:, None] < N) & (m[None, :] < M))",
    ),
    "trans unused square": (
        (("tl.store(z_ptrs, tl.trans(tile),", "tl.trans(tile)\n    tl.store(z_ptrs, tile,"),),
        "Line 22: tl.trans(tile) gives a new value and changes nothing, and the line keeps it nowhere.",
        "tl.trans(tile)",
        "square",
    ),
    "z no none": (
        ((ZP, "z_ptrs = z_ptr + n * stride_zn + m * stride_zm"),),
        "Tiles of different shapes meet in line 19: along axis 0 they have 32 and 16 elements. A column of",
        "z_ptrs = z_ptr + n * stride_zn + m * stride_zm",
    ),
    "x one none": (
        ((XP, "x_ptrs = x_ptr + m[:, None] * stride_xm + n[:, None] * stride_xn"),),
        "Tiles of different shapes meet in line 18: along axis 0 they have 16 and 32 elements. A column of",
        "x_ptrs = x_ptr + m[:, None] * stride_xm + n[:, None] * stride_xn",
    ),
    "mask missing paren": (
        ((LOAD, "tile = tl.load(x_ptrs, mask=m[:, None] < M & n[None, :] < N)"),),
        "Line 20: & binds more tightly than a comparison, so that m[:, None] < M & n[None, :] < N is not two",
        "tile = tl.load(x_ptrs, mask=m[:, None] < M & n[None, :] < N)",
    ),
    "empty_like": (
        ((ALLOC, "z = torch.empty_like(x)"),),
        "z has shape (20, 40); (40, 20) was expected.",
        "z = torch.empty_like(x)",
    ),
    "empty no dtype": (
        ((ALLOC, "z = torch.empty(N, M)"),),
        "Line 32: the argument z_ptr lies in the CPU's memory, where a GPU's kernel cannot reach it:",
        "transpose_kernel[grid](",
    ),
    "x.t() alloc": (
        ((ALLOC, "z = x.t()"),),
        "z shares its memory with x: it needs memory of its own, as from torch.empty.",
        "",
    ),
    "one axis": (
        ((GRID, "grid = (triton.cdiv(M, BLOCK_M),)"),),
        "The kernel asks for tl.program_id(1) in line 17, and the grid (2,) has no axis 1: the number is 0",
        "grid = (triton.cdiv(M, BLOCK_M),)",
    ),
    "no pointer": (
        (("tl.load(x_ptrs,", "tl.load(m[:, None] * stride_xm + n[None, :] * stride_xn,"),),
        "tl.load and tl.store take pointers first, as x_ptr + offsets (line 20), and here numbers stand",
        "tile = tl.load(m[:, None] * stride_xm + n[None, :] * stride_xn, mask=(m[:, None] < M) & (n[None, :]",
    ),
    "args MN after strides": (
        (
            (
                "M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1),",
                "x.stride(0), x.stride(1), z.stride(0), z.stride(1), M, N,",
            ),
        ),
        "The launch in line 32 gives x.stride(0) to the parameter M: arguments go to the kernel's parameters",
        "transpose_kernel[grid](",
    ),
    "args out first": (
        (("x, z,", "z, x,"),),
        "The launch in line 32 gives z to the parameter x_ptr: arguments go to the kernel's parameters in",
        "transpose_kernel[grid](",
    ),
    "args missing stride": (
        (("z.stride(1), BLOCK_M=BLOCK_M,", "BLOCK_M=BLOCK_M,"),),
        "The kernel's stride_zm is not given by the launch in line 32.",
        "transpose_kernel[grid](",
    ),
    "args too many": (
        (("z, M, N,", "z, M, M, N,"),),
        "The launch in line 32 gives BLOCK_M by its name, and by its place too: there are too many arguments",
        "transpose_kernel[grid](",
    ),
    "block kw": (
        (("1), BLOCK_M=BLOCK_M,", "1), BLOCK=BLOCK_M,"),),
        "The kernel's BLOCK_M is not given by the launch in line 32, which passes BLOCK: the kernel has no",
        "transpose_kernel[grid](",
    ),
    "block 100": (
        (("BLOCK_M, BLOCK_N = 128, 64", "BLOCK_M, BLOCK_N = 100, 64"),),
        "The compiler refuses line 16: the length of tl.arange has to be a power of two:",
        "m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)",
        "own",
    ),
    "x.shape in kernel": (
        ((M_, "M, N = x_ptr.shape\n    " + M_),),
        "The compiler refuses line 16: x_ptr is an address and has no shape: sizes are arguments of the kernel",
        "M, N = x_ptr.shape",
    ),
    "transposed mask other": (
        (("tile), mask=(n[:,", "tile), other=0.0, mask=(n[:,"),),
        "The compiler refuses line 22: tl.store has no argument other. It takes pointer, value, mask,",
        "tl.store(z_ptrs, tl.trans(tile), other=0.0, mask=(n[:, None] < N) & (m[None, :] < M))",
    ),
}


@pytest.mark.parametrize("name", OF_TRANSPOSES)
def test_a_first_mistake_in_a_transpose(bench, name):
    changes, said, line, *which = OF_TRANSPOSES[name]
    sentence, place = told(bench, "04_transpose", changes, *OF_TRANSPOSES_CALLS["".join(which)])
    assert sentence.startswith(said) and place.startswith(line) and bool(place) == bool(line), (sentence, place)


def test_shapes_that_do_not_meet_in_a_store_are_told(bench):
    text = (ROOT / "solutions/04_transpose/transpose.py").read_text(encoding="utf-8")
    assert text.count("tl.trans(tile)") == 1
    data, sizes = OF_TRANSPOSES_CALLS[""]
    verdict = bench(text.replace("tl.trans(tile)", "tile"), "04_transpose").check(*data, **sizes)
    assert verdict.lines[1] == "pointer is [32, 16], value is [16, 32]."
