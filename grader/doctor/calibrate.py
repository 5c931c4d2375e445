"""`course doctor --calibrate`: measures on this GPU what the gates of speed are, and keeps it for this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from grader.course.folder import Folder
from grader.course.gate_figures import CALIBRATION, BadFigures, calibration, digest_of, keep_calibration
from grader.doctor.gpu_probe import why_ended
from grader.gpu.device import Device


def calibrate(folders: list[Folder], device: Device, say: Callable[[str], None]) -> bool:
    """Measures the exercises one by one, and keeps each before the next; returns True where all were measured."""
    from grader.gpu.lock import GpuBusy
    from grader.gpu.pool.replay_process import ReplayEnded
    from grader.gpu.pool.replays import shared_replays
    from grader.judge.gate_measurement import WrongFigures, measure

    whole = True
    for folder in folders:
        try:
            keep_calibration(folder.root, measure(folder, device, shared_replays(device), say))
        except ReplayEnded as ended:
            say(f"{folder.id}: not measured: {why_ended(ended).removeprefix('not measured: ')}")
            whole = False
        except (GpuBusy, WrongFigures) as why:
            say(f"{folder.id}: not measured: {why}")
            whole = False
    kept = count_measured(folders[0].root, folders, device.name)
    say(f"Kept in {CALIBRATION}: {kept} gates of {device.name}, which `pytest exercises/...` asks for from now on.")
    return whole


def gates_line(root: Path, folders: list[Folder], gpu: str) -> str:
    """Returns what `course doctor` says of the gates on this GPU. `root`: of the course."""
    try:
        others = {one.gpu for one in calibration(root).values()} - {gpu}
    except BadFigures as why:
        return str(why)
    if kept := count_measured(root, folders, gpu):
        return f"{kept} measured on this GPU"
    if others:
        return f"{CALIBRATION} is of {', '.join(sorted(others))} and not used here. Next: course doctor --calibrate"
    return "as measured on other GPUs, with the solution as measure; to measure them here: course doctor --calibrate"


def count_measured(root: Path, folders: list[Folder], gpu: str) -> int:
    """Returns how many gates were measured on this GPU with the solutions as they are. Raises BadFigures."""
    digests = {folder.id: digest_of(folder.solution_file) for folder in folders}
    kept = calibration(root).items()
    return sum(one.gpu == gpu and one.solution_digest == digests.get(name.partition("::")[0]) for name, one in kept)
