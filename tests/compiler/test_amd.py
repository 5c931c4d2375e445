"""Kernels compiled for AMD GPUs: their resources are told in a test's line, and judged by no test."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from grader import normal
from grader.compiler import result
from grader.compiler.compiler_client import CompilerClient
from grader.compiler.result import Failed
from grader.course.trial import Trial
from grader.explain.verdict import PASS, Verdict
from grader.gpu.amd import excess, facts_of
from grader.gpu.models import AMD
from grader.gpu.plan import PlannedKernel
from grader.judging.amd_code import told_with
from grader.judging.uses import CompiledUse
from grader.numerics.arguments import DataOrNumber
from grader.wire.launch_abi import Metadata
from grader.wire.recorded_call import RecordedCall
from grader.wire.recorded_parts import Alternative, Choice, PlannedLaunch
from tests.conftest import ROOT, exercise_of
from tests.typed_commands import run_pytest

SOFTMAX = (normal(4096, 1024),)
SMALL_TILES = dict(BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)  # compiled in a tenth of the time that the solution's take
LARGE_TILES = dict(BLOCK_M=256, BLOCK_N=128)


def told(
    bench, id: str, target: str, data: tuple[DataOrNumber, ...], change: tuple[str, str] = ("", ""), **constants: int
) -> str:
    """Returns what the line of a test of machine code tells of an AMD GPU, for the solution with this change."""
    source = (ROOT / "solutions" / id / f"{id[3:]}.py").read_text()
    assert change[0] in source
    judge = bench(source.replace(*change, 1), id).judge
    judge.run.amd = AMD[target]
    verdict = CompiledUse.of("test_code", *data, **constants).verdict(judge)
    assert verdict.outcome == PASS, verdict.lines
    judged, _, amd = verdict.note.partition("; ")
    assert judged.startswith("sm_90: ")
    return amd


@pytest.mark.parametrize("target", AMD)
def test_a_kernel_is_compiled_for_each_target(bench, target):
    note = told(bench, "03_softmax", target, SOFTMAX)
    assert re.fullmatch(rf"{target}: \d+ registers, \d+ B shared, 16-byte accesses", note), note


def test_narrow_accesses_are_told(bench):
    split = ("mask = cols < N", "mask = (cols < N) & (cols * 7 != row + 1000000)")  # for all the compiler knows
    assert told(bench, "03_softmax", "gfx942", SOFTMAX, split).endswith(", 4-byte accesses")


@pytest.mark.parametrize(("target", "instruction"), [("gfx950", "mfma"), ("gfx1201", "wmma")])
def test_instructions_that_multiply_tiles_are_told(bench, target, instruction):
    assert f", {instruction}, " in told(
        bench, "05_grouped_matmul", target, (normal(512, 512), normal(512, 512)), **SMALL_TILES
    )


def test_a_kernel_that_does_not_fit_is_told(bench):
    note = told(bench, "04_transpose", "gfx942", (normal(512, 512),), **LARGE_TILES)
    # Triton 3.6 needs less memory for it.
    needed = r"\d+ KiB of shared memory, of 64|2048 threads, of 1024"
    assert re.fullmatch(f"gfx942: does not fit: it needs ({needed})", note), note


def test_too_many_warps_are_told():
    assert excess(AMD["gfx942"], 32, 0) == "2048 threads, of 1024" and excess(AMD["gfx1201"], 32, 0) == ""


def test_what_cannot_be_compiled_is_a_failure():
    compiler = CompilerClient()
    try:
        assert isinstance(compiler.assembly("no kernel", {}, AMD["gfx942"]), Failed)
    finally:
        compiler.end()


ASSEMBLY = """
kernel:
    .loc 1 12 30                        ; softmax.py:12:30
    buffer_load_dwordx4 v[2:5], v10, s[16:19], 0 offen
    global_load_d16_hi_b16 v2, v[4:5], off
    .loc 2 43 13 is_stmt 1              ; standard.py:43:13 @[ softmax.py:14:8 ]
    global_load_lds_dwordx4 v[2:3], off
    v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]
    .loc 1 20 0                         ; softmax.py:20:0
    global_store_byte v[2:3], v4, off
    scratch_store_b128 off, v[0:3], s32
    .private_segment_fixed_size: 2500
    .vgpr_count:     256
"""


def test_registers_spills_accesses_and_instructions_are_read():
    facts = facts_of("kernel", 8, 1024, AMD["gfx1100"], {"amdgcn": ASSEMBLY}, "softmax.py")
    assert (facts.registers, facts.spilled_bytes, facts.shared, facts.tensor_cores) == (256, 2500, 1024, "wmma")
    assert [(access.kind, access.bytes, access.line) for access in facts.accesses] == [
        ("load", 16, 12), ("load", 2, 12), ("load", 16, 14), ("store", 1, 20),
    ]  # fmt: skip
    assert facts.spills and facts.lanes == 32


@pytest.mark.parametrize(
    ("steps", "note"),
    [
        ([PlannedLaunch(0, [1, 1, 1], [])], "256 registers, 2500 bytes spilled, wmma, 1-byte accesses"),
        ([], "not compiled: no configuration launches a kernel"),
    ],
)
def test_a_configuration_that_launches_nothing_is_passed_over(steps, note):
    choice = Choice([Alternative("BLOCK: 1", "", []), Alternative("BLOCK: 2", "", steps)])
    call = RecordedCall(kernels=["kernel"], steps=[choice])
    made = PlannedKernel("kernel", 0, 8, 1, 1, False, False, texts={"amdgcn": ASSEMBLY})
    code = SimpleNamespace(assembly=lambda kernel, model: result.CompilerResult(made, Metadata()))
    recorded = SimpleNamespace(call=call)
    run = SimpleNamespace(
        amd=AMD["gfx1100"], filename="softmax.py", machine_code=code, recorded_call=lambda *_: recorded
    )
    verdict = told_with(Verdict(PASS, note="sm_90"), run, Trial(exercise_of("03_softmax"), "", (), None, ""))
    assert verdict.note == f"sm_90; gfx1100: {note}"


def test_a_run_says_that_speed_is_judged_elsewhere():
    arguments = "exercises/03_softmax", "-k", "registers", "--submission", "solutions", "--target", "gfx942"
    done = run_pytest(*arguments, cwd=ROOT)
    assert done.status == 0, done.out
    out = " ".join(done.out.split())  # as wide as the terminal is
    assert "compiled for sm_90 and gfx942; no GPU; speed is judged on NVIDIA GPUs alone)" in out
    assert re.search(r"stays in registers sm_90: .*; gfx942: \d+ registers", out)
