"""Every exercise's solution as a GPU's replay process checks, draws and times it, with the interpreter in its place."""

from __future__ import annotations

import pytest

pytest.importorskip("cuda.bindings")  # which a machine without a GPU need not have

from grader.course.folder import Folder  # noqa: E402
from grader.explain.verdict import FAIL, PASS  # noqa: E402
from grader.numerics.data_sets import normal, output  # noqa: E402
from tests.conftest import ROOT  # noqa: E402
from tests.gpu.replays_here import replays_here  # noqa: E402, F401

CALLS = {
    "01_masked_add": (normal(2000), normal(2000)),
    "02_strided_blocks": (normal(70, 90).transposed(), output(70, 90).every_second()),
    "03_softmax": (normal(37, 781).padded(),),
    "04_transpose": (normal(70, 33),),
    "05_grouped_matmul": (normal(96, 130), normal(130, 64).transposed()),
}


@pytest.fixture(params=CALLS)
def judge(request, bench, replays_here):  # noqa: F811
    source = Folder(ROOT / "exercises" / request.param).solution_file.read_text(encoding="utf-8")
    one = bench(source, request.param).judge
    one.run.replays = replays_here
    one.data = CALLS[request.param]
    return one


def verdicts(judge) -> list:
    anchor = "matmul" if "matmul" in judge.run.folder.id else "copy"
    return [
        judge.check("a test", judge.data),
        judge.on_gpu("a test", judge.data),
        judge.throughput("a test", judge.data, anchor, 0.5),
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
