"""What a call takes of memory: the tensors that torch holds, and what is counted for a call before it is made."""

from __future__ import annotations

import pytest
import torch

from grader.course.folder import Folder, load_test_file
from grader.gpu.inside import checking
from grader.judging import gpu_memory
from grader.judging.gpu_memory import PeakBytes
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import CheckUse, uses_asked
from grader.numerics.data_sets import Data
from tests.conftest import folders_with_kernels
from tests.gpu.uncompiled import Uncompiled

X = 1 << 10  # elements, 4 bytes each


def peak_of(work) -> float:
    """In tensors of X elements in float32."""
    with PeakBytes() as memory:
        work()
    return memory.peak / (4 * X)


@pytest.mark.parametrize("device", ["meta", "cpu"])
@pytest.mark.parametrize(
    ("held", "work"),
    [
        (1, lambda x: x + 1),
        (2, lambda x: (x + 1) * 2),  # what is added lives until it is multiplied
        (2, lambda x: ((x + 1) * 2) - 1),  # and no longer
        (3, lambda x: (x + 1, x + 2, x + 3)),
        (1, lambda x: (x + 1).view(-1, 2)[::2].t()),  # views are no memory of their own
        (1, lambda x: (x + 1).mul_(2).sub_(1)),  # nor is what is changed in place
        (0, lambda x: x.view(2, -1)),  # and x was there before
        (2, lambda x: torch.cat([x, x])),
        (2, lambda x: x.double()),
        (1, lambda x: torch.split(x + 1, X // 4)),
    ],
)
def test_the_peak_is_of_what_lives_at_a_time(device, held, work):
    x = torch.zeros(X, device=device)
    assert peak_of(lambda: work(x)) == held


def test_what_is_left_after_one_peak_counts_in_the_next():
    def work() -> None:
        kept = torch.zeros(X)
        _ = kept + 1 + 1
        del _
        _ = torch.zeros(2 * X)

    assert peak_of(work) == 3


# ---- what is counted for a call against what its comparison holds, here; tests/gpu/test_memory.py: all of it ---------


@pytest.fixture(params=folders_with_kernels(), ids=lambda folder: folder.id)
def largest(request, monkeypatch):
    """(exercise, trial, recording) of the largest call of an exercise that is made here, compared in small parts."""
    for module in (gpu_memory, checking):
        monkeypatch.setattr(module, "MOST_COMPARED", 256)
    monkeypatch.setattr(gpu_memory, "KEPT_BY_LIBRARIES", 0)
    monkeypatch.setattr(checking, "quick_error", lambda *_: torch.inf)  # compared in full
    folder: Folder = request.param
    file, run = load_test_file(folder), Run(folder, str(folder.solution_file), seed=1)
    run.machine_code = Uncompiled()
    call = max(
        uses_asked(file, CheckUse), key=lambda call: sum(one.elements for one in call.data if isinstance(one, Data))
    )
    trial = Judge(file.exercise, run).trial("test", call.data, file.exercise.dtypes[0], constants=call.constants)
    yield file.exercise, trial, run.launch_plan(trial)
    run.end()


def test_a_comparison_takes_no_more_than_is_counted(largest):
    exercise, trial, recording = largest
    data, seeds = list(trial.data), list(range(len(trial.data)))
    given = [checking._drawn_anew(one, trial.dtype, seed, torch.device("cpu")) for one, seed in zip(data, seeds)]
    refs = exercise.expected(checking.exact(given))
    views = recording.plan.results
    results = {name: ref.to(getattr(torch, view.dtype)) for (name, view), ref in zip(views.items(), refs, strict=True)}
    with PeakBytes() as memory:
        checking.compared(exercise, trial.bounds, results, data, trial.dtype, seeds)
    kept = sum(one.numel() * one.itemsize for one in results.values())
    assert 0 < kept + memory.peak <= gpu_memory.bytes_needed(trial, recording)
