"""The line that is told of an access outside of its tensor: where the mistake is made, not where it shows; none where
several lines can hold it."""

from __future__ import annotations

import pytest

from grader import normal

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
COPY = """
@triton.jit
def copy_kernel(x_ptr, z_ptr, M, N, xm, xn, zm, zn, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
    inside = (rows < M) & (cols < N)
    x = tl.load(x_ptr + rows * xm + cols * xn, mask=inside)
    z_ptrs = z_ptr + rows * zm + cols * zn
    tl.store(z_ptrs, x, mask=inside)


def strided_copy(x, z):
    M, N = x.shape
    grid = triton.cdiv(M, 32), triton.cdiv(N, 32)
    copy_kernel[grid](x, z, M, N, *x.stride(), *z.stride(), ROWS=32, COLS=32)
    return z
"""
SUM = """
@triton.jit
def sum_kernel(x_ptr, z_ptr, N, xm, xn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        ptrs = x_ptr + row * xm + cols * xn
        total += tl.load(ptrs, mask=cols < N, other=0.0)
    tl.store(z_ptr + row, tl.sum(total, 0))


def row_sum(x):
    z = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    sum_kernel[(x.shape[0],)](x, z, x.shape[1], *x.stride(), BLOCK=256)
    return z
"""

# The change, and the part of the text whose line is told; "": no line is.
OF_COPIES = {
    "a mask of another line compares otherwise": ("cols < N", "cols <= N", "inside ="),
    "a mask of another line has two ways to be true": (") & (", ") | (", ""),
    "a condition is missing": ("(rows < M) & (cols < N)", "rows < M", ""),
    "a condition is about no column": ("cols < N", "M < N", ""),
    "a limit that a launch gives is no size": ("x, z, M, N,", "x, z, M, 2 * N,", ""),
    "an address in front without a mask": ("x_ptr + rows * xm + cols * xn, mask=inside", "x_ptr - rows", "x ="),
    "a condition keeps numbers at 0": (
        "(cols < N)\n    x = tl.load(x_ptr", "(cols < N) & (rows >= 0)\n    x = tl.load(x_ptr + N", "x ="
    ),
    "the address of the load": ("cols * xn", "cols * xm", "x = tl.load"),
    "pointers of another line": ("cols * zn", "cols * zm", "z_ptrs ="),
}  # fmt: skip
OF_SUMS = {
    "pointers of another line": ("cols * xn", "cols * xm", "ptrs ="),
    "what is in front of a tensor": ("cols = start +", "cols = start - 1000 +", "cols ="),
    "pointers in front of a tensor": ("x_ptr + row * xm", "x_ptr + row - xm", "ptrs ="),
    "a limit that is computed": ("cols < N", "cols < N * 2", ""),
    "a row that the grid does not have": ("row = tl.program_id(0)", "row = tl.program_id(0) + 3", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_COPIES)
def test_copies(bench, name):
    said_line_is_told(bench, COPY, "02_strided_blocks", [normal(70, 100), normal(70, 100)], *OF_COPIES[name])


@pytest.mark.parametrize("name", OF_SUMS)
def test_sums(bench, name):
    said_line_is_told(bench, SUM, "07_row_sum", [normal(12, 1000)], *OF_SUMS[name])


def said_line_is_told(bench, text, id, inputs, old, new, told):
    assert text.count(old) == 1
    text = HEAD + text.replace(old, new)
    verdict = bench(text, id).check(*inputs)
    assert verdict.id in ("oob-load", "oob-store")
    line = 1 + text[: text.index(told)].count("\n") if told else 0
    assert verdict.line == line, verdict.lines
    quoted = text.splitlines()[line - 1].strip()
    assert not told or f"Line {line}:  {quoted}" in verdict.lines


def test_programs_that_meet_are_no_mistake_of_the_store(bench):
    text = HEAD + COPY.replace("tl.program_id(1) * COLS", "tl.program_id(1) * ROWS // 2")
    verdict = bench(text, "02_strided_blocks").check(normal(70, 100), normal(70, 100))
    assert verdict.id == "double-write" and verdict.line == 0


def test_a_mask_may_be_to_blame_where_tiles_are_full_but_the_grid_is_large(bench):
    text = HEAD + COPY.replace("(rows < M)", "(rows != M)").replace("cdiv(M, 32)", "cdiv(M, 32) + 1")
    verdict = bench(text, "02_strided_blocks").check(normal(64, 64), normal(64, 64))
    assert verdict.lines[0].startswith("The mask of the store in line 12 lets lanes outside of z through.")
