"""Lesson 27: what two stages load ahead, and how much the loop over queries spills at D = 128."""

from __future__ import annotations

from typing import Any

import pytest

from grader.wire.cubin import read_cubin
from tests.claims.compiled import RELEASE
from tests.claims.of_solutions import buffers, compiled_for_fp16, solution

SOLUTION = solution("27")
KINDS = {"scale": "fp32", "lse_ptr": "*fp32", "delta_ptr": "*fp32"}
SPILLED_ON_SM_120 = {(3, 6): 24, (3, 7): 112, (3, 8): 120, (3, 9): 120}


def loop(name: str, **options: Any) -> dict[str, Any]:
    """A kernel with tiles of 64 x 64 and D = 128, for contiguous tensors."""
    kernel = getattr(SOLUTION, f"attention_{name}_kernel")
    whole_rows = {f"stride_{one}d": 1 for one in ("q", "k", "v", "do") if f"stride_{one}d" in kernel.arg_names}
    return compiled_for_fp16(kernel, KINDS, D=128, BLOCK_M=64, BLOCK_N=64, **whole_rows, **options)


@pytest.mark.parametrize("name", ["dkdv", "dq"])
def test_with_one_stage_no_load_runs_ahead_and_with_two_both_tiles_of_the_next_iteration_do(name):
    one, two = (buffers(loop(name, stages=stages)["ttgir"]) for stages in (1, 2))
    assert one == [] and two[:2] == ["2x64x128xf16"] * 2


def test_the_loop_over_queries_spills_on_sm_120_and_next_to_nothing_on_sm_90():
    spilled = {arch: read_cubin(loop("dkdv", stages=2, arch=arch)["cubin"]).stack_bytes for arch in (90, 120)}
    assert spilled[90] <= 8 and spilled[120] == SPILLED_ON_SM_120[RELEASE]
