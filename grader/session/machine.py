"""What judges here: the GPU if there is one, what to compile for, how a submission is shut in. Imports no torch.

The processes that a run needs import torch or Triton for seconds. They are started before this process imports more, so
that all of them do it side by side.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import pytest

from grader.course.folder import Folder
from grader.course.regions import stub_text
from grader.gpu.device import Device, driver_device, model_here
from grader.gpu.models import AMD, MODELS, AmdModel
from grader.gpu.pool.replays import shared_replays
from grader.processes import bubblewrap
from grader.processes.faults import MachineFault
from grader.processes.triton_forkserver_client import shared_nursery
from grader.submission.text import read_submission
from grader.wire.messages import GpuModel

SAMPLES_AT_FIRST = 2  # of a measured speed: so many processes are started ahead


@dataclass(frozen=True)
class Machine:
    device: Device | str  # or why there is none
    model: GpuModel
    sandboxed: bool
    amd: AmdModel | None = None  # for which kernels are compiled, too


def machine_for(option, folders: list[Folder]) -> Machine:
    """From pytest's options. Starts what a run will need, if there is a submission that may have to be run.

    Raises pytest.UsageError where --device cuda cannot be had.
    """
    sandboxed, runs = bubblewrap.wanted(option.isolation), may_run(option, folders)
    if runs:
        _start(None)  # needed first, and asking the driver for a GPU takes 0.2 s
    amd = AMD.get(option.target)
    target = option.target if amd is None else None
    device: Device | str = "--device cpu" if option.device == "cpu" else driver_device()
    if isinstance(device, Device) and target and device.model.target != target:
        device = f"kernels are compiled for {target}, and the GPU here is {device.model.target}"
    if option.device == "cuda" and not isinstance(device, Device):
        raise pytest.UsageError(f"--device cuda: {device}. Next: course doctor")
    model = MODELS[target] if target else model_here(device)
    if runs:
        for number in (bubblewrap.RECORDER, bubblewrap.FRONT_END) if sandboxed else (None,):
            _start(model, number)
        if isinstance(device, Device):
            shared_replays(device).start(SAMPLES_AT_FIRST, checkers=1)
    return Machine(device, model, sandboxed, amd)


def may_run(option, folders: list[Folder]) -> bool:
    """Returns whether there is a submission that may have to be run."""
    return not option.collectonly and any(_may_run(folder, option.submission) for folder in folders)


def is_usual(option) -> bool:
    """Returns True where a submission is run in the processes that JudgingProcess.prepare starts."""
    return option.device == "auto" and not option.target and not bubblewrap.wanted(option.isolation)


def _start(model: GpuModel | None, number: int | None = None) -> None:
    with contextlib.suppress(MachineFault):  # the first call tells
        shared_nursery(model, number)


def _may_run(folder: Folder, submission: str | None) -> bool:
    """Not the stub as it was given."""
    read = read_submission(folder.submission_file(submission))
    if read.failure is not None or not folder.solution_file.exists():
        return read.failure is None
    return read.source != stub_text(folder.solution_file.read_text(encoding="utf-8")).encode()
