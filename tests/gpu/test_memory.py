"""A call that does not fit into the GPU's memory: nobody's fault, unless its submission made it so large."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from grader.course.folder import Folder, all_folders, load_test_file
from grader.course.trial import Trial
from grader.gpu.device import Device, device_here
from grader.gpu.plan import PackedPlan
from grader.judging.gpu_memory import SHARE_OF_MEMORY, blame, bytes_needed
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.numerics.data_sets import Data, integers, normal, output, special
from tests.conftest import ROOT, folders_with_kernels
from tests.gpu.uncompiled import Uncompiled

on_a_gpu = pytest.mark.skipif(not isinstance(device_here(), Device), reason="needs a GPU")
FOLDER = Folder(ROOT / "exercises" / "01_masked_add")
N = 1 << 27  # 0.5 GB each: 6 GB with all that a comparison takes
SMALL_GPU, LARGE_GPU = 4 << 30, 80 << 30
SCRATCH = "    scratch = torch.empty(1 << 34, device=x.device)\n"
FIRST, LAST = "    z = torch.empty_like(x)\n", "    return z\n"


@pytest.fixture
def judged(tmp_path: Path):
    """judged(text): (who is to blame, bytes needed) for a large call of 01's entry with this text."""
    runs: list[Run] = []

    def judged(text: str, memory: int = LARGE_GPU) -> tuple[str, int]:
        (tmp_path / "masked_add.py").write_text(text)
        exercise = load_test_file(FOLDER).exercise
        runs.append(Run(FOLDER, str(tmp_path / "masked_add.py"), seed=1))
        runs[-1].machine_code = Uncompiled()
        trial = Judge(exercise, runs[-1]).trial("test", (normal(N), normal(N)), "float32")
        recording = runs[-1].launch_plan(trial)
        assert recording.plan.error is None and not recording.plan.refusals
        verdict = blame(trial, recording, memory)
        return " ".join(verdict.lines) if verdict else "", bytes_needed(trial, recording)

    yield judged
    for run in runs:
        run.end()


@pytest.fixture
def solution() -> str:
    text = FOLDER.solution_file.read_text()
    assert FIRST in text and LAST in text
    return text


@pytest.mark.parametrize("memory", [SMALL_GPU, LARGE_GPU])
def test_a_call_that_is_large_by_nature_is_nobodys_fault(judged, solution, memory):
    assert judged(solution, memory)[0] == ""


def test_a_result_of_another_size_than_it_should_have_is_no_reason_to_skip(judged, solution):
    blamed, needed = judged(solution.replace(LAST, "    return z.expand(1 << 20, -1)\n"))
    assert "returns another result" in blamed and needed > 1e15


def test_memory_that_the_task_does_not_need_is_no_reason_to_skip(judged, solution):
    blamed, _ = judged(solution.replace(FIRST, FIRST + SCRATCH))
    assert "masked_add allocates 68.7 GB besides its arguments and its result" in blamed


def test_memory_that_the_task_does_not_need_is_nothing_to_blame_where_the_task_itself_is_too_large(judged, solution):
    """A right kernel that adds in parts was refused on a GPU that is too small for the solution as well."""
    assert judged(solution.replace(FIRST, FIRST + SCRATCH), SMALL_GPU)[0] == ""


def test_a_little_scratch_is_anyones_right(judged, solution):
    scratch = "    scratch = torch.empty(1 << 24, device=x.device)\n"
    assert judged(solution.replace(FIRST, FIRST + scratch))[0] == ""


def test_scratch_counts_at_most_once(judged, solution):
    """Counted for each repetition it kept a product that is added from slices of K off an H200, where it fits."""
    scratch = "    scratch = torch.empty(1 << 30, device=x.device)\n"
    more = judged(solution.replace(FIRST, FIRST + scratch))[1] - judged(solution)[1]
    assert 0 < more <= 4 << 30


# ---- the calls of the course -----------------------------------------------------------------------------------------


def recordings(folder: Folder, run: Run) -> Iterator[tuple[Trial, PackedPlan]]:
    """Of each call that only a GPU gets through, by the solution."""
    file = load_test_file(folder)
    judge, trials = Judge(file.exercise, run), []

    def on_gpu(*data, bound=None, dtypes=(), **constants) -> None:
        for dtype in dtypes or file.exercise.dtypes:
            trials.append(judge.trial("test", data, dtype, bound, constants))

    for test in vars(file).values():
        if inspect.isfunction(test) and list(inspect.signature(test).parameters) == ["on_gpu"]:
            test(on_gpu)
    return ((trial, run.launch_plan(trial)) for trial in trials)


@pytest.fixture(params=folders_with_kernels(), ids=lambda folder: folder.id)
def largest(request):
    """The trial and the launch plan of the call of an exercise that takes most memory; compiled where it can run."""
    run = Run(request.param, str(request.param.solution_file), seed=1)
    machine_code, run.machine_code = run.machine_code, Uncompiled()
    trial, recording = max(recordings(request.param, run), key=lambda call: bytes_needed(*call))
    if isinstance(device_here(), Device):
        run.machine_code = machine_code
        recording = run.launch_plan(trial)
    yield trial, recording
    run.end()


def card(trial: Trial) -> float:
    """Bytes of the smallest card that the call is meant for: tensors that span 2**31 elements want a large one."""
    views = [one.shape_on("meta", trial.dtype) for one in trial.data if isinstance(one, Data)]
    spans = [1 + sum((size - 1) * stride for size, stride in zip(view.shape, view.stride())) for view in views]
    return 24e9 if max(spans) < 1 << 31 else 80e9


def test_every_call_of_the_course_fits_into_24_gigabytes_or_says_that_it_is_for_larger_cards(largest):
    """By count; whether the count is right: the test after this one, on a GPU."""
    trial, recording = largest
    assert 5e8 < bytes_needed(trial, recording) < SHARE_OF_MEMORY * card(trial)


def share_used(trial: Trial, recording: PackedPlan) -> float:
    """The peak of a call, drawn, replayed and compared here, over what is counted for it."""
    from grader.gpu.inside.checking import compared, drawn, replayed
    from grader.gpu.inside.launcher import Functions

    plan, arguments, data = recording.plan, recording.arguments, list(trial.data)
    seeds = list(range(len(data)))
    torch.zeros(1, device="cuda")  # makes the context
    torch.cuda.set_per_process_memory_fraction((card(trial) - 1e9) / torch.cuda.get_device_properties(0).total_memory)
    torch.cuda.reset_peak_memory_stats()
    try:
        fill = drawn(data, arguments, seeds)
        results, _ = replayed(plan, Functions(plan), 0, fill, arguments, trial.exercise.written)
        summaries = compared(trial.exercise, trial.bounds, results, data, trial.dtype, seeds)
        assert not any(summary.wrong for summary in summaries.values())
        share = torch.cuda.max_memory_allocated() / bytes_needed(trial, recording)
        print(f"{[result.shape for result in results.values()]}: {share:.2f} of what is counted")
        return share
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()  # other tests run beside this one


@pytest.fixture(params=[True, False], ids=["a quick look is enough", "compared in full"])
def in_full(request, monkeypatch) -> bool:
    from grader.gpu.inside import checking

    if not request.param:
        monkeypatch.setattr(checking, "quick_error", lambda *_: float("inf"))
    return not request.param


@on_a_gpu
def test_what_is_counted_is_what_is_used(largest, in_full):
    """On a part of the GPU as large as the card that the call is meant for. A quick look takes less than is counted.

    27 takes less than half (0.45 on an H200), quick or in full: what is counted for bounds that need all pairs
    covers several pieces at a time. A quick look at a result that cannot be cut takes a third.
    """
    least = 0.4 if largest[0].exercise.cut else 0.6 if in_full else 0.3
    assert least < share_used(*largest) <= 1


M, K = 1 << 14, 1 << 13  # 0.5 GB in float32
MATRIX = normal(M, K)


@on_a_gpu
@pytest.mark.usefixtures("in_full")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("number", "data"),
    [
        pytest.param("02", (integers(M, K), output(M, K)), id="integers, copied"),
        pytest.param("02", (special(MATRIX), output(M, K)), id="special values"),
        pytest.param("02", (MATRIX.every_second(), output(M, K)), id="a source with holes"),
        pytest.param("02", (MATRIX, output(M, K).every_second()), id="a target with holes"),
        pytest.param("02", (MATRIX.padded(), output(M, K).transposed()), id="rows with padding"),
        pytest.param("02", (MATRIX.expanded(), output(M, K)), id="one row, expanded"),
        pytest.param("03", (integers(M, K),), id="integers, softmax"),
        pytest.param("03", (MATRIX * 3 - 20,), id="changed twice"),
        pytest.param("03", (MATRIX.every_second(),), id="a softmax of a view with holes"),
    ],
)
def test_other_values_and_layouts_take_no_more_than_is_counted(number, data, dtype):
    (folder,) = [folder for folder in all_folders(ROOT) if folder.number == number]
    exercise, run = load_test_file(folder).exercise, Run(folder, str(folder.solution_file), seed=1)
    try:
        trial = Judge(exercise, run).trial("test", data, dtype)
        assert share_used(trial, run.launch_plan(trial)) <= 1
    finally:
        run.end()


LEFT_AFTER = """
import torch
from grader.gpu.inside.process import KEPT_BYTES, give_memory_back

for bytes_used in (KEPT_BYTES // 2, 2 * KEPT_BYTES):
    torch.empty(bytes_used, dtype=torch.uint8, device="cuda")
    give_memory_back()
    print(torch.cuda.memory_reserved() / KEPT_BYTES)
"""


@on_a_gpu
def test_a_little_memory_stays_for_the_next_question_and_more_is_given_back():
    """In a process of its own: other tests leave memory in this one."""
    told = subprocess.run([sys.executable, "-c", LEFT_AFTER], cwd=ROOT, capture_output=True, text=True, check=True)
    little, much = map(float, told.stdout.split())
    assert little >= 0.5 and much == 0
