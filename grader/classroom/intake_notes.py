"""Notes keep what an export says of a hand-in and no file in its folder shows: who is in the group, what was not taken.

It lies next to that folder, as submitted/STUDENT/ASSIGNMENT.sent.json, where no student writes. Every later run reads
it, so that nobody of whom something came counts as missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from grader.classroom.json_text import json_text
from grader.files import write_whole

NOTES = ".sent.json"  # what the names of these files end in


@dataclass(frozen=True)
class Note:
    """A note on a student's exercise. `together`: all of a group; `problem`: why something was not taken."""

    together: tuple[str, ...] = ()
    problem: str = ""


def read_notes(folder: Path) -> dict[str, Note]:
    """Returns the notes on a hand-in's folder by the names of exercises. Raises OSError where a share is away."""
    try:
        told = json.loads(_beside(folder).read_text(encoding="utf-8"))
        return {name: Note(tuple(map(str, one["together"])), str(one["problem"])) for name, one in told.items()}
    except (FileNotFoundError, NotADirectoryError, ValueError, AttributeError, KeyError, TypeError):
        return {}


def write_notes(folder: Path, notes: Mapping[str, Note]) -> None:
    """Writes the notes of an intake; those on other exercises stay, and one that says nothing removes an older one."""
    before = read_notes(folder)
    after = {name: note for name, note in {**before, **notes}.items() if note != Note()}
    if after != before:
        write_whole(_beside(folder), json_text({name: asdict(note) for name, note in after.items()}))


def _beside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{NOTES}")
