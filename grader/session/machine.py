"""The machine of a session: its GPU if there is one, the target of its kernels, and how a submission is shut in.

This module imports no torch. The processes that a run needs import torch or Triton for seconds. They are started before
this process imports more, so that all import at the same time.
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
from grader.processes.triton_forkserver_client import shared_triton_fork_server
from grader.submission.text import read_submission
from grader.wire.messages import GpuModel

SAMPLES_AT_FIRST = 2  # of a measured speed: the number of processes that are started ahead


@dataclass(frozen=True)
class Machine:
    device: Device | str  # a text says why there is no GPU
    model: GpuModel
    sandboxed: bool
    amd: AmdModel | None = None  # kernels are compiled for this GPU as well


def machine_for(option, folders: list[Folder]) -> Machine:
    """Returns the machine that pytest's options ask for, and starts the processes of a run if there may be a run.

    Raises pytest.UsageError where the options ask for --device cuda and no GPU can be used.
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
        for number in (bubblewrap.SUBMISSION, bubblewrap.FRONT_END) if sandboxed else (None,):
            _start(model, number)
        if isinstance(device, Device):
            shared_replays(device).start(SAMPLES_AT_FIRST, checkers=1)
    return Machine(device, model, sandboxed, amd)


def may_run(option, folders: list[Folder]) -> bool:
    """Returns True if there is a submission that may have to be run."""
    return not option.collectonly and any(_may_run(folder, option.submission) for folder in folders)


def is_usual(option) -> bool:
    """Returns True where a submission is run in the processes that JudgingProcess.prepare starts."""
    return option.device == "auto" and not option.target and not bubblewrap.wanted(option.isolation)


def _start(model: GpuModel | None, number: int | None = None) -> None:
    with contextlib.suppress(MachineFault):  # the first call reports it
        shared_triton_fork_server(model, number)


def _may_run(folder: Folder, submission: str | None) -> bool:
    """Returns False for a file that cannot be read as a submission, and for the stub as it was given."""
    read = read_submission(folder.submission_file(submission))
    if read.failure is not None or not folder.solution_file.exists():
        return read.failure is None
    return read.source != stub_text(folder.solution_file.read_text(encoding="utf-8")).encode()
