"""Makes a text for each failure that the judge tells by a short name, of what exercises state.

mistakes.toml of an exercise says in words what each of its wrong kernels does and what the judge says of it, and a hint
names the failures that it helps with. Both are read here for all exercises at once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from grader.course.folder import Folder
from grader.course.mistakes import tables
from grader.progress.hints import read_hints

FIELD = re.compile(r"\{[^}]*\}")  # of a sentence, that the evidence of a run fills in
ALTERNATIVE = " | "  # between parts of one sentence that a proof looks for


@dataclass(frozen=True)
class FailurePage:
    """A failure that the judge tells: its short name, the exercises that prove it, and what is known of it, as
    Markdown whose links start at the top of the course."""

    id: str
    exercises: tuple[str, ...]
    text: str

    @property
    def address(self) -> str:
        return f"failure_{self.id}.html"


def failures_of(folders: list[Folder]) -> list[FailurePage]:
    """Returns the failures that these exercises prove or have a hint for, by name. Raises OSError, TOMLDecodeError."""
    ways: dict[str, dict[Folder, list[str]]] = defaultdict(dict)
    looks: dict[str, dict[Folder, list[str]]] = defaultdict(dict)
    for folder in folders:
        for table in tables(folder).values():
            if table.get("finding"):
                ways[table["finding"].split()[0]].setdefault(folder, []).append(_way(table))
        for passage in read_hints(folder).levels[0].passages if folder.hints_file.exists() else ():
            for cause in passage.causes:
                looks[cause].setdefault(folder, []).append(passage.text)
    return [_failure(id, ways[id], looks[id]) for id in sorted(ways.keys() | looks.keys())]


def _way(table: dict) -> str:
    """Returns a way to be wrong, and what the judge says of it."""
    says = FIELD.sub("…", table.get("says") or table.get("sentence", "").split(ALTERNATIVE)[0])
    wrong = table["wrong"][0].upper() + table["wrong"][1:]
    return f"- {wrong}" + (f" The judge says: *{says}*" if says else "")


def _failure(id: str, ways: dict[Folder, list[str]], looks: dict[Folder, list[str]]) -> FailurePage:
    folders = sorted(ways | looks, key=lambda folder: folder.id)
    return FailurePage(id, tuple(folder.number for folder in folders), "\n\n".join(_lines(id, folders, ways, looks)))


def _lines(id: str, folders: list[Folder], ways: dict, looks: dict) -> Iterator[str]:
    yield f"# {id}"
    yield "Open the exercise that you work on: what its wrong kernels do, what the judge says of them, where to look."
    for folder in folders:
        yield f"<details><summary>{folder.id}</summary>"
        yield f"[The lesson](exercises/{folder.id}/README.md)"
        if folder in ways:
            yield "\n".join(dict.fromkeys(ways[folder]))
        if folder in looks:
            yield "**Where to look**"
            yield from looks[folder]
        yield "</details>"
