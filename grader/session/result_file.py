"""The file of `--result`: the results of a run as JSON, written whole or not at all."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from grader.explain.fence_words import told
from grader.files import write_whole
from grader.wire.fence import Fence

if TYPE_CHECKING:
    from grader.session.grading import Grading


def write(path: Path, gradings: list[Grading]) -> None:
    """Writes the object of a single exercise, or an object whose "exercises" lists several. Raises OSError."""
    objects = [as_json(grading) for grading in gradings]
    content = objects[0] if len(objects) == 1 else {"exercises": objects}
    write_whole(path, json.dumps(content, indent=1) + "\n")


def as_json(grading: Grading) -> dict:
    replays = grading.run.replays
    reached, possible = grading.points
    return {
        "exercise": grading.folder.id,
        "submission": str(grading.run.submission.path),
        "outcome": grading.outcome,
        "core": grading.core_passed,
        "medal": grading.medal,
        "message": "\n".join(grading.diagnosis.shown.lines) if grading.diagnosis else "",
        "cause": grading.diagnosis.verdict.id if grading.diagnosis else "",
        "said": [said.to_json() for said in grading.diagnosis.shown.said] if grading.diagnosis else [],
        "tests": [
            {
                "name": test.name,
                "item": test.item,
                "hidden": test.hidden,
                "core": test.core is not None,
                "outcome": test.verdict.outcome,
                "id": test.verdict.id,
                "points": test.points,
                "message": "\n".join(test.verdict.lines) or test.verdict.note,
                "said": [said.to_json() for said in test.verdict.said],
                "figures": test.verdict.figures,
            }
            for test in grading.results
        ],
        "points": reached,
        "possible": possible,
        "figures": {"seconds": round(grading.seconds, 3), **_worst_figures(grading)},
        "tiles": _tiles(grading),
        "unreached": grading.run.lines.never,
        "device": "cuda" if replays else "cpu",
        "gpu": replays.device.name if replays else "",
        "isolation": "sandbox" if grading.run.sandboxed else "fence" if grading.run.fenced else "limits",
        "fence": _fence(grading.run.fence),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            **grading.run.process.versions,
        },
        "seed": grading.run.seed,
        "fault": grading.fault,
    }


def _fence(fence: Fence | None) -> dict | None:
    """Returns the fence around the submission, as fields and in words; None if the submission was not run."""
    return None if fence is None else {**asdict(fence), "says": " ".join(said.text for said in told(fence))}


def _tiles(grading: Grading) -> dict | None:
    """Returns the map of the diagnosed failure; without it, as for a pass, the map with the most tiles, or None."""
    mapped = [(test, tiles) for test in grading.results if (tiles := test.shown.tiles)]
    mapped = [pair for pair in mapped if pair[0] is grading.diagnosis] or mapped
    if not mapped:
        return None
    test, tiles = max(mapped, key=lambda pair: pair[1].count)
    return {"test": test.name, **tiles.to_json()}


def _worst_figures(grading: Grading) -> dict[str, float]:
    worst: dict[str, float] = {}
    for test in grading.results:
        for name, value in test.verdict.figures.items():
            if name in ("medal", "of_solution"):  # more is better; the object's "medal" is the lowest
                continue
            worst[name] = max(value, worst.get(name, value))
    return worst
