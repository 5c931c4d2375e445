"""Kernels that are right by their text, and on a GPU only if their warps come in one order."""

from __future__ import annotations

import pytest

from grader import normal
from grader.explain.causes import Cause
from grader.explain.verdict import FAIL, PASS

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, r_ptr, w_ptr, z_ptr, N, eps, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * N + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < N
    h = tl.load(x_ptr + cols, mask=mask, other=0.0) + tl.load(r_ptr + cols, mask=mask, other=0.0)
    tl.store(r_ptr + cols, h, mask=mask)
    AGAIN
    rstd = 1.0 / tl.sqrt(tl.sum(h * h, 0) / N + eps)
    w = tl.load(w_ptr + tl.arange(0, BLOCK), mask=mask, other=0.0)
    tl.store(z_ptr + cols, h * rstd * w, mask=mask)


def add_rms_norm(x, residual, weight, eps):
    (M, N), z = x.shape, torch.empty_like(x)
    kernel[(M,)](x, residual, weight, z, N, eps, BLOCK=triton.next_power_of_2(N), num_warps=WARPS)
    return z
"""
AGAIN = "h = tl.load(r_ptr + cols, mask=mask, other=0.0)"


def judged(bench, columns: int, warps: int, again: str = "pass"):
    text = KERNEL.replace("AGAIN", again).replace("WARPS", str(warps))
    return bench(text, "10_rms_norm").check(
        normal(4, columns), normal(4, columns), normal(columns), 1e-5, dtypes=("float32",)
    )


@pytest.mark.parametrize(
    ("columns", "warps", "again", "said"),
    [
        (50, 4, "pass", "line 12 stores to the same elements"),
        (50, 4, AGAIN, "line 12 stores residual, line 13 loads the same elements"),
        (128, 8, "pass", "Line 11 loads a tile of 128 elements, each by 2 warps"),
    ],
)
def test_copies_in_several_warps_may_be_lost(bench, columns, warps, again, said):
    verdict = judged(bench, columns, warps, again)
    assert (verdict.outcome, verdict.id) == (FAIL, Cause.WARP_ORDER)
    assert said in " ".join(verdict.lines)


@pytest.mark.parametrize(
    ("columns", "warps", "again"),
    [
        (30, 4, "pass"),  # the first warp stores all there is
        (50, 2, "pass"),
        (128, 4, "pass"),
        (50, 1, AGAIN),
        (128, 4, AGAIN),
        (300, 4, AGAIN),
    ],
)
def test_an_update_in_place_without_copies_that_matter_is_right(bench, columns, warps, again):
    verdict = judged(bench, columns, warps, again)
    assert verdict.outcome == PASS, verdict.lines


def test_a_barrier_makes_warps_wait(bench):
    text = KERNEL.replace("    tl.store(r_ptr", "    tl.debug_barrier()\n    tl.store(r_ptr")
    verdict = bench(text.replace("AGAIN", "pass").replace("WARPS", "4"), "10_rms_norm").check(
        normal(4, 50), normal(4, 50), normal(50), 1e-5, dtypes=("float32",)
    )
    assert verdict.outcome == PASS, verdict.lines


def test_a_configuration_may_have_too_many_warps(bench):
    configs = "[triton.Config({}, num_warps=1), triton.Config({}, num_warps=8)]"
    tuned = f'@triton.autotune(configs={configs}, key=["N"], restore_value=["r_ptr"])\n@triton.jit'
    text = KERNEL.replace("@triton.jit", tuned).replace(", num_warps=WARPS", "").replace("AGAIN", "pass")
    verdict = bench(text, "10_rms_norm").check(normal(4, 128), normal(4, 128), normal(128), 1e-5, dtypes=("float32",))
    assert (verdict.outcome, verdict.id) == (FAIL, Cause.WARP_ORDER)
    assert "num_warps" in verdict.lines[0] or "num_warps" in verdict.lines[1], verdict.lines


def test_a_kernel_that_was_told_once_is_told_again(bench):
    judge = bench(KERNEL.replace("AGAIN", "pass").replace("WARPS", "4"), "10_rms_norm")
    data = normal(4, 50), normal(4, 50), normal(50), 1e-5
    assert [judge.check(*data, dtypes=("float32",)).id for _ in range(2)] == [Cause.WARP_ORDER] * 2


def test_a_barrier_in_a_loop_without_an_iteration_makes_no_warp_wait(bench):
    loop = "    for _ in range(0, N // 100000):\n        tl.debug_barrier()\n    tl.store(r_ptr"
    text = KERNEL.replace("    tl.store(r_ptr", loop).replace("AGAIN", "pass").replace("WARPS", "4")
    verdict = bench(text, "10_rms_norm").check(normal(4, 50), normal(4, 50), normal(50), 1e-5, dtypes=("float32",))
    assert (verdict.outcome, verdict.id) == (FAIL, Cause.WARP_ORDER)
