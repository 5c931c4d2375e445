"""The gate that a call has to reach on the GPU at hand, which may be another than the stated gate was measured on."""

from __future__ import annotations

from dataclasses import dataclass

from grader.course.folder import Folder
from grader.course.gate_figures import BadFigures, GateFigures, calibration, digest_of, kept_figures
from grader.judge.speed_rule import gate_between


@dataclass(frozen=True)
class Gate:
    """share: of the anchor's speed. of_solution: of the shipped solution's speed on this GPU, which is enough too where
    the gate was measured on another GPU, `measured_on`; 0 where nothing but the gate is enough."""

    share: float
    of_solution: float = 0.0
    measured_on: str = ""


def gate_of(figures: GateFigures) -> float | None:
    """Returns what the rule gives; None where solution and unwanted version are too close for a gate."""
    return gate_between(figures.solution[0], figures.unwanted[-1])


def gate_here(folder: Folder, test: str, stated: float, gpu: str) -> Gate | None:
    """Returns the gate of a test on the GPU of this name; None where it was measured, and speed tells nothing there.

    What `course doctor --calibrate` measured on this GPU counts first. A stated gate that comes from another GPU is a
    start value: the solution reached a share there, and a kernel that has the same part of the solution's speed here
    is fast enough. So no right kernel fails for a GPU on which shares differ.
    """
    name = f"{folder.id}::{test}"
    try:
        here = calibration(folder.root).get(name)
    except BadFigures:  # `course doctor` tells
        here = None
    if here and here.gpu == gpu and _is_current(here, folder):
        gate = gate_of(here)
        return Gate(gate) if gate else None
    elsewhere = kept_figures(folder).get(name)
    if elsewhere is None or elsewhere.gpu == gpu:
        return Gate(stated)
    return Gate(stated, stated / elsewhere.solution[0], elsewhere.gpu)


def _is_current(figures: GateFigures, folder: Folder) -> bool:
    """Tells if they were measured with the solution as it is; never where a course has no solutions."""
    return folder.solution_file.exists() and figures.solution_digest == digest_of(folder.solution_file)
