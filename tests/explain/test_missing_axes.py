"""Kernels that ask for an axis which the grid of their launch lacks."""

from __future__ import annotations

import pytest

from grader import indices, normal, output
from tests.conftest import ROOT

ROWS = "12_gather_rows", "(K, triton.cdiv(N, BLOCK_N))", "(K,)", (normal(20, 2411), indices(12, below=20))


def solution(exercise: str) -> str:
    return (ROOT / "solutions" / exercise / f"{exercise[3:]}.py").read_text()


def number_of_line(source: str, part: str) -> int:
    return source[: source.index(part)].count("\n") + 1


def test_the_axis_is_told_with_its_line_and_the_line_of_the_grid(bench):
    exercise, two, one, data = ROWS
    source = solution(exercise).replace(two, one)
    verdict = bench(source, exercise).check(*data, dtypes=("float16",))
    asked, grid = number_of_line(source, "tl.program_id(1)"), number_of_line(source, f"grid = {one}")
    assert verdict.id == "unwritten" and verdict.line == grid
    assert verdict.lines[0] == (
        f"The kernel asks for tl.program_id(1) in line {asked}, and the grid (12,) has no axis 1: the number is 0 in "
        "every program. Give the grid a size for each axis that the kernel asks for."
    )
    assert verdict.lines[-1].startswith(f"Line {grid}:") and one in verdict.lines[-1]


@pytest.mark.parametrize("grid", ["(K, 1)", "(K, triton.cdiv(N, 2 * BLOCK_N))"])
def test_a_grid_that_has_the_axis_is_not_said_to_lack_it(bench, grid):
    exercise, two, _, data = ROWS
    verdict = bench(solution(exercise).replace(two, grid), exercise).check(*data, dtypes=("float16",))
    assert verdict.id == "unwritten" and "has no axis" not in verdict.lines[0]


def test_a_kernel_that_is_not_launched_asks_for_nothing(bench):
    exercise = "01_masked_add"
    source = solution(exercise).replace("triton.cdiv(N, BLOCK_N),", "N // BLOCK_N,")
    source += "\n\n@triton.jit\ndef other_kernel(z_ptr):\n    tl.store(z_ptr + tl.program_id(1), 0.0)\n"
    verdict = bench(source, exercise).check(normal(1500), normal(1500))
    assert verdict.id == "unwritten" and "has no axis" not in verdict.lines[0]


def test_a_grid_with_its_axes_exchanged_is_told_so(bench):
    exercise, two, _, _ = ROWS
    source = solution(exercise).replace(two, "(triton.cdiv(N, BLOCK_N), K)")
    verdict = bench(source, exercise).check(normal(20, 64), indices(12, below=20), dtypes=("float16",))
    assert verdict.lines[0] == (
        "11 of 12 programs write nothing to z, as if the kernel took axis 0 of the grid for axis 1 and axis 1 for axis "
        "0. The grid, made in line 33, is (1, 12): which axis counts which blocks there, and in tl.program_id (lines "
        "17 and 19)?"
    )


def test_a_mask_that_leaves_out_most_of_a_tile_is_no_exchange_of_axes(bench):
    exercise = "02_strided_blocks"
    source = solution(exercise).replace("(cols < N)", "(cols * stride_xn < N)")
    verdict = bench(source, exercise).check(normal(37, 153).transposed(), output(37, 153))
    assert verdict.id == "unwritten" and "axis 0 of the grid for axis 1" not in verdict.lines[0], verdict.lines


def test_numbers_of_programs_with_their_axes_exchanged_are_told_so(bench):
    """The grid has several programs along each axis."""
    exercise = "02_strided_blocks"
    source = solution(exercise)
    for axis in (0, 1):
        assert source.count(f"program_id({axis})") == 1
        source = source.replace(f"program_id({axis})", f"program_id[{1 - axis}]")
    source = source.replace("program_id[0]", "program_id(0)").replace("program_id[1]", "program_id(1)")
    verdict = bench(source, exercise).check(normal(101, 153), output(101, 153), dtypes=("float32",))
    assert verdict.lines[0].startswith("2 of 6 programs write nothing to z, as if the kernel took axis 0 of the grid")


TWO_LAUNCHES = """import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def copy_kernel(x_ptr, t_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.atomic_add(t_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N) * 0, mask=offsets < N)


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x, y = tl.load(x_ptr + offsets, mask=offsets < N), tl.load(y_ptr + offsets, mask=offsets < N)
    tl.store(z_ptr + offsets, x + y, mask=offsets < N)


def masked_add(x, y):
    t, z = torch.zeros_like(x), torch.empty_like(x)
    N = x.numel()
    copy_kernel[(triton.cdiv(N, BLOCK_N), COPIES)](x, t, N, BLOCK_N=BLOCK_N)
    add_kernel[GRID](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
"""


def overlapping(bench, copies: str, grid: str, offsets: str = "tl.program_id(0) * BLOCK_N") -> str:
    """The first sentence about the second of two launches, whose programs overlap."""
    head, add = TWO_LAUNCHES.replace("COPIES", copies).replace("GRID", grid).split("def add_kernel")
    text = f"{head}def add_kernel{add.replace('tl.program_id(0) * BLOCK_N', offsets)}"
    verdict = bench(text).check(normal(2048), normal(2048), dtypes=("float32",))
    assert verdict.id == "double-write"
    return verdict.lines[0]


def test_an_axis_that_a_later_launch_does_not_use_is_told(bench):
    assert overlapping(bench, "1", "(triton.cdiv(N, BLOCK_N), 2)") == (
        "Programs overlap: nothing in the kernel depends on tl.program_id(1), so programs do each other's work."
    )


def test_an_axis_that_another_launch_does_not_use_is_not_blamed(bench):
    line = overlapping(bench, "2", "(triton.cdiv(N, BLOCK_N),)", "tl.program_id(0) * (BLOCK_N // 2)")
    assert line == "Programs overlap: two programs write the same elements, and whichever comes last wins."
