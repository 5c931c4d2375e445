"""Operators: what each changes, and that each has a place in some exercise."""

from __future__ import annotations

import ast

import pytest

from grader.author.mutants import BadMutant, mutants_of
from grader.author.operators import OPERATORS, changed_solutions
from grader.course.folder import Folder, all_folders
from tests.conftest import ROOT, folders_with_kernels

SOLUTION = """\
import torch
import triton
import triton.language as tl

BLOCK_N = 64


@triton.jit
def rows_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_zm, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    first = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (cols < N) & (row < M)
        x = tl.load(x_ptr + row * stride_xm + cols, mask=mask, other=0.0).to(tl.float32)
        acc += x  # σ, which takes two bytes
        tl.store(z_ptr + (row + 0) * stride_zm + cols, acc, mask=mask)


def rows(x):
    # A sum along each row: \u03a3.
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (M, triton.cdiv(N, BLOCK_N))
    rows_kernel[grid](x, z, M, N, x.stride(0), z.stride(0), BLOCK_N=BLOCK_N)
    return z
"""
CHANGED = {
    "no_load_mask": [(", mask=mask, other=0.0)", ")")],
    "no_store_mask": [("acc, mask=mask)", "acc)")],
    "no_other": [(", other=0.0", "")],
    "bound_one_more": [("cols < N", "cols < N + 1")],
    "bound_one_less_2": [("row < M", "row < M - 1")],
    "or_mask": [("(cols < N) & (row < M)", "(cols < N) | (row < M)")],
    "no_stride": [("row * stride_xm", "row")],
    "no_stride_2": [("(row + 0) * stride_zm", "(row + 0)")],
    "no_pid": [("tl.program_id(0)", "(tl.program_id(0) * 0)")],
    "pid_in_int16_2": [("tl.program_id(1)", "tl.program_id(1).to(tl.int16)")],
    "no_block_size": [("tl.program_id(1) * BLOCK_N", "tl.program_id(1)")],
    "written_back": [
        ("other=0.0).to(tl.float32)\n",
         "other=0.0).to(tl.float32)\n        tl.store(x_ptr + row * stride_xm + cols, x * 2, mask=mask)\n"),
    ],
    "added_to_result": [("tl.store", "tl.atomic_add")],
    "no_constexpr": [("BLOCK_N: tl.constexpr", "BLOCK_N")],
    "zeros": [("acc, mask", "(acc) * 0, mask")],
    "rounds_to_fp16": [("acc, mask", "(acc).to(tl.float16).to(tl.float32), mask")],
    "half_accumulator": [("zeros((BLOCK_N,), tl.float32)", "zeros((BLOCK_N,), tl.float16)")],
    "floor_loop": [("range(0, N, BLOCK_N)", "range(0, N - BLOCK_N + 1, BLOCK_N)")],
    "first_block_only": [("range(0, N, BLOCK_N)", "range(0, 0 + BLOCK_N, BLOCK_N)")],
    "contiguous_on_host": [("    M, N = x.shape", "    x = x.contiguous()\n    M, N = x.shape")],
    "always_fp32": [("x.dtype", "torch.float32")],
    "result_on_the_cpu": [("device=x.device", 'device="cpu"')],
    "result_copied": [("return z", "return z.clone()")],
    "returns_none": [("return z", "return None")],
    "input_returned": [("return z", "return x")],
    "cached_output": [
        ("@triton.jit", "CACHE = {}\n\n\n@triton.jit"),
        ("    M, N = x.shape",
         "    if (x.shape, x.dtype) in CACHE:\n        return CACHE[(x.shape, x.dtype)]\n    M, N = x.shape"),
        ("return z", "CACHE[(x.shape, x.dtype)] = z\n    return CACHE[(x.shape, x.dtype)]"),
    ],
    "grid_too_small": [("(M, triton", "(M - 1, triton")],
    "grid_too_large_2": [("triton.cdiv(N, BLOCK_N))", "triton.cdiv(N, BLOCK_N) + 1)")],
    "floor_grid": [("triton.cdiv(N, BLOCK_N)", "N // BLOCK_N")],
    "strides_swapped": [("N, x.stride(0), z.stride(0)", "N, z.stride(0), x.stride(0)")],
    "stride_zero_means_one": [("x.stride(0)", "(x.stride(0) or 1)")],
    "no_launch": [("rows_kernel[grid](x, z, M, N, x.stride(0), z.stride(0), BLOCK_N=BLOCK_N)", "pass")],
}  # fmt: skip


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return {name: text for name, _, text in changed_solutions(SOLUTION)}


@pytest.mark.parametrize("name", CHANGED)
def test_an_operator_changes_its_place_and_nothing_else(made, name):
    expected = SOLUTION
    for old, new in CHANGED[name]:
        assert expected.count(old) == 1, old
        expected = expected.replace(old, new)
    assert made[name] == expected


def test_a_launch_is_made_twice(made):
    assert made["two_launches"].count("    rows_kernel[grid](x, z, M") == 2


@pytest.mark.parametrize("folder", folders_with_kernels(), ids=lambda folder: folder.id)
def test_each_mutant_has_a_name_of_its_own_and_is_another_kernel(folder):
    solution = folder.solution_file.read_text(encoding="utf-8")
    mutants = [mutant for mutant in mutants_of(folder) if mutant.by_operator]
    names = [mutant.name for mutant in mutants_of(folder)]
    assert len(names) == len(set(names)) and len(mutants) > 10
    known = {ast.dump(ast.parse(solution))}
    for mutant in mutants:
        tree = ast.dump(ast.parse(mutant.text))
        assert tree not in known, mutant.name
        known.add(tree)


def test_each_operator_has_a_place_in_some_exercise():
    used = {
        operator.name
        for folder in all_folders(ROOT)
        for _, operator, _ in changed_solutions(folder.solution_file.read_text(encoding="utf-8"))
    }
    assert used == {operator.name for operator in OPERATORS} and len(used) > 30


def test_a_place_that_is_no_mistake_is_stated_by_a_name_that_there_is(tmp_path):
    folder = Folder(tmp_path / "exercises" / "01_few")
    folder.solution_file.parent.mkdir(parents=True)
    folder.solution_file.write_text(SOLUTION)
    folder.mistakes_file.write_text('[operators]\nno_other = "nothing is made of these lanes"\n')
    assert "no_load_mask" in (names := [mutant.name for mutant in mutants_of(folder)]) and "no_other" not in names
    folder.mistakes_file.write_text('[operators]\nno_other_7 = "nothing is made of these lanes"\n')
    with pytest.raises(BadMutant, match=r"\[operators\] names no_other_7, and no operator makes it"):
        list(mutants_of(folder))


def test_a_solution_that_is_no_python_and_one_without_a_kernel_give_none():
    assert list(changed_solutions("def (")) == [] == list(changed_solutions("a = 1\n"))
