"""Tells what is wrong with the gates of speed that an exercise states, without a GPU."""

from __future__ import annotations

from grader.course.folder import Folder
from grader.course.gate_figures import digest_of, kept_figures
from grader.judging.gate_here import gate_of
from grader.judging.gate_measurement import timed_calls
from grader.judging.speed_rule import LEAST_GAP


def complaints(folder: Folder) -> list[str]:
    """Returns a complaint for each timed call whose gate does not follow from its measured figures."""
    kept, found = kept_figures(folder), []
    for call in timed_calls(folder):
        figures = kept.get(f"{folder.id}::{call.test}")
        if figures is None:
            found.append(
                f"{call.test} has no measured gate: course gate {folder.number} on a GPU, or take this test out"
            )
        elif figures.solution_digest != digest_of(folder.solution_file):
            found.append(
                f"{call.test}: the solution has changed since its gate was measured: course gate {folder.number}"
            )
        elif gate_of(figures) is None:
            found.append(f"{call.test}: the solution is not {LEAST_GAP} times as fast as the unwanted version")
        elif call.at_least != gate_of(figures):
            found.append(f"{call.test} demands {call.at_least}, and the measured gate is {gate_of(figures)}")
    return found
