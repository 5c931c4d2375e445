"""A student's hand-in for an exercise, read as data: the text of a solution cell or of a .py file.

Nothing else of a notebook is read: no other cell, no output, no metadata but the marks of a solution cell and of a
placeholder.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from grader.classroom.cell_names import SOLUTION_CELL
from grader.classroom.patience import is_away
from grader.learn.notebooks.cells import magic_of
from grader.submission.text import MOST_BYTES

if TYPE_CHECKING:
    from nbformat import NotebookNode

MOST_NOTEBOOK_BYTES = 64 << 20
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


@dataclass
class HandIn:
    """The text that a student handed in. It is None where there is nothing to judge, and `problem` then says why.

    `notes` are for both the student and the instructor.
    """

    text: str | None = None
    problem: str = ""
    absent: bool = False  # no file is there that could be meant
    notes: list[str] = field(default_factory=list)


class Unreadable(Exception):
    """Raised for a file that cannot be judged; the message completes "softmax.ipynb ..."."""


def read_hand_in(folder: Path, name: str, stub: str, siblings: tuple[str, ...] = ()) -> HandIn:
    """Returns the hand-in for exercise `name` in a student's folder. Raises OSError where a share is away.

    `stub`: the text of the released solution cell. `siblings`: the other exercises of the assignment, whose files lie
    in the same folder.
    """
    found: dict[str, str] = {}
    problems: list[str] = []
    notes: list[str] = []
    for path in (folder / f"{name}.ipynb", folder / f"{name}.py"):
        text = _text_of(path, notes, problems)
        if text is not None:
            found[path.name] = text
    if problems and not found:
        return HandIn(problem="; ".join(problems))
    if not found:
        others = _other_files(folder, (name, *siblings))
        there = f"; there is {', '.join(others[:5])}" if others else ""
        return HandIn(problem=f"{name}.ipynb or {name}.py was expected{there}", absent=not others)
    chosen = _chosen(folder, found, stub, notes)
    return HandIn(_of_a_size(chosen, found[chosen], notes), notes=[*notes, *problems])


def read_file(path: Path) -> HandIn:
    """Returns the hand-in that consists of this file. Raises OSError where a share is away."""
    problems: list[str] = []
    notes: list[str] = []
    text = _text_of(path, notes, problems)
    if text is None:
        return HandIn(problem="; ".join(problems))
    return HandIn(_of_a_size(path.name, text, notes), notes=notes)


def _text_of(path: Path, notes: list[str], problems: list[str]) -> str | None:
    """Returns the text of a hand-in's file; None where there is no file or a placeholder, and where it cannot be read.

    `problems` then says why it cannot be read. Raises OSError where a share is away.
    """
    try:
        if path.is_symlink():
            raise Unreadable("is a link; hand in the file itself")
        if not path.exists():
            return None
        if not path.is_file():
            raise Unreadable("is not a file")
        if is_placeholder(path):
            return None
        return (notebook_text if path.suffix == ".ipynb" else script_text)(path, notes)
    except Unreadable as unreadable:
        problems.append(f"{path.name} {unreadable}")
    except OSError as error:
        if is_away(error):  # never the student's fault
            raise
        problems.append(f"{path.name} cannot be read ({error.strerror or type(error).__name__})")
    return None


def _of_a_size(name: str, text: str, notes: list[str]) -> str:
    if len(text.encode()) <= MOST_BYTES:
        return text
    notes.append(f"{name} has {len(text)} characters; at most {MOST_BYTES} bytes are judged, so it was not.")
    return f"# This file had {len(text)} characters.\n"


def notebook_text(path: Path, notes: list[str]) -> str:
    """Returns the text of the last solution cell, without its %%writefile line.

    A note is added, and a blank line returned, where the notebook has no solution cell. Raises Unreadable.
    """
    cells = _cells(path)
    name = path.stem
    marked = [text for cell, text in cells if _grade_id(cell) == SOLUTION_CELL]
    magic = magic_of(name)
    found = marked or [text for _, text in cells if text.lstrip().startswith(magic)]
    if not found:
        notes.append(
            f"{path.name} has no solution cell any more, so there is nothing to judge. Put your kernel into the cell "
            f"that begins with {magic} of the notebook as it was handed out."
        )
        return "\n"
    if len(found) > 1:
        notes.append(f"{path.name} has {len(found)} solution cells; the last one was judged.")
    first, _, rest = found[-1].lstrip().partition("\n")
    text = clean(rest if first.startswith("%%writefile") else found[-1])
    if not text.strip():
        notes.append(f"The solution cell of {path.name} is empty.")
    return text


def script_text(path: Path, notes: list[str]) -> str:
    if path.stat().st_size > MOST_NOTEBOOK_BYTES:
        raise Unreadable(f"has {path.stat().st_size >> 20} MB; a kernel has a few kB")
    data = path.read_bytes()
    if not data:
        raise Unreadable("is empty (0 bytes); hand in again")
    try:
        return clean(data.decode(BYTE_ORDER_MARKS.get(data[:2]) or BYTE_ORDER_MARKS.get(data[:3]) or "utf-8"))
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not UTF-8 text (byte {error.start}); save it as UTF-8 and hand in again") from None


def clean(text: str) -> str:
    """Returns a text as cells and files share it: \\n line ends, a single \\n at the end, no lone surrogates."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").rstrip()
    return text.encode("utf-8", errors="replace").decode("utf-8") + "\n"


def solution_text(notebook: NotebookNode) -> str:
    """Returns the text of the solution cell of a notebook of this course, without its first line."""
    cell = next(cell for cell in notebook.cells if _grade_id(cell) == SOLUTION_CELL)
    return clean(cell.source.partition("\n")[2])


def filled(released: NotebookNode, text: str) -> NotebookNode:
    """Returns the released notebook with a student's text in the solution cell, and nothing else of the student's."""
    notebook = copy.deepcopy(released)
    cell = next(cell for cell in notebook.cells if _grade_id(cell) == SOLUTION_CELL)
    cell.source = f"{cell.source.partition(chr(10))[0]}\n{text.rstrip()}"
    return notebook


def placeholder(released: NotebookNode) -> NotebookNode:
    """Returns a notebook to stand where nbgrader expects a notebook: the released notebook, marked as a placeholder.

    It holds nothing that was handed in.
    """
    notebook = copy.deepcopy(released)
    notebook.metadata["course"]["placeholder"] = True
    return notebook


def is_placeholder(path: Path) -> bool:
    if path.suffix != ".ipynb" or path.stat().st_size > 1 << 20:
        return False
    try:
        return json.loads(path.read_bytes())["metadata"]["course"]["placeholder"] is True
    except (ValueError, RecursionError, KeyError, TypeError):
        return False


def _cells(path: Path) -> list[tuple[dict, str]]:
    """Returns (cell, text) for the cells of a file that ought to be a notebook. Raises Unreadable if it is none."""
    size = path.stat().st_size
    if not size:
        raise Unreadable("is empty (0 bytes); hand in again")
    if size > MOST_NOTEBOOK_BYTES:
        raise Unreadable(f"has {size >> 20} MB; clear its outputs and hand in again")
    try:
        notebook = json.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not a notebook (byte {error.start} is not UTF-8); hand in again") from None
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise Unreadable(f"is not a notebook (line {line} is not JSON); hand in again") from None
    except RecursionError:
        raise Unreadable("is not a notebook (nested too deeply); hand in again") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise Unreadable("is not a notebook (it has no list of cells); hand in again")
    return [(cell, _source(cell)) for cell in cells if isinstance(cell, dict)]


def _source(cell: dict) -> str:
    source = cell.get("source", "")
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str))
    return source if isinstance(source, str) else ""


def _grade_id(cell: dict) -> object:
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None


def is_own_work(text: str, stub: str) -> bool:
    return bool(text.strip()) and text != stub


def _chosen(folder: Path, found: dict[str, str], stub: str, notes: list[str]) -> str:
    """Returns the name of the file to judge, of a notebook and a .py file: the file that was worked on, else the newer.

    Running the solution cell makes both alike. A note tells if the file is judged for being newer.
    """
    names = list(found)
    if len(names) == 1 or found[names[0]] == found[names[1]]:
        return names[0]
    attempted = [name for name in names if is_own_work(found[name], stub)]
    if len(attempted) == 1:
        return attempted[0]
    newer = max(names, key=lambda name: (folder / name).stat().st_mtime)
    older = next(name for name in names if name != newer)
    notes.append(f"{names[0]} and {names[1]} differ; {newer} was judged, which is newer than {older}.")
    return newer


def _other_files(folder: Path, names: tuple[str, ...]) -> list[str]:
    """Returns the paths in `folder` of files that may have been meant: a wrong name, an archive.

    nbgrader's own two files are left out.
    """
    files = (path for path in folder.rglob("*") if path.is_file() and path.stem not in names)
    known = ("timestamp.txt", "submission_secret.txt")
    return sorted(str(path.relative_to(folder)) for path in files if path.name not in known)
