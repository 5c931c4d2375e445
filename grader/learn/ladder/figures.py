"""Measured figures of a ladder as plain data: shown at once, and kept for machines without a GPU."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from grader.course.folder import Folder
from grader.files import write_whole
from grader.learn.ladder.rungs import ladder_file


@dataclass
class Timed:
    """The figures of a kernel. seconds: of a call. share: of the anchor's speed. note: words about the figures."""

    digest: str  # of its code, to tell if the figures are this kernel's
    seconds: float
    rate: float  # in the unit of the figures, at the clock rate at which the anchor's was measured
    share: float
    note: str = ""


@dataclass
class NotTimed:
    """A kernel without figures. why: the reason, as the end of a sentence."""

    why: str


# A kernel in the file: fields that it does not have are empty.
EMPTY = {"digest": "", "seconds": None, "rate": None, "share": None, "note": "", "why": ""}


@dataclass
class Figures:
    """The figures of a ladder's rungs, by name and in order. `rate`: the rate of the anchor, in `unit`."""

    command: str
    gpu: str
    versions: dict[str, str]
    date: str
    call: str
    anchor: str
    unit: str
    rate: float | None = None
    rungs: dict[str, Timed | NotTimed] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"{self.gpu}, {versions}, {self.date}"


def figures_file(folder: Folder) -> Path:
    return ladder_file(folder).with_suffix(".json")


def keep(folder: Folder, figures: Figures) -> Path:
    """Writes the figures next to the ladder and returns their file. Raises OSError."""
    path = figures_file(folder)
    rungs = {name: EMPTY | asdict(rung) for name, rung in figures.rungs.items()}
    write_whole(path, json.dumps({**asdict(figures), "rungs": rungs}, indent=1) + "\n")
    return path


def kept(folder: Folder) -> Figures | None:
    """Returns the figures that are kept with a ladder; None if there are none that can be read."""
    try:
        data = json.loads(figures_file(folder).read_text(encoding="utf-8"))
        return Figures(**data | {"rungs": {name: _read(rung) for name, rung in data["rungs"].items()}})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _read(fields: dict) -> Timed | NotTimed:
    """Returns a kernel as it stands in the file. Raises KeyError or TypeError for what `keep` did not write."""
    if fields["share"] is None:
        return NotTimed(fields["why"])
    return Timed(fields["digest"], fields["seconds"], fields["rate"], fields["share"], fields["note"])


def still_true(figures: Figures, digests: dict[str, str]) -> Figures:
    """Returns the figures with a reason instead for kernels that have changed, and without kernels that are gone.

    digests: of the kernels as they are now, by name.
    """
    changed = NotTimed("its kernel has changed since it was measured")
    rungs = {
        name: rung if isinstance(rung, NotTimed) or rung.digest == digests[name] else changed
        for name, rung in figures.rungs.items()
        if name in digests
    }
    return Figures(**{**vars(figures), "rungs": rungs})
