"""Every exercise's solution as a GPU's replay process checks, draws and times it, with the interpreter in its place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from grader.judging.uses import CheckUse, CompiledUse, OnGpuUse, ThroughputUse

pytest.importorskip("cuda.bindings")  # which a machine without a GPU need not have

from grader.course.folder import Folder  # noqa: E402
from grader.explain.verdict import FAIL, PASS  # noqa: E402
from grader.gpu.inside import process  # noqa: E402
from grader.judging.history import History  # noqa: E402
from grader.judging.judge import Judge  # noqa: E402
from grader.judging.run import Run  # noqa: E402
from grader.numerics.data_sets import normal, output  # noqa: E402
from tests.conftest import ROOT, exercise_of  # noqa: E402
from tests.gpu.replays_here import replays_here  # noqa: E402, F401

CALLS = {
    "01_masked_add": (normal(2000), normal(2000)),
    "02_strided_blocks": (normal(70, 90).transposed(), output(70, 90).every_second()),
    "03_softmax": (normal(37, 781).padded(),),
    "04_transpose": (normal(70, 33),),
    "05_grouped_matmul": (normal(96, 130), normal(130, 64).transposed()),
}


@pytest.fixture(params=CALLS, scope="module")
def solution(request, interpreter) -> Iterator[Run]:
    """Each solution's run in turn: its processes, and what was recorded."""
    run = Run(Folder(ROOT / "exercises" / request.param), "solutions", seed=1, interpreter=interpreter)
    yield run
    run.end()


@pytest.fixture
def judge(solution, replays_here):  # noqa: F811
    """A judge that has seen nothing yet."""
    solution.history, solution.replays = History(), replays_here
    one = Judge(exercise_of(solution.folder.id), solution)
    one.data = CALLS[solution.folder.id]
    return one


def verdicts(judge) -> list:
    anchor = "matmul" if "matmul" in judge.run.folder.id else "copy"
    return [
        CheckUse.of("a test", *judge.data).verdict(judge),
        OnGpuUse.of("a test", *judge.data).verdict(judge),
        ThroughputUse.of("a test", *judge.data, at_least=0.5, anchor=anchor).verdict(judge),
    ]


def test_a_solution_is_right_however_it_is_asked(judge):
    assert [verdict.outcome for verdict in verdicts(judge)] == [PASS] * 3
    assert {"check", "draw", "measure"} <= set(judge.run.replays.pool.asked)


def test_one_wrong_element_is_found_however_it_is_asked(judge):
    def harm(plan, buffers) -> None:
        (view,) = plan.results.values()
        out = buffers.view(view)
        out[(0,) * out.dim()] += 1

    judge.run.replays.harm = harm
    found = verdicts(judge)
    assert [verdict.outcome for verdict in found] == [FAIL] * 3
    (name,) = (result.name for result in judge.exercise.results)
    first = ", ".join("0" * len(judge.data[0].shape))
    assert all(f"the first is {name}[{first}]" in verdict.lines[0] for verdict in found[:2])
    assert "an output of a timed call is wrong" in " ".join(found[2].lines)


NARROW = ("x_ptr + offsets, mask=mask", "x_ptr + tl.where(offsets < 0, 0, offsets), mask=mask")


def narrow(bench, replays) -> Judge:
    """A kernel whose text says that it moves few bytes at a time; where every launch is timed as fast as a copy."""
    source = (ROOT / "solutions/01_masked_add/masked_add.py").read_text(encoding="utf-8")
    assert NARROW[0] in source
    judge = bench(source.replace(*NARROW)).judge
    judge.run.replays = replays
    judge.speed.timed = [ThroughputUse.of("a test", *CALLS["01_masked_add"], at_least=0.5)]
    return judge


def test_narrow_accesses_that_are_fast_as_measured_are_advice(bench, replays_here):  # noqa: F811
    judge, wide = narrow(bench, replays_here), CompiledUse.of("a test", normal(1 << 14), normal(1 << 14), vectors=True)
    verdict = wide.verdict(judge)
    assert verdict.outcome == PASS
    assert "fast as measured; but The load" in verdict.note and "bytes at a time" in verdict.note
    judge.speed.timed[0].at_least = 2.0
    verdict = wide.verdict(judge)
    assert (verdict.outcome, verdict.id) == (FAIL, "scalar-access")


def test_without_a_gpu_a_prediction_stands(bench):
    judge = narrow(bench, None)
    assert CompiledUse.of("a test", *[normal(1 << 14)] * 2, vectors=True).verdict(judge).id == "scalar-access"


def test_values_that_only_a_gpu_gets_wrong_are_told_as_what_the_compiler_did(bench, replays_here):  # noqa: F811
    source = (ROOT / "tests/judging/split_tile.py").read_text(encoding="utf-8")
    judge = bench(source, "05_grouped_matmul").judge
    judge.run.replays = replays_here
    replays_here.harm = lambda plan, buffers: buffers.data(plan.results["c"].buffer).view(torch.uint8)[:64].fill_(60)
    data = normal(96, 64), normal(64, 128)
    found = [CheckUse.of("a test", *data).verdict(judge), OnGpuUse.of("a test", *data).verdict(judge)]
    assert [verdict.id for verdict in found] == ["compiler-race"] * 2


def test_an_error_of_the_replay_process_itself_is_told_and_is_no_fault_of_a_kernel():
    reply, _ = process._answer({"kind": "measure"}, b"", lambda: None)
    assert reply == {"kind": "died", "message": "KeyError: 'arguments'"}
