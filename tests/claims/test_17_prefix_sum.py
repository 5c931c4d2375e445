"""Lesson 17: how many additions of a scan wait for one another, and that a block has no index for a lane."""

from __future__ import annotations

import re

import pytest
import triton
import triton.language as tl

from tests.claims.compiled import compiled

INSTRUCTION = re.compile(r"^\s*(?:@!?%p\d+ )?([a-z0-9_.:]+)\s+(.*);", re.MULTILINE)
REGISTER = re.compile(r"%[a-z]+\d+")


@triton.jit
def scan_kernel(x_ptr, z_ptr, B: tl.constexpr):
    tl.store(z_ptr + tl.arange(0, B), tl.cumsum(tl.load(x_ptr + tl.arange(0, B)), 0))


@triton.jit
def last_lane_kernel(x_ptr, z_ptr, B: tl.constexpr):
    tl.store(z_ptr, tl.cumsum(tl.load(x_ptr + tl.arange(0, B)), 0)[B - 1])


def longest_chain(ptx: str) -> int:
    """How many additions in fp32 the result waits for at most; what comes from shared memory has waited for all that
    was stored there before."""
    waited: dict[str, int] = {}
    shared = longest = 0
    for operation, operands in INSTRUCTION.findall(ptx):
        registers = REGISTER.findall(operands)
        if operation.startswith("st."):
            latest = max(waited.get(one, 0) for one in registers)
            shared, longest = (max(shared, latest), longest) if ".shared" in operation else (shared, latest)
            continue
        made = operands.partition("}")[0] if operands.startswith("{") else operands.partition(",")[0]
        results = REGISTER.findall(made)
        sources = [waited.get(one, 0) for one in registers[len(results) :]]
        before = shared if operation.startswith("ld.shared") else max(sources, default=0)
        is_sum = operation.startswith("add") and "f32" in operation
        waited |= dict.fromkeys(results, before + is_sum)
    return longest


@pytest.mark.parametrize(("lanes", "warps", "additions"), [(4096, 8, 40), (2048, 8, 24), (1024, 4, 16)])
def test_a_scan_waits_in_threads_in_warps_and_in_line(lanes, warps, additions):
    """3 additions in a thread, 5 in a warp, and one for each 128 lanes."""
    assert additions == 3 + 5 + lanes // 128
    assert longest_chain(compiled(scan_kernel, "*fp32 *fp32", True, warps, B=lanes)["ptx"]) == additions


def test_a_block_has_no_index_for_a_lane():
    with pytest.raises(Exception, match="unsupported tensor index"):
        compiled(last_lane_kernel, "*fp32 *fp32", B=128)
