"""Makes a text for each failure that the judge tells by a short name, of what exercises state.

mistakes.toml of an exercise says in words what each of its wrong kernels does and what the judge says of it, and a hint
names the failures that it helps with. Both are read here for all exercises at once, for the site and for `course
explain`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from grader.course.folder import Folder
from grader.course.mistakes import advice_of, all_stated
from grader.explain.causes import Cause
from grader.progress.hints import read_hints

FIELD = re.compile(r"\{[^}]*\}")  # of a sentence, that the evidence of a run fills in
ALTERNATIVE = " | "  # between parts of one sentence that a proof looks for
SAYS = " The judge says: "
OF_EACH = "Of each exercise: what its wrong kernels do, what the judge says of them, where to look."


@dataclass(frozen=True)
class FailureInExercise:
    """Holds what an exercise states of a failure, as Markdown: ways to be wrong, and where to look."""

    folder: Folder
    ways: tuple[str, ...]
    looks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The same, folded, with a link to the lesson that starts at the top of the course."""
        link = f"`course open {self.folder.number}` shows [the lesson](exercises/{self.folder.id}/README.md)."
        ways = "\n".join(f"- {way}" for way in self.ways)
        looks = ("**Where to look**", *self.looks) if self.looks else ()
        opening = f"<details><summary>{self.folder.id}</summary>"
        return "\n\n".join(filter(None, (opening, link, ways, *looks, "</details>")))


@dataclass(frozen=True)
class FailurePage:
    """A failure that the judge tells: its short name, and the exercises that prove it or have a hint for it. `meaning`:
    one sentence; "" for a mistake that exercises alone know, whose ways say what it is."""

    id: str
    meaning: str
    places: tuple[FailureInExercise, ...]

    @property
    def address(self) -> str:
        return f"failure_{self.id}.html"

    @property
    def exercises(self) -> list[str]:
        """Their numbers."""
        return [place.folder.number for place in self.places]

    @property
    def text(self) -> str:
        """Markdown; its links start at the top of the course."""
        parts = (f"# {self.id}", self.meaning, OF_EACH if self.places else "", *(place.text for place in self.places))
        return "\n\n".join(filter(None, parts))

    @property
    def brief(self) -> str:
        """The meaning, or the first way to bring the failure about."""
        return self.meaning or next(way for place in self.places for way in place.ways).partition(SAYS)[0]


def failures_of(folders: list[Folder]) -> list[FailurePage]:
    """Returns the failures that a report can have in these exercises, by name. Raises OSError, TOMLDecodeError."""
    stated: dict[str, list[FailureInExercise]] = defaultdict(list)
    for folder in sorted(folders, key=lambda folder: folder.id):
        for id, place in _in_exercise(folder):
            stated[id].append(place)
    meanings = {str(cause): cause.meaning for cause in Cause}
    return [FailurePage(id, meanings.get(id, ""), tuple(stated[id])) for id in sorted(meanings.keys() | stated.keys())]


def _in_exercise(folder: Folder) -> Iterator[tuple[str, FailureInExercise]]:
    ways: dict[str, list[str]] = defaultdict(list)
    looks: dict[str, list[str]] = defaultdict(list)
    for table in all_stated(folder).values():
        if table.get("finding"):
            ways[table["finding"].split()[0]].append(_way(table))
    for name, id in advice_of(folder).alone.items():
        ways[id].append(f"{name} alone is wrong, and no explanation fits.")
    for passage in read_hints(folder).levels[0].passages if folder.hints_file.exists() else ():
        for cause in passage.causes:
            looks[cause].append(passage.text)
    for id in ways.keys() | looks.keys():
        yield id, FailureInExercise(folder, tuple(dict.fromkeys(ways[id])), tuple(looks[id]))


def _way(table: dict) -> str:
    """Returns a way to be wrong, and what the judge says of it."""
    says = FIELD.sub("…", table.get("says") or table.get("sentence", "").split(ALTERNATIVE)[0])
    return f"{table['wrong']}{SAYS}*{says}*" if says else table["wrong"]
