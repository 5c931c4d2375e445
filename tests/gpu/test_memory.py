"""A call that does not fit into the GPU's memory: nobody's fault, unless its submission made it so large."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.exercise import Folder, load_test_file
from grader.gpu_memory import blame, bytes_needed
from grader.inputs import normal
from grader.judge import Judge
from grader.run import Run
from tests.conftest import ROOT

FOLDER = Folder(ROOT / "exercises" / "01_masked_add")
N = 1 << 27  # 0.5 GB each: 14 GB with all that a comparison takes
SMALL_GPU, LARGE_GPU = 16 << 30, 80 << 30
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
        trial = Judge(exercise, runs[-1]).trial("test", (normal(N), normal(N)), "float32")
        recording = runs[-1].recording(exercise, trial)
        assert recording.plan.error is None and not recording.plan.refusals
        verdict = blame(exercise, trial, recording, memory)
        return " ".join(verdict.lines) if verdict else "", bytes_needed(recording)

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
    assert "masked_add allocates 68.7 GB beside its arguments and its result" in blamed


def test_memory_that_the_task_does_not_need_is_nothing_to_blame_where_the_task_itself_is_too_large(judged, solution):
    """A right kernel that adds in parts was refused on a GPU that is too small for the solution as well."""
    assert judged(solution.replace(FIRST, FIRST + SCRATCH), SMALL_GPU)[0] == ""


def test_a_little_scratch_is_anyones_right(judged, solution):
    scratch = "    scratch = torch.empty(1 << 24, device=x.device)\n"
    assert judged(solution.replace(FIRST, FIRST + scratch))[0] == ""


def test_scratch_counts_once_while_results_are_compared(judged, solution):
    """Counted for each repetition it kept a product that is added from slices of K off an H200, where it fits."""
    scratch = "    scratch = torch.empty(1 << 24, device=x.device)\n"
    assert judged(solution.replace(FIRST, FIRST + scratch))[1] == judged(solution)[1] + (4 << 24)
