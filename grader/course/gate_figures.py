"""Figures of an exercise's gates: the speed of the solution and of an unwanted version, as shares of the anchor's.

solutions/gate_figures.json holds the figures that the stated gates come from; .course/calibration.json in a learner's
folder holds what was measured on the GPU there. solutions/NN_name/unwanted.py is the unwanted version, as fast as it
can be.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from grader.course.code_digest import digest_of_code
from grader.course.folder import Folder
from grader.files import write_whole

FIGURES = "solutions/gate_figures.json"
CALIBRATION = Path(".course") / "calibration.json"  # can be made again, as all in this folder
Kept = dict[str, "GateFigures"]  # by "NN_name::test"


class BadFigures(Exception):
    """A file of figures that cannot be read; the message says which file, and what to do."""


@dataclass
class GateFigures:
    """Shares of the anchor's speed, of the solution and of the unwanted version: one per process, lowest first."""

    gpu: str
    versions: dict[str, str]
    date: str
    solution_digest: str
    solution: list[float]
    unwanted: list[float]


def kept_figures(folder: Folder) -> Kept:
    """Returns the figures of all exercises that stated gates come from; {} where there is no file of them."""
    path = folder.source / FIGURES
    if not path.exists():
        return {}
    return {name: GateFigures(**data) for name, data in json.loads(path.read_text("utf-8")).items()}


def keep_figures(folder: Folder, figures: Kept) -> None:
    _write(folder.root / FIGURES, {**kept_figures(folder), **figures})


def calibration(root: Path) -> Kept:
    """Returns the figures measured on a GPU for this learner's folder; {} where there are none. Raises BadFigures."""
    try:
        data = json.loads((root / CALIBRATION).read_text("utf-8"))
        return {name: _figures(figures) for name, figures in data.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BadFigures(
            f"{CALIBRATION} cannot be read ({error}). Next: delete it, or measure anew: course doctor --calibrate"
        ) from None


def keep_calibration(root: Path, figures: Kept) -> None:
    """Adds figures to the calibration of this folder; a file that cannot be read is replaced."""
    try:
        kept = calibration(root)
    except BadFigures:
        kept = {}
    (root / CALIBRATION).parent.mkdir(exist_ok=True)
    _write(root / CALIBRATION, {**kept, **figures})


def digest_of(path: Path) -> str:
    return digest_of_code(path.read_text("utf-8"))


def _figures(data: dict) -> GateFigures:
    """Returns the figures in an entry of a file. Raises TypeError or ValueError for an entry that holds none."""
    figures = GateFigures(**data)
    for shares in (figures.solution, figures.unwanted):
        if not (isinstance(shares, list) and shares and all(type(share) is float and share > 0 for share in shares)):
            raise ValueError("shares of a speed are numbers above 0")
    return figures


def _write(path: Path, figures: Kept) -> None:
    write_whole(path, json.dumps({name: asdict(figure) for name, figure in sorted(figures.items())}, indent=1) + "\n")
