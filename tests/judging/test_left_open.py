"""Kernels that are right for one outcome of what the language leaves open, and wrong for the other."""

from __future__ import annotations

import pytest

from grader import normal
from grader.explain.verdict import FAIL, PASS
from tests.conftest import ROOT

ADD = """
import torch
import triton
import triton.language as tl


@triton.jit
def mean_of(a, b):
    return (a + b) / 2


@triton.jit
def gap_of(a, b):
    return b - a


@triton.jit
def add_of(a, b):
    return a + b


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, N, none, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    half = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N // 2)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    y = tl.load(y_ptr + i, mask=i < N, other=0.0)
    z = x + y
    {inside}
    tl.store(z_ptr + i, z, mask=i < N)


def masked_add(x, y):
    z = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, z, x.numel(), 0, BLOCK_N=1024{options})
    return z
"""
LINE = ADD[: ADD.index("{inside}")].count("\n") + 1
ENDS = "mask=half < N, other=0.0"
OPEN = {
    "cat": (
        f"z = tl.cat(tl.load(x_ptr + half, {ENDS}), tl.load(x_ptr + half + BLOCK_N // 2, mask=half + BLOCK_N // 2 < N, "
        "other=0.0), can_reorder=True) + y",
        "depends on the order of tl.cat, which promises none",
    ),
    "reshape": (
        "z = tl.reshape(tl.reshape(z, (BLOCK_N // 2, 2), can_reorder=True), (BLOCK_N,))",
        "depends on the order of the elements after a reshape that may exchange them",
    ),
    "a mean of means": (
        "z = z + (tl.reduce(z, 0, mean_of) * BLOCK_N - tl.sum(z, 0))",
        "combines elements with gives another result in another order",
    ),
    "a scan that asks for one order": (  # of 0, 1, 2 ... it gives 0 at place 4, and with another order 4
        "z = z + tl.sum(tl.where(i % BLOCK_N == 4, tl.associative_scan(i % BLOCK_N, 0, gap_of), 0), 0)",
        "combines elements with gives another result in another order",
    ),
    "a quotient of 0": (
        "z = z + (tl.program_id(0) + 5) // none",
        "divides a whole number by 0",
    ),
    "two roundings": (
        "z = z + (x * y - (x * y)) * 1e9",
        "with one rounding the result is wrong",
    ),
    "an address": (
        "z = tl.where((x_ptr.to(tl.int64) >> 46) < (z_ptr.to(tl.int64) >> 46), z, 0.0)",
        "makes a number of an address",
    ),
}


def judged(bench, inside: str, options: str = ""):
    return bench(ADD.format(inside=inside, options=options)).check(normal(2048), normal(2048), dtypes=("float32",))


@pytest.mark.parametrize("name", OPEN)
def test_the_other_outcome_is_taken_in_the_second_call_and_named_with_its_line(bench, name):
    inside, said = OPEN[name]
    verdict = judged(bench, inside)
    assert verdict.id == "left-open" and verdict.line == LINE, verdict.lines
    assert verdict.lines[0].startswith(f"Line {LINE} ") or verdict.lines[0].startswith("The function that line")
    assert said in verdict.lines[0]


RIGHT = {
    "a sum by a function of its own": "z = z + 0 * tl.reduce(z, 0, add_of)",
    "a scan by a function of its own": "z = z + 0 * tl.associative_scan(z, 0, add_of)",
    "a product that is added to": "z = x * 1.0 + y",
    "a division by what is not 0": "z = z + (tl.program_id(0) + 5) // (none + 9) * 0",
    "an address that is aligned": "z = tl.where(x_ptr.to(tl.int64) % 16 == 0, z, 0.0)",
    "an address and back": "z = z + 0 * tl.load(x_ptr.to(tl.int64).to(tl.pointer_type(tl.float32)) + i, mask=i < N, "
    "other=0.0)",
    "an order that is kept": "z = tl.reshape(tl.reshape(z, (BLOCK_N // 2, 2)), (BLOCK_N,))",
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_does_not_depend_on_it_is_right(bench, name):
    verdict = judged(bench, RIGHT[name])
    assert verdict.outcome == PASS, verdict.lines


def test_a_launch_without_fusion_keeps_its_two_roundings(bench):
    verdict = judged(bench, OPEN["two roundings"][0], ", enable_fp_fusion=False")
    assert verdict.outcome == PASS, verdict.lines


def test_another_result_within_the_bound_is_wrong_where_nothing_rounds_otherwise(bench):
    """The last digits depend on where tensors lie."""
    solution = (ROOT / "solutions/03_softmax/softmax.py").read_text()
    tells = "tl.where((x_ptr.to(tl.int64) >> 46) < (z_ptr.to(tl.int64) >> 46), e, e * 1.0000001)"
    text = solution.replace("e / tl.sum(e, 0), mask", f"{tells} / tl.sum(e, 0), mask")
    verdict = bench(text, "03_softmax").check(normal(8, 64), dtypes=("float32",))
    assert text != solution and verdict.outcome == FAIL and verdict.id == "left-open", verdict.lines
    assert "makes a number of an address" in verdict.lines[0]
