"""What beginners write first in 06, a tile of two lines: the sentence and the line it sends to."""

from __future__ import annotations

import pytest

from grader import normal
from tests.explain.first_mistakes import BEFORE_39, told

# ---- 06_fused_outer --------------------------------------------------------------------------------------------------

X = "x = tl.load(x_ptr + rows * stride_x, mask=rows < M)"
V = "v = x[:, None] * y[None, :]  # [BLOCK_M, BLOCK_N]"
RELU = "v = tl.where(v < 0, 0.0, v)"
ZP = "z_ptrs = z_ptr + rows[:, None] * stride_zm + cols[None, :] * stride_zn"
STORE = "tl.store(z_ptrs, v, mask=(rows[:, None] < M) & (cols[None, :] < N))"
GRID = "grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))"

# The call that is judged: data, and block sizes.
OF_OUTER_PRODUCTS_CALLS = {
    "": ((normal(40), normal(40)), dict(BLOCK_M=16, BLOCK_N=32)),
    "square": ((normal(40), normal(40)), dict(BLOCK_M=32, BLOCK_N=32)),
}

OF_OUTER_PRODUCTS = {
    "x*y": (
        ((V, "v = x * y"),),
        "Tiles of different shapes meet in line 20: along axis 0 they have 16 and 32 elements. A column of",
        "v = x * y",
    ),
    "x*y square": (
        ((V, "v = x * y"),),
        "All rows of z that a program writes are equal, and they should differ: what is stored does not depend",
        "",
        "square",
    ),
    "tl.outer": (
        ((V, "v = tl.outer(x, y)"),),
        "Line 20: triton.language.outer is not allowed in a kernel. In a kernel it is a column times a row,",
        "v = tl.outer(x, y)",
    ),
    "torch.outer": (
        ((V, "v = torch.outer(x, y)"),),
        "Line 20: torch.outer is not allowed in a kernel. In a kernel it is a column times a row, [:, None]",
        "v = torch.outer(x, y)",
    ),
    "tl.dot of lines": (
        ((V, "v = tl.dot(x, y)"),),
        "The compiler refuses line 20: tl.dot multiplies a tile [M, K] by a tile [K, N]: as many columns as",
        "v = tl.dot(x, y)",
    ),
    "tl.dot of col row": (
        ((V, "v = tl.dot(x[:, None], y[None, :])"),),
        f"The compiler refuses line 20: tl.dot wants at least {16 if BEFORE_39 else 8} columns in its first tile,",
        "v = tl.dot(x[:, None], y[None, :])",
    ),
    "matmul @": (
        ((V, "v = x[:, None] @ y[None, :]"),),
        "The compiler refuses line 20: a kernel has no @: tl.dot(a, b, acc) multiplies two tiles and adds",
        "v = x[:, None] @ y[None, :]",
    ),
    "tl.relu": (
        ((RELU, "v = tl.relu(v)"),),
        "Line 21: triton.language.relu is not allowed in a kernel. In a kernel it is tl.where, or tl.maximum.",
        "v = tl.relu(v)",
    ),
    "tl.max(v,0)": (
        ((RELU, "v = tl.max(v, 0)"),),
        "All rows of z that a program writes are equal, and they should differ: what is stored does not depend",
        "",
    ),
    "tl.max(v,0.0)": (
        ((RELU, "v = tl.max(v, 0.0)"),),
        "The compiler refuses line 21: tl.max takes a block and the number of an axis, as in tl.max(x, 0):",
        "v = tl.max(v, 0.0)",
    ),
    "if v<0": (
        ((RELU, "if v < 0:\n        v = 0.0"),),
        "The compiler refuses line 21: `if` and `while` need one value for the whole program, and this is a",
        "if v < 0:",
    ),
    "v[v<0]=0": (
        ((RELU, "v[v < 0] = 0"),),
        "The compiler refuses line 21: neither a tile nor a list can be assigned to in parts: use tl.where.",
        "v[v < 0] = 0",
    ),
    "where two args": (
        ((RELU, "v = tl.where(v > 0, v)"),),
        "The compiler refuses line 21: tl.where lacks the argument y, as in tl.where(condition, a, b).",
        "v = tl.where(v > 0, v)",
    ),
    "v.clamp": (
        ((RELU, "v = v.clamp(min=0)"),),
        "Line 21: .clamp is not allowed in a kernel. In a kernel it is tl.clamp(x, min, max).",
        "v = v.clamp(min=0)",
    ),
    "propagate True": (
        ((RELU, "v = tl.maximum(v, 0.0, propagate_nan=True)"),),
        "The compiler refuses line 21: propagate_nan is tl.PropagateNan.ALL, or tl.PropagateNan.NONE.",
        "v = tl.maximum(v, 0.0, propagate_nan=True)",
    ),
    "propagate misspelt": (
        ((RELU, "v = tl.maximum(v, 0.0, propagate_nans=tl.PropagateNan.ALL)"),),
        "The compiler refuses line 21: tl.maximum has no argument propagate_nans. Is propagate_nan meant?",
        "v = tl.maximum(v, 0.0, propagate_nans=tl.PropagateNan.ALL)",
    ),
    "PropagateNan.All": (
        ((RELU, "v = tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.All)"),),
        "Line 21: .All is not allowed in a kernel. Is .ALL meant?",
        "v = tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.All)",
    ),
    "PropagateNan without tl": (
        ((RELU, "v = tl.maximum(v, 0.0, propagate_nan=PropagateNan.ALL)"),),
        "The compiler refuses line 21: PropagateNan is not defined. Is tl.PropagateNan meant?",
        "v = tl.maximum(v, 0.0, propagate_nan=PropagateNan.ALL)",
    ),
    "relu discarded": (
        ((RELU, "tl.where(v < 0, 0.0, v)"),),
        "Line 21: tl.where(v < 0, 0.0, v) gives a new value and changes nothing, and the line keeps it",
        "tl.where(v < 0, 0.0, v)",
    ),
    "mask one": (
        ((STORE, "tl.store(z_ptrs, v, mask=rows < M)"),),
        "Tiles of different shapes meet in line 23: along axis 1 they have 32 and 16 elements. A column of",
        "tl.store(z_ptrs, v, mask=rows < M)",
    ),
    "grid one axis": (
        ((GRID, "grid = (triton.cdiv(M * N, BLOCK_M * BLOCK_N),)"),),
        "2 of 4 programs write nothing to z: the kernel uses tl.program_id(1), but the grid has 1 axis.",
        "",
    ),
    "grid cdiv": (
        ((GRID, "grid = (cdiv(N, BLOCK_N), cdiv(M, BLOCK_M))"),),
        "outer_relu raises NameError in line 33: name 'cdiv' is not defined.",
        "grid = (cdiv(N, BLOCK_N), cdiv(M, BLOCK_M))",
    ),
    "no loads": (
        ((X, "x = x_ptr + rows * stride_x"),),
        "The compiler refuses line 20: x is an address, and here a number is wanted: tl.load(x) reads what",
        "v = x[:, None] * y[None, :]",
    ),
    "ptrs flat": (
        ((ZP, "z_ptrs = z_ptr + rows * stride_zm + cols * stride_zn"),),
        "Tiles of different shapes meet in line 22: along axis 0 they have 16 and 32 elements. A column of",
        "z_ptrs = z_ptr + rows * stride_zm + cols * stride_zn",
    ),
    "broadcast_to": (
        ((V, "v = tl.broadcast_to(x, (BLOCK_M, BLOCK_N)) * y[None, :]"),),
        "The compiler refuses line 20: shapes with unlike numbers of axes meet, [16] and [16, 32]: x[:,",
        "v = tl.broadcast_to(x, (BLOCK_M, BLOCK_N)) * y[None, :]",
    ),
}


@pytest.mark.parametrize("name", OF_OUTER_PRODUCTS)
def test_a_first_mistake_in_an_outer_product(bench, name):
    changes, said, line, *which = OF_OUTER_PRODUCTS[name]
    sentence, place = told(bench, "06_fused_outer", changes, *OF_OUTER_PRODUCTS_CALLS["".join(which)])
    assert sentence.startswith(said) and place.startswith(line) and bool(place) == bool(line), (sentence, place)
