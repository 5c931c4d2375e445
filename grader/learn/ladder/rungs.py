"""The rungs of an exercise's ladder: kernels from the naive kernel to the best, each with its change and the reason.

solutions/NN_name/ladder.toml, with a table for each rung, in order:

    [row_per_program]
    file = "solutions/NN_name/accepted/row_per_program.py"
    why = "one line: what changed, and what that changes"

    [four_warps]
    changes = [["num_warps=16", "num_warps=4"]]
    why = "..."

`file` is a path from the root of the course that holds the solutions. A rung without a file is the solution with these
`changes`: pairs of old and new text, as in mistakes.toml beside it. Where the timed call is too large to count its
traffic, a line above all tables, `counted = [[4096, 512], [512, 4096]]`, gives the shapes of the tensors in a smaller
call, in their order.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from grader.course.changed_text import BadChange, changed
from grader.course.folder import Folder

FIELDS = {"file": str, "changes": list, "why": str}


class BadRung(Exception):
    """A rung is not stated as it has to be; the message says where and why."""


@dataclass(frozen=True)
class Rung:
    """A kernel of a ladder. `path`: its file, or the file to change. `text`: its text, "" if it cannot be read."""

    name: str
    why: str
    path: Path
    text: str
    is_changed: bool = False


@dataclass(frozen=True)
class Ladder:
    """The rungs in order. `counted`: shapes of the tensors in a call to count the traffic of; None: the timed call."""

    rungs: list[Rung]
    counted: list[list[int]] | None = None


def ladder_file(folder: Folder) -> Path:
    return folder.solution_file.with_name("ladder.toml")


def ladder_of(folder: Folder) -> Ladder | None:
    """Returns the ladder of an exercise, its naive kernel first; None if it has none. Raises BadRung."""
    path = ladder_file(folder)
    if not path.exists():
        return None
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadRung(f"{path}: {error}") from None
    counted = tables.pop("counted", None)
    return Ladder([_rung(folder, *both, f"{path}: the rung {both[0]}") for both in tables.items()], counted)


def _rung(folder: Folder, name: str, table: object, where: str) -> Rung:
    fields = table if isinstance(table, dict) else {}
    if "why" not in fields or any(type(value) is not FIELDS.get(field) for field, value in fields.items()):
        raise BadRung(f"{where} has to state why, and may state file or changes: nothing else.")
    if "file" in fields and "changes" in fields:
        raise BadRung(f"{where} states both a file and changes: changes are of the solution.")
    path = folder.source / fields["file"] if "file" in fields else folder.solution_file
    try:
        text = path.read_text(encoding="utf-8")
        text = changed(text, fields.get("changes", []))
    except OSError:
        text = ""
    except BadChange as error:
        raise BadRung(f"{where}: {error}") from None
    return Rung(name.replace("_", " "), fields["why"], path, text, "changes" in fields)
