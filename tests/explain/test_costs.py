"""The cost of a call's traffic: scattered accesses count by their share of all that is moved."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from grader import normal
from grader.explain.cost import TrafficLimits, at_its_line, traffic_verdict
from grader.explain.verdict import FAIL, PASS
from grader.judging.uses import CompiledUse, TrafficUse
from grader.submission.text import read_submission
from grader.wire.messages import Launch, Traffic
from grader.wire.reply import Reply
from tests.conftest import ROOT, exercise_of


@pytest.mark.parametrize(("elements", "outcome"), [(10_000, PASS), (100_000, FAIL)])
def test_a_short_vector_may_be_read_with_gaps(elements, outcome):
    """Whole sectors of 32 bytes for 4 bytes each: 0.32 MB beside 8 MB are little, 3.2 MB are not."""
    used, much = 4 * elements, 8_000_000
    x = Traffic("x", read=used, size=used, used=used, moved=8 * used, asked=used)
    z = Traffic("z", written=much, size=much, used=much, moved=much, asked=much)
    verdict = traffic_verdict(Reply(traffic=[x, z]), TrafficLimits(moved=1.5), exercise_of("01_masked_add"), at_once=1)
    assert verdict.outcome == outcome


@pytest.mark.parametrize(("allowed", "outcome"), [(True, PASS), (False, FAIL)])
def test_atomics_may_be_ruled_out(allowed, outcome):
    launches = [
        Launch(kernel, [1], atomics=kernel == "adds", float_sums=kernel == "adds") for kernel in ("stores", "adds")
    ]
    limits = TrafficLimits(float_atomics=allowed)
    verdict = traffic_verdict(Reply(launches=launches), limits, exercise_of("01_masked_add"), at_once=1)
    assert verdict.outcome == outcome
    assert allowed or (
        verdict.id == "race" and verdict.lines[0].startswith("Programs add floats to what others have added")
    )


@pytest.mark.parametrize(
    ("launched", "idle", "said"),
    [
        (2048, 2044, "2048 programs are launched, and 2044 of them have nothing to do: 4 are enough."),
        (129, 1, "129 programs are launched, and 1 of them has nothing to do: 128 are enough."),
        (2048, 2047, "2048 programs are launched, and 2047 of them have nothing to do: 1 is enough."),
        (2048, 1000, "2048 programs are launched; 128 are more than enough: give each a block."),
        (2048, 0, "2048 programs are launched; 128 are more than enough: give each a block."),
    ],
)
def test_of_programs_with_nothing_to_do_the_others_are_enough(launched, idle, said):
    reply = Reply(launches=[Launch("kernel", [launched], idle=idle)])
    verdict = traffic_verdict(reply, TrafficLimits(programs=128), exercise_of("01_masked_add"), at_once=1)
    assert verdict.id == "too-many-programs" and verdict.lines[0].startswith(said)


KERNEL = "@triton.jit\ndef kernel(z_ptr):\n    for k in range(3):\n        tl.store(z_ptr, k)\n"


@pytest.mark.parametrize(("stores", "line"), [([[4]], 4), ([[4], []], 4), ([[4, 5]], 0), ([[3], [4]], 0), ([[]], 0)])
def test_what_is_written_too_often_is_told_by_the_line_of_the_only_store(tmp_path, stores, line):
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    reply = Reply(traffic=[Traffic("z", written=24, size=8, used=8)])
    verdict = traffic_verdict(reply, TrafficLimits(writes={"z": 1}), exercise_of("01_masked_add"), at_once=1)
    kernels = [SimpleNamespace(store_lines=lines) for lines in stores]
    verdict = at_its_line(verdict, read_submission(file), lambda: kernels)
    assert verdict.line == line and verdict.lines[0] == "z is written 3 times; once is enough."
    assert verdict.lines[1:] == (["Line 4:  tl.store(z_ptr, k)"] if line else [])


def test_threads_of_all_blocks_of_a_program_share_its_tile(bench):
    source = (ROOT / "solutions/01_masked_add/masked_add.py").read_text(encoding="utf-8")
    text = source.replace("num_warps=8", "num_warps=4, num_ctas=2")
    assert text != source
    verdict = CompiledUse.of("test_code", normal(4096), normal(4096), vectors=True, BLOCK_N=256).verdict(
        bench(text).judge
    )
    assert verdict.lines[1] == (
        "The tile is shared by 256 threads (8 warps) and leaves each 4 bytes: make the tile larger."
    )


COUNTED = [("for start in range(0, N, BLOCK_N):", "for step in range(0, N):\n        start = step * BLOCK_N")]
WHILE = [
    ("    for start in range(0, N, BLOCK_N):", "    start = 0\n    while start < N * BLOCK_N:"),
    ("other=0.0)\n", "other=0.0)\n        start += BLOCK_N\n"),
]
ONE_AHEAD = [
    ("start in range(0, N, BLOCK_N)", "start in range(BLOCK_N, N + BLOCK_N, BLOCK_N)"),
    ("    for", "    x = tl.load(x_ptr + row * stride_xm + lanes * stride_xn, mask=lanes < N, other=0.0)\n    for"),
    ("partial += tl.load", "partial += x\n        x = tl.load"),
]


@pytest.mark.parametrize(
    ("changes", "columns", "said"),
    [
        ([], 64, ""),
        (COUNTED, 64, "Of 192 iterations that programs make of the loop in line 18, 186 load and store nothing."),
        (WHILE, 64, "Of 192 iterations that programs make of the loop in line 19, 186 load and store nothing."),
        (ONE_AHEAD, 64, ""),
        (ONE_AHEAD, 32, ""),  # the only iteration of each program loads nothing
    ],
)
def test_a_loop_most_of_whose_iterations_load_nothing_is_told_with_its_line(bench, changes, columns, said):
    text = (ROOT / "solutions/07_row_sum/row_sum.py").read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    use = TrafficUse.of("test_cost", normal(3, columns), BLOCK_N=32)
    verdict = use.verdict(bench(text, "07_row_sum").judge)
    assert verdict.outcome == (FAIL if said else PASS), verdict.lines
    assert not said or (verdict.id == "idle-iterations" and verdict.lines[0].startswith(said))
    assert not said or verdict.lines[-1].startswith(f"Line {verdict.line}:  ")
