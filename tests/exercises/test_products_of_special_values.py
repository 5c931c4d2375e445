"""An infinity that stands in an input is no sum that has left fp16, and is not told as one."""

from __future__ import annotations

from grader import lone, normal
from grader.explain.verdict import FAIL, PASS
from tests.conftest import ROOT

ID = "05_grouped_matmul"
SOLUTION = (ROOT / "solutions/05_grouped_matmul/grouped_matmul.py").read_text()
LOAD = "b = tl.load(b_ptrs, mask=(start + k[:, None] < K) & (n[None, :] < N), other=0.0)"
WRAPPED = (
    "b = tl.load(b_ptr + ((start + k[:, None]) % K) * stride_bk + n[None, :] * stride_bn, mask=n[None, :] < N, "
    "other=0.0)"
)
SMALL = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)


def test_zero_times_an_infinity_is_not_told_as_a_sum_that_is_too_large(bench):
    assert LOAD in SOLUTION
    judged = bench(SOLUTION.replace(LOAD, WRAPPED), ID)
    assert judged.check(normal(40, 50), normal(50, 40), **SMALL).outcome == PASS
    verdict = judged.check(normal(40, 3), lone(3, 40), **SMALL)
    assert verdict.outcome == FAIL and verdict.lines[0].startswith("c is wrong only where inf, NaN or 0 is expected")
