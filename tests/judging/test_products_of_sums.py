"""A sum of products that Triton 3.6 and 3.7 multiply as tiles, in tf32: values are judged as compiled, too."""

from __future__ import annotations

import pytest
import triton

from grader import normal
from grader.explain.products_of_sums import ProductOfSums
from grader.explain.verdict import FAIL, PASS

IN_TF32 = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 9)
MATMUL = """
import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, S: tl.constexpr):
    rows, cols, inner = tl.program_id(0) * S + tl.arange(0, S), tl.program_id(1) * S + tl.arange(0, S), tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    for k in range(0, K, S):
        a = tl.load(a_ptr + rows[:, None] * K + k + inner[None, :],
                    mask=(rows[:, None] < M) & (k + inner[None, :] < K), other=0.0)
        b = tl.load(b_ptr + (k + inner[:, None]) * N + cols[None, :],
                    mask=(k + inner[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc += SUM
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


def matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    matmul_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](a, b, c, M, N, K, S=16)
    return c
"""


def judged(bench, sum: str):
    return bench(MATMUL.replace("SUM", sum), "05_grouped_matmul").check(
        normal(20, 33), normal(33, 18), dtypes=("float32",)
    )


@pytest.mark.parametrize(
    "sum", ["tl.sum(a[:, :, None] * b[None, :, :], 1)", "tl.sum(a[:, None, :] * tl.trans(b)[None, :, :], 2)"]
)
def test_what_is_added_here_may_be_multiplied_there(bench, sum):
    verdict = judged(bench, sum)
    if IN_TF32 and "1)" in sum:
        assert verdict.outcome == FAIL and ProductOfSums.WRITE_A_DOT().text in verdict.lines
        assert "tf32" in verdict.lines[0] or "Digits are lost" in verdict.lines[0]
    else:
        assert verdict.outcome == PASS, verdict.lines


def test_a_product_in_full_precision_is_right(bench):
    verdict = judged(bench, 'tl.dot(a, b, input_precision="ieee")')
    assert verdict.outcome == PASS, verdict.lines
