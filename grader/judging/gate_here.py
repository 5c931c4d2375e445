"""The gate that a call has to reach on this GPU, which may differ from the GPU that the stated gate was measured on."""

from __future__ import annotations

from dataclasses import dataclass

from grader.course.folder import Folder
from grader.course.gate_figures import BadFigures, GateFigures, calibration, digest_of, kept_figures
from grader.judging.speed_rule import gate_between


@dataclass(frozen=True)
class Gate:
    """The gate of a call on this GPU.

    share: the least share of the anchor's speed that passes. of_solution: the share of the shipped solution's speed on
    this GPU that is enough, too, where the gate was measured on another GPU, `measured_on`; 0 where only `share`
    counts.
    """

    share: float
    of_solution: float = 0.0
    measured_on: str = ""


def gate_of(figures: GateFigures) -> float | None:
    """Returns the gate that the rule sets; None where solution and unwanted version are too close for a gate."""
    return gate_between(figures.solution[0], figures.unwanted[-1])


def gate_here(folder: Folder, test: str, stated: float, gpu: str) -> Gate | None:
    """Returns the gate of a test on the GPU of this name; None where calibration on it found that speed tells nothing.

    The measurements of `course doctor --calibrate` on this GPU count first. A stated gate that comes from another GPU
    is a start value: the solution reached a share there, and a kernel that has the same part of the solution's speed
    here is fast enough. So no right kernel fails for a GPU on which shares differ.
    """
    name = f"{folder.id}::{test}"
    try:
        here = calibration(folder.root).get(name)
    except BadFigures:  # `course doctor` reports them
        here = None
    if here and here.gpu == gpu and _is_current(here, folder):
        gate = gate_of(here)
        return Gate(gate) if gate else None
    elsewhere = kept_figures(folder).get(name)
    if elsewhere is None or elsewhere.gpu == gpu:
        return Gate(stated)
    return Gate(stated, stated / elsewhere.solution[0], elsewhere.gpu)


def _is_current(figures: GateFigures, folder: Folder) -> bool:
    """Returns whether the figures were measured with the present solution; False where a course has no solutions."""
    return folder.solution_file.exists() and figures.solution_digest == digest_of(folder.solution_file)
