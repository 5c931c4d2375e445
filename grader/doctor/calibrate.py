"""`course doctor --calibrate`: measures the gates of speed on this GPU, and keeps them for this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from grader.course.folder import Folder
from grader.course.gate_figures import (
    CALIBRATION,
    BadFigures,
    calibration,
    digest_of,
    keep_calibration,
    kept_figures,
)
from grader.doctor.gpu_probe import why_ended
from grader.gpu.device import Device


def calibrate(folders: list[Folder], device: Device, say: Callable[[str], None]) -> bool:
    """Measures the exercises one by one, and keeps each before the next; returns whether all were measured."""
    from grader.gpu.lock import GpuBusy
    from grader.gpu.plan import BadPlan
    from grader.gpu.pool.replay_process import ReplayEnded
    from grader.gpu.pool.replays import shared_replays
    from grader.judging.gate_measurement import NotMeasured, measure
    from grader.processes.faults import ChildEnded

    whole = True
    for folder in folders:
        try:
            keep_calibration(folder.root, measure(folder, device, shared_replays(device), say))
        except ReplayEnded as ended:
            say(f"{folder.id}: not measured: {why_ended(ended).removeprefix('not measured: ')}")
            whole = False
        except (GpuBusy, NotMeasured, ChildEnded, BadPlan, OSError) as why:
            say(f"{folder.id}: not measured: {why}")
            whole = False
    try:
        kept = count_measured(folders[0].root, folders, device.name)
    except BadFigures as why:
        say(str(why))
        return False
    if kept:
        say(f"{CALIBRATION} has {kept} gates of {device.name}, which `pytest exercises/...` asks for.")
    return whole


def gates_line(root: Path, folders: list[Folder], gpu: str) -> str:
    """Returns the line of `course doctor` on the gates of speed.

    `root`: the folder of the course. `gpu`: the name of this GPU.
    """
    try:
        others = {gate.gpu for gate in calibration(root).values()} - {gpu}
    except BadFigures as why:
        return str(why)
    if kept := count_measured(root, folders, gpu):
        return f"{kept} measured on this GPU"
    if others:
        return f"{CALIBRATION} is of {', '.join(sorted(others))} and not used here. Next: course doctor --calibrate"
    stated = sum(gate.gpu == gpu for gate in kept_figures(folders[0]).values()) if folders else 0
    if stated:
        return f"{stated} were measured on a GPU like this one; with the others the solution is compared"
    return "as measured on other GPUs, with the solution as measure; to measure them here: course doctor --calibrate"


def count_measured(root: Path, folders: list[Folder], gpu: str) -> int:
    """Returns how many gates were measured on this GPU with the solutions as they are. Raises BadFigures."""
    digests = {folder.id: digest_of(folder.solution_file) for folder in folders if folder.solution_file.exists()}
    kept = calibration(root).items()
    return sum(gate.gpu == gpu and gate.solution_digest == digests.get(name.partition("::")[0]) for name, gate in kept)
