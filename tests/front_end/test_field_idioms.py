"""What published kernels write, and Triton's compiler takes on every release that we support: a right kernel passes."""

from __future__ import annotations

import pytest

from grader import normal, slots, special
from grader.explain.verdict import PASS
from tests.conftest import ROOT

ADD = """
import torch
import triton
import triton.language as tl

{above}
def add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i, mask=i < N)
    y = tl.load(y_ptr + i, mask=i < N)
    {inside}
    tl.store(z_ptr + i, x + y, mask=i < N)


{below}
def masked_add(x, y):
    z = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, z, x.numel(), BLOCK_N=1024)
    return z
"""
JIT = "@triton.jit"
HEURISTICS = 'triton.heuristics({"BLOCK_N": lambda given: 1024})'
INSIDE = {
    "a dtype of tl": "if x.dtype == tl.float16:\n        y = y.to(tl.float16)",
    "dtypes of two tiles": "if x.dtype != y.dtype:\n        y = y.to(x.dtype)",
    "dtypes of elements": "if x_ptr.dtype.element_ty == y_ptr.dtype.element_ty:\n        y = y.to(x.dtype)",
    "a constant of dtypes": "same: tl.constexpr = x.dtype == y.dtype\n    if same:\n        y = y.to(x.dtype)",
    "a constant in a condition": "if tl.constexpr(x.dtype == tl.float16) or tl.constexpr(x.dtype == tl.float32):\n"
    "        y = y.to(x.dtype)",
    "a shape and a list": "tl.static_assert(x.shape == [BLOCK_N])",
    "kinds of whole numbers": "if x.dtype.is_int64() or x.dtype.is_uint64() or x.dtype.is_int1():\n        y = x",
}
AROUND = {
    "jit by assignment": ("", "add_kernel = triton.jit(add_kernel)"),
    "jit and heuristics by assignment": (
        "",
        f"add_kernel = triton.jit(add_kernel)\nadd_kernel = {HEURISTICS}(add_kernel)",
    ),
    "torch.compile": (JIT, "@torch.compile"),
    "torch.compile with options": (JIT, "@torch.compile(dynamic=True, fullgraph=True)"),
}  # fmt: skip
CONSTEXPR_FUNCTION = """
@tl.constexpr
def accumulator_of(dtype):
    return tl.float32 if dtype.is_fp16() else dtype


@triton.jit"""


def judged(bench, above: str = JIT, inside: str = "", below: str = ""):
    text = ADD.format(above=above, inside=inside, below=below)
    if "heuristics" in below:
        text = text.replace(", BLOCK_N=1024)", ")")
    return bench(text).check(normal(2000), normal(2000))


@pytest.mark.parametrize("name", INSIDE)
def test_comparisons_and_questions_about_types(bench, name):
    verdict = judged(bench, inside=INSIDE[name])
    assert verdict.outcome == PASS, verdict.lines


@pytest.mark.parametrize("name", AROUND)
def test_what_stands_around_kernel_and_host_function(bench, name):
    above, below = AROUND[name]
    verdict = judged(bench, above, below=below)
    assert verdict.outcome == PASS, verdict.lines


def test_a_function_that_tl_constexpr_makes_a_constant(bench):
    verdict = judged(bench, CONSTEXPR_FUNCTION, "y = y.to(accumulator_of(y.dtype))")
    assert verdict.outcome == PASS, verdict.lines


def test_a_kernel_that_another_decorator_may_have_changed_is_refused(bench):
    below = "add_kernel = triton.jit(add_kernel)\n\n\ndef add_kernel(*given):\n    pass\n\n\n"
    assert judged(bench, "", below=below).outcome != PASS


@pytest.mark.parametrize("inside", ["x = x.__add__(y)", "x = x.dtype.__eq__", 'same = getattr(x.dtype, "__eq__")'])
def test_a_method_of_an_operator_may_not_be_read_by_its_name(bench, inside):
    verdict = judged(bench, inside=inside)
    assert verdict.outcome != PASS and "The compiler refuses" not in verdict.lines[0]


def test_a_cache_to_which_no_token_comes_stays_and_needs_no_launch(bench):
    id = "39_kv_cache_write"
    text = (ROOT / f"solutions/{id}/kv_cache_write.py").read_text(encoding="utf-8")
    shape = "    T, H, D = k.shape\n"
    assert text.count(shape) == 1
    early = text.replace(shape, f"{shape}    if T == 0:\n        return k_cache, v_cache\n")
    caches = [special(normal(4, 16, 2, 8)) for _ in range(2)]
    for count in (0, 7):
        tokens = [normal(count, 2, 8) for _ in range(2)]
        verdict = bench(early, id).check(*tokens, *caches, slots(count, below=64), dtypes=("float16",))
        assert verdict.outcome == PASS, verdict.lines
    never = text.replace(shape, f"{shape}    return k_cache, v_cache\n")
    verdict = bench(never, id).check(*tokens, *caches, slots(count, below=64), dtypes=("float16",))
    assert verdict.lines[0] == "kv_cache_write returned without launching a kernel."
