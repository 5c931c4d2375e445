"""Several results, an updated argument, indices and numbers, as a GPU's replay process checks, draws and times them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from grader.judging.uses import CheckUse, OnGpuUse, ThroughputUse

pytest.importorskip("cuda.bindings")  # which a machine without a GPU need not have

from grader import indices, normal  # noqa: E402
from grader.explain.verdict import FAIL, PASS  # noqa: E402
from grader.judging.history import History  # noqa: E402
from grader.judging.judge import Judge  # noqa: E402
from tests.any_exercise.conftest import Graded  # noqa: E402
from tests.any_exercise.test_any_exercise import SOLUTION  # noqa: E402
from tests.gpu.replays_here import replays_here  # noqa: E402, F401

B, H, S, D, K = 2, 3, 20, 8, 100
RESULTS = {"z": K, "counts": B * H, "state": K}
DATA = (
    normal(B, H, S, D).stored_as(0, 2, 1, 3), normal(K).of("float32").every_second(), indices(K, below=B * H), 0.5,
    True,
)  # fmt: skip


@pytest.fixture(scope="module")
def solution(tmp_path_factory, interpreter) -> Iterator[Graded]:
    """The solution's processes, and what was recorded."""
    made = Graded(SOLUTION, tmp_path_factory.mktemp("solution"), interpreter)
    yield made
    made.run.end()


@pytest.fixture
def judge(solution, replays_here):  # noqa: F811
    """A judge that has seen nothing yet."""
    solution.run.history, solution.run.replays = History(), replays_here
    return Judge(solution.module.exercise, solution.run)


def spoiled(name: str):
    """A harm: the last element of a result is another one."""

    def harm(plan, buffers) -> None:
        buffers.view(plan.results[name])[..., -1:].add_(1)

    return harm


def as_asked(judge, kind: str):
    """The verdict of a check, of a draw, or of a measurement."""
    if kind == "check":
        return CheckUse.of("a test", *DATA, dtypes=("float16",)).verdict(judge)
    if kind == "draw":
        return OnGpuUse.of("a test", *DATA, dtypes=("float16",)).verdict(judge)
    return ThroughputUse.of("a test", *DATA, at_least=0.5).verdict(judge)


@pytest.mark.parametrize(("kind", "asked"), [("check", "check"), ("draw", "draw"), ("measure", "measure")])
def test_the_solution_is_right(judge, kind, asked):
    verdict = as_asked(judge, kind)
    assert verdict.outcome == PASS, verdict.lines
    assert asked in judge.run.replays.pool.asked


def test_each_result_is_compared_in_its_own_dtype(judge):
    assert as_asked(judge, "check").outcome == PASS
    outputs = judge.run.replays.pool.replies[-1]["outputs"]
    assert [(one["name"], one["dtype"], one["shape"]) for one in outputs] == [
        ("z", "float16", [K]), ("counts", "int32", [B, H]), ("state", "float32", [K])
    ]  # fmt: skip


def test_a_draw_compares_each_result_with_its_own_reference(judge):
    assert as_asked(judge, "draw").outcome == PASS
    summaries = judge.run.replays.pool.replies[-1]["summaries"]
    assert {name: one["elements"] for name, one in summaries.items()} == RESULTS


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("kind", ["check", "draw"])
def test_a_wrong_result_is_named(judge, kind, name):
    judge.run.replays.harm = spoiled(name)
    verdict = as_asked(judge, kind)
    assert (verdict.outcome, verdict.id) == (FAIL, "wrong-on-gpu"), verdict.lines
    wrong, first = (2, "0, 2") if name == "counts" else (1, K - 1)
    assert f"{wrong} of {RESULTS[name]} elements of {name} are wrong on the GPU" in verdict.lines[0]
    assert f"the first is {name}[{first}]" in verdict.lines[0]


@pytest.mark.parametrize("name", RESULTS)
def test_a_wrong_result_of_a_timed_call_is_found(judge, name):
    judge.run.replays.harm = spoiled(name)
    verdict = as_asked(judge, "measure")
    assert verdict.outcome == FAIL and "an output of a timed call is wrong" in " ".join(verdict.lines)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_does_not_repeat_is_named(judge, name):
    assert as_asked(judge, "check").outcome == PASS  # by now it is known that there are no atomics
    runs = []

    def harm(plan, buffers) -> None:
        runs.append(1)
        if len(runs) == 2:
            spoiled(name)(plan, buffers)

    judge.run.replays.harm = harm
    verdict = as_asked(judge, "draw")
    assert verdict.id == "race" and f" of {name} differ from run to run" in verdict.lines[0]


@pytest.mark.parametrize("name", ["x", "index"])
def test_an_argument_that_has_to_stay_is_named(judge, name):
    def harm(plan, buffers) -> None:
        (number,) = (place for place, buffer in enumerate(plan.buffers) if buffer.name == name)
        buffers.data(number)[-1] ^= 1

    judge.run.replays.harm = harm
    verdict = as_asked(judge, "draw")
    assert verdict.id == "input-changed" and f"changes {name}: inputs have to stay" in verdict.lines[0]


def test_what_lies_between_the_elements_of_the_updated_argument_has_to_stay(judge):
    def harm(plan, buffers) -> None:
        view = plan.results["state"]
        buffers.data(view.buffer)[view.offset + 4] ^= 1

    judge.run.replays.harm = harm
    verdict = as_asked(judge, "draw")
    assert verdict.id == "oob-store" and "between the elements of state" in verdict.lines[0]


def test_the_updated_argument_counts_as_read_and_written(judge):
    assert as_asked(judge, "measure").outcome == PASS
    read = 4 * B * H * S * D + 4 * K + 4 * K  # x in fp32, state, index
    assert judge.run.replays.pool.replies[-1]["bytes"] == read + 4 * K + 4 * B * H + 4 * K


def test_a_large_call_that_returns_another_dtype_is_refused(graded, replays_here):  # noqa: F811
    text = SOLUTION.replace("dtype=torch.int32, device", "dtype=torch.int32 if K < 1000 else torch.int64, device")
    judge = graded(text).judge
    judge.run.replays = replays_here
    large = (DATA[0], normal(2000).of("float32"), indices(2000, below=B * H), 0.5, True)
    verdict = OnGpuUse.of("a test", *large, dtypes=("float16",)).verdict(judge)
    assert verdict.id == "differs-compiled", verdict.lines


def test_memory_is_counted_for_every_result(judge):
    from grader.judging.gpu_memory import bytes_needed

    trial = judge.trial("a test", DATA, "float16")
    recording = judge.run.launch_plan(trial)
    buffers = sum(buffer.bytes for buffer in recording.plan.buffers)
    assert bytes_needed(trial, recording) > buffers + 2 * K + 4 * B * H + 4 * K
    assert torch.Size([B, H]) == torch.Size(recording.plan.results["counts"].shape)


def test_it_is_plotted_over_sizes_whose_indices_point_into_what_has_shrunk(judge):
    from grader.learn.sweep import Sweep

    data = normal(32, 3, 32, 16), normal(200).of("float32"), indices(200, below=96), 0.5, False
    asked = ThroughputUse.of("a test", *data, at_least=0.5)
    curves = Sweep({"yours": judge.run}, judge.exercise, asked, judge.run.replays).measure(lambda: None, print)
    assert curves.sizes == [16, 32] and None not in curves.rates["yours"] + curves.rates["torch"]
    moved = 4 * (32 * 3 * 32 * 16 + 4 * 200 + 32 * 3)
    assert curves.rates["yours"][-1] == pytest.approx(moved / 1e-3 / 1e9)
