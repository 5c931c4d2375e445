"""A student's hand-in for an exercise, read as data: the text of a solution cell or of a .py file.

Nothing else of a notebook is read: no other cell, no output, no metadata but the marks of a solution cell and of a
placeholder.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from grader.classroom.cell_names import SOLUTION_CELL
from grader.classroom.intake_notes import read_notes
from grader.classroom.names import Names, copy_number
from grader.classroom.patience import is_away
from grader.classroom.sent_files import MOST_BYTES as MOST_BYTES_SENT
from grader.classroom.sent_files import File, files_in
from grader.learn.notebooks.cells import magic_of
from grader.sentences import count_text, joined
from grader.submission.text import MOST_BYTES

if TYPE_CHECKING:
    from nbformat import NotebookNode

MOST_TOLD = 5  # files that may have been meant
TYPED = re.compile(r"(?:.*_)?(?:(?:online)?text|(?P<link>link))\.html", re.IGNORECASE | re.DOTALL)  # Moodle and Canvas
OF_NBGRADER = ("timestamp.txt", "submission_secret.txt")
WRITES = re.compile(  # the beginning of a cell that saves the rest of it
    r"(?:[ \t]*(?:#.*|%%?(?!(?:write)?file\b).*)?\n)*[ \t]*%%(?:write)?file[ \t]+(?P<file>\S+)[^\n]*(?:\n|$)"
)
TITLE = re.compile(r'\s*"""(?P<title>\d\d · [^:\n]+):')  # of an exercise's file as it was handed out
FUNCTION = re.compile(r"^def (\w+)\(", re.MULTILINE)
PYTHON = re.compile(rb"^(?:def|import|from) ", re.MULTILINE)
NOTHING = b" \t\r\n\f\0\xef\xbb\xbf\xff\xfe"  # blanks, line ends and byte order marks
OTHER_KINDS = {  # by their first bytes
    b"PK\x03\x04": "a zip, or a document of a word processor", b"%PDF": "a PDF", b"Rar!": "a rar archive",
    b"7z\xbc\xaf": "a 7z archive", b"\xd0\xcf\x11\xe0": "a document of a word processor",
}  # fmt: skip
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
    together: tuple[str, ...] = ()  # all of a group

    def tell_group(self, together: tuple[str, ...]) -> None:
        """Says with whom it was handed in, where they are several."""
        if len(together) > 1:
            self.together = together
            self.notes.append(f"Handed in together by {', '.join(together)}.")


class Unreadable(Exception):
    """Raised for a file that cannot be judged; the message completes "softmax.ipynb ..."."""


@dataclass
class _Read:
    """A file of a hand-in, as it was read. `problem` and `notes` as in HandIn."""

    file: File
    text: str | None = None
    problem: str = ""
    notes: list[str] = field(default_factory=list)


def read_hand_in(folder: Path, name: str, stub: str, siblings: tuple[str, ...] = ()) -> HandIn:
    """Returns the hand-in for exercise `name` in a student's folder. Raises OSError where a share is away.

    `stub`: the text of the released solution cell. `siblings`: all exercises of the assignment, whose files lie in
    the same folder.
    """
    files, names = files_in(folder) if folder.is_dir() else [], Names((name, *siblings))
    meant = {file.path: (names.exercise_of(file.path.name) or ("",))[0] for file in files}
    others = [file for file in files if not meant[file.path] and file.path.name not in OF_NBGRADER
              and names.mentioned_in(file.path.name) in ("", name)]  # fmt: skip
    hand_in = hand_in_of([file for file in files if meant[file.path] == name], others, name, stub)
    told = read_notes(folder)
    missing = [each for each in siblings if each not in {*meant.values(), *told}] if hand_in.text is not None else []
    hand_in.notes += [f"{each} of this assignment was not handed in and counts 0." for each in missing]
    if note := told.get(name):
        hand_in.tell_group(note.together)
        if note.problem and hand_in.text is None:
            hand_in.problem, hand_in.absent = note.problem, False
        elif note.problem:
            hand_in.notes.append(note.problem)
    return hand_in


def hand_in_of(files: list[File], others: list[File], name: str, stub: str) -> HandIn:
    """Returns the hand-in that is one of these files: the best that can be read, that was worked on, that is newest.

    Notes say why each that differs was not judged. `others`: files that name no exercise; they are told where there is
    none that does, and in notes if the exercise's name is part of theirs. Raises OSError where a share is away.
    """
    read = [one for file in files if (one := _read(file, name, stub)) is not None]
    if not read:
        return HandIn(problem=expected(name, others), absent=not others)
    best = max(
        read, key=lambda one: (one.text is not None, is_worked_on(one.text or "", stub), _age(one), *_of_one_age(one))
    )
    misnamed = [f"{file.path} was not judged: no file of an exercise is called so; {name}.py is." for file in others
                if is_work(file) and Names((name,)).mentioned_in(file.path.name)]  # fmt: skip
    if best.text is None:
        return HandIn(problem=joined(one.problem for one in read), notes=misnamed)
    differing = [one for one in read if one.text != best.text]
    notes = [f"{one.file.path} was not judged: {_why_not(one, best, stub)}." for one in differing]
    return HandIn(_of_a_size(best.file.path.name, best.text, notes), notes=[*best.notes, *notes, *misnamed])


def is_work(file: File) -> bool:
    """Returns whether a file may hold a kernel, by its ending."""
    return file.path.suffix.lower() in (".py", ".ipynb")


def expected(name: str, others: list[File]) -> str:
    """Returns the sentence for a hand-in that is not there, with the files that may have been meant."""
    told = [f"{file.path}{f' ({why})' if (why := file.problem or _typed(file)) else ''}" for file in others[:MOST_TOLD]]
    return f"{name}.ipynb or {name}.py was expected{'; there is ' if told else ''}{', '.join(told)}"


def _typed(file: File) -> str:
    """Returns what a file is that a platform made of what a student typed; "" for any other."""
    found = TYPED.fullmatch(file.path.name)
    what = "an address" if found and found["link"] else "a text"
    return f"{what} that was typed into the platform; a file has to be handed in" if found else ""


def _read(file: File, name: str, stub: str) -> _Read | None:
    """Returns what a file holds; None for a placeholder. Raises OSError where a share is away."""
    read = _Read(file)
    try:
        if file.problem:
            raise Unreadable(file.problem)
        if file.size > MOST_BYTES_SENT:
            raise Unreadable(f"has {file.size >> 20} MB; hand in the kernel, or clear the notebook's outputs")
        data = file.read()
        if _is_placeholder(data):
            return None
        read.text = _text_of(file, data, name, stub, read.notes)
    except Unreadable as unreadable:
        read.problem = f"{file.path.name} {unreadable}"
    except OSError as error:
        if is_away(error):  # never the student's fault
            raise
        read.problem = f"{file.path.name} cannot be read ({error.strerror or type(error).__name__})"
    return read


def _age(read: _Read) -> tuple[int, float]:
    return read.file.turn, read.file.time


def _of_one_age(read: _Read) -> tuple[int, int, str]:
    """Returns what decides between files of one time: the number after the name, then which lies further outside."""
    path = read.file.path
    return copy_number(path.name), -len(path.parts), str(path)


def _why_not(other: _Read, best: _Read, stub: str) -> str:
    if other.text is None:
        return other.problem
    if is_worked_on(best.text or "", stub) and not is_worked_on(other.text, stub):
        return f"it is the empty exercise, and {best.file.path} is not"
    if _age(best) > _age(other):
        return f"{best.file.path} is newer"
    number = "" if copy_number(best.file.path.name) <= copy_number(other.file.path.name) else ", of the higher number,"
    return f"{best.file.path}{number} is {'as new' if not number else 'taken for newer'}"


def _of_a_size(name: str, text: str, notes: list[str]) -> str:
    if len(text.encode()) <= MOST_BYTES:
        return text
    notes.append(f"{name} has {len(text)} characters; at most {MOST_BYTES} bytes are judged, so it was not.")
    return f"# This file had {len(text)} characters.\n"


def _text_of(file: File, data: bytes, name: str, stub: str, notes: list[str]) -> str:
    """Returns the text of a script, or of a notebook's solution cell, whatever the file's name ends in.

    Raises Unreadable.
    """
    if not data.strip(NOTHING):
        raise Unreadable(f"is empty ({count_text(len(data), 'byte')}); hand in again")
    if kind := OTHER_KINDS.get(data[:4]):
        raise Unreadable(f"is {kind}, whatever its name ends in; hand in {name}.py or {name}.ipynb itself")
    called, named_so = file.path.name, ".ipynb" in file.path.name.lower()
    try:
        cells = _cells(data)
    except Unreadable:
        if named_so and not PYTHON.search(data):
            raise
        if named_so:
            notes.append(f"{called} is Python text and no notebook; it was read as a .py file.")
        return _own_script(script_text(data), name, stub)
    if not named_so:
        notes.append(f"{called} is a notebook and no Python text; it was read as a notebook.")
    return _solution_of(cells, called, name, stub, notes)


def _own_script(text: str, name: str, stub: str) -> str:
    """Returns this text of a file. Raises Unreadable where it defines no function of the exercise's, and begins with
    the title of another exercise."""
    title, own_title = TITLE.match(text), TITLE.match(stub)
    has_own_function = not {*FUNCTION.findall(text)}.isdisjoint(FUNCTION.findall(stub))
    if title and own_title and title["title"] != own_title["title"] and not has_own_function:
        raise Unreadable(f"is another exercise's file, that of {title['title']}; hand in that of {name}")
    return text


def _solution_of(cells: list[tuple[dict, str]], file: str, name: str, stub: str, notes: list[str]) -> str:
    """Returns the text of the last solution cell that was worked on, without its %%writefile line.

    If none was, another cell that writes the same file counts. A note is added where it is not plain what counts; a
    blank line is returned where there is no such cell. Raises Unreadable for another exercise's notebook.
    """
    magic = magic_of(name)
    written = [(_grade_id(cell) == SOLUTION_CELL, *_written(text)) for cell, text in cells]
    marked = [text for is_marked, _, text in written if is_marked]
    others = [text for is_marked, target, text in written if not is_marked and target == f"{name}.py"]
    targets = {target for is_marked, target, _ in written if is_marked and target}
    if targets and not others and f"{name}.py" not in targets and not any(f"def {name}(" in text for text in marked):
        raise Unreadable(f"is another exercise's notebook, it writes {min(targets)}; hand in that of {name}")
    own, own_others = ([text for text in texts if is_worked_on(text, stub)] for texts in (marked, others))
    if not marked and not others:
        notes.append(
            f"{file} has no solution cell any more, so there is nothing to judge. Put your kernel into the cell "
            f"that begins with {magic} of the notebook as it was handed out."
        )
        return "\n"
    text = (own or own_others or marked or others)[-1]
    if marked and not own and own_others:
        notes.append(f"The solution cell of {file} is as it was handed out; another cell, which begins with {magic}, "
                     "was judged in its place.")  # fmt: skip
    elif any(other != text for other in own_others if own):
        notes.append(f"{file} has another cell that begins with {magic}; the solution cell was judged, and not that.")
    elif len(marked or others) > 1:
        last = "" if text == (marked or others)[-1] else " that was worked on"
        notes.append(f"{file} has {len(marked or others)} solution cells; the last one{last} was judged.")
    if not text.strip():
        notes.append(f"The solution cell of {file} is empty.")
    if not own and not own_others and any(_is_of(stub, cell, text) for cell, text in cells):
        notes.append(f"Another cell of {file} defines the functions of {name} and does not begin with {magic}, so it "
                     "was not judged. Move its code into the solution cell.")  # fmt: skip
    return text


def _is_of(stub: str, cell: dict, text: str) -> bool:
    """Returns whether a plain cell of code defines a function of the exercise's, and is not the stub."""
    is_plain = cell.get("cell_type") == "code" and _grade_id(cell) != SOLUTION_CELL and not _written(text)[0]
    return is_plain and is_worked_on(text, stub) and not {*FUNCTION.findall(text)}.isdisjoint(FUNCTION.findall(stub))


def _written(source: str) -> tuple[str, str]:
    """Returns the name of the file that a cell writes, and its text; "" and the whole cell where it writes none.

    Comments and other magics above that line, as %%time, are left out.
    """
    text = clean(source)
    head = WRITES.match(text)
    return (PurePosixPath(head["file"]).name, clean(text[head.end() :])) if head else ("", text)


def is_worked_on(text: str, stub: str) -> bool:
    """Returns whether a text has code, and other code than the stub."""
    return _code(text) not in ([], _code(stub))


def _code(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def script_text(data: bytes) -> str:
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


def _is_placeholder(data: bytes) -> bool:
    try:
        return len(data) < 1 << 20 and json.loads(data)["metadata"]["course"]["placeholder"] is True
    except (ValueError, RecursionError, KeyError, TypeError):
        return False


def _cells(data: bytes) -> list[tuple[dict, str]]:
    """Returns (cell, text) for the cells of a file that ought to be a notebook. Raises Unreadable if it is none."""
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
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
