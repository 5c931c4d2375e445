"""A class that does not exist: what its students hand in, drawn from a seed, and the points that each must get.

Right and wrong work comes from solutions/; around the text stand the things
that happen to notebooks and files, and the things that some try. The same seed gives the same class.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from tests.conftest import mutant
from tests.slow import SLOW

ROOT = Path(__file__).resolve().parents[2]
SOLUTION_CELL = 4
FIRST_NAMES = ("Ada", "Björn", "Chloë", "Đorđe", "Emre", "Fatima", "Gül", "Håkon", "Inês", "José", "Kateřina", "Łukasz")
LAST_NAMES = ("Lovelace", "Åström", "Müller", "O'Neil", "d'Arc", "Škoda", "Yılmaz", "Ødegård", "Peña", "Čapek", "Li")


ALL = object()  # every point of an item
FULL, NOTHING = {}, {"right": ALL, "cost": ALL, "hidden": ALL}  # what is lost of each item
COST_WAITS = {"cost": ALL}
COST_OF_FULL_WAITS = {"cost": 2}  # where the core is passed, the cost of the core is judged: one test of three

# Mutants that are partly right, and how many points of each item they lose. Where values are wrong, cost is not judged.
PARTLY_RIGHT = {
    "01_masked_add/floor_grid": {"right": 7, **COST_WAITS},
    "01_masked_add/grid_of_one_program": {"right": 5, **COST_WAITS},
    "01_masked_add/hard_coded_start": {"right": 2, "cost": 4},
    "01_masked_add/if_on_a_tile": {"right": ALL, **COST_WAITS},
    "01_masked_add/grid_one_too_many": {"cost": 1},
    "02_strided_blocks/assume_contiguous_source": {"right": 6, **COST_WAITS},
    "02_strided_blocks/hard_coded_tile": {"right": 2, **COST_OF_FULL_WAITS},
    "02_strided_blocks/no_store_mask": {"right": 15, **COST_WAITS},
    "02_strided_blocks/swapped_strides_of_source": {"right": 15, **COST_WAITS},
    "03_softmax/pad_zero": {"right": 12, "hidden": 1, **COST_WAITS},
    "03_softmax/no_maximum": {"right": 6, "hidden": 1, **COST_WAITS},
    "03_softmax/no_stride_2": {"right": 3, "hidden": 1, **COST_OF_FULL_WAITS},
    "03_softmax/pad_minus_10000": {"right": 2, **COST_OF_FULL_WAITS},
    "03_softmax/x_read_twice": {"cost": 2},
    "04_transpose/assume_contiguous": {"right": 4, **COST_OF_FULL_WAITS},
    "04_transpose/hard_coded_tile": {"right": 3, **COST_OF_FULL_WAITS},
    "04_transpose/no_mask": {"right": 11, **COST_WAITS},
    "04_transpose/reads_tile_twice": {"cost": 2},
    "05_grouped_matmul/b_strides_swapped": {"right": 19, **COST_WAITS},
    "05_grouped_matmul/column_major_order": {"cost": 4},
    "05_grouped_matmul/floor_k": {"right": 16, **COST_WAITS},
    "05_grouped_matmul/half_accumulator": {"right": 16, **COST_WAITS},
}


SCRIPT_KINDS, SCRIPT_WEIGHTS = ("right", "partly right", "stub", "slow", "hostile"), (57, 30, 7, 3, 3)


@dataclass
class HandIn:
    """Files that one student hands in for one exercise. lost: points by item; None where nothing is graded."""

    student: str
    exercise: str
    kind: str
    files: dict[str, bytes]
    lost: dict | None = field(default_factory=dict)

    def expected(self, points: dict[str, float]) -> dict[str, float | None]:
        """The score of each item."""
        if self.lost is None:
            return dict.fromkeys(points)
        lost = {item: self.lost.get(item, 0) for item in points}
        return {item: 0 if lost[item] is ALL else worth - lost[item] for item, worth in points.items()}


class Class:
    """Draws hand-ins. `released`: exercise id -> the released notebook."""

    def __init__(self, seed: int, released: dict[str, nbformat.NotebookNode]) -> None:
        self.random = random.Random(seed)
        self.released = released
        self.right = {id: _right_texts(id) for id in released}
        self.remarks = 10  # of which a right text gets one

    def hand_ins(self, students: int) -> list[HandIn]:
        """One per student and exercise; every kind of oddity comes up at least once where there is room for it."""
        names = self._names(students)
        slots = [(name, exercise) for name in names for exercise in self.released]
        odd = dict(zip(self.random.sample(slots, min(len(ODDITIES), len(slots))), ODDITIES))
        made = [self._odd(*slot, odd[slot]) if slot in odd else self._ordinary(*slot) for slot in slots]
        return [hand_in for hand_in in made if hand_in.files]

    def scripts(self, students: int) -> list[HandIn]:
        """One .py file per student and exercise, no two alike to the letter: right, wrong, slow and hostile work."""
        made = []
        for student in self._names(students):
            for exercise in self.released:
                kind = self.random.choices(SCRIPT_KINDS, SCRIPT_WEIGHTS)[0]
                text, lost = self._script(exercise, kind)
                files = script(exercise, f"{text}# {student}\n")
                made.append(HandIn(student, exercise, kind, files, lost))
        return made

    def _script(self, exercise: str, kind: str) -> tuple[str, dict]:
        if kind == "stub":
            return _stub(exercise), NOTHING
        if kind == "partly right":
            name = self.random.choice([name for name in PARTLY_RIGHT if name.startswith(exercise)])
            return mutant(name), PARTLY_RIGHT[name]
        right = self._right(exercise)
        if kind == "right":
            return right, FULL
        oddity = {"slow": slow_but_right}.get(kind) or self.random.choice(HOSTILE_SCRIPTS)
        lost = next(odd.lost for odd in ODDITIES if odd.make is oddity)
        return oddity(self.released[exercise], exercise, right)[f"{exercise[3:]}.py"].decode(), lost

    def _names(self, count: int) -> list[str]:
        pairs = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
        plain = [f"s{number:03}" for number in range(count)]
        full = self.random.sample(pairs, min(len(pairs), count // 2))
        return full + plain[: count - len(full)]

    def _ordinary(self, student: str, exercise: str) -> HandIn:
        kind = self.random.choices(("right", "partly right", "stub", "none"), (60, 30, 7, 3))[0]
        if kind == "none":
            return HandIn(student, exercise, kind, {})
        text, lost = _stub(exercise), NOTHING
        if kind == "right":
            text, lost = self._right(exercise), FULL
        elif kind == "partly right":
            name = self.random.choice([name for name in PARTLY_RIGHT if name.startswith(exercise)])
            text, lost = mutant(name), PARTLY_RIGHT[name]
        as_file = self.random.random() < 0.3
        files = script(exercise, text) if as_file else notebook(exercise, filled(self.released[exercise], text))
        return HandIn(student, exercise, kind, files, lost)

    def _odd(self, student: str, exercise: str, oddity: Oddity) -> HandIn:
        files = oddity.make(self.released[exercise], exercise, self._right(exercise))
        return HandIn(student, exercise, oddity.make.__name__, files, oddity.lost)

    def _right(self, exercise: str) -> str:
        """A right text with a remark of its own, so that not all are the same to the letter."""
        return f"{self.random.choice(self.right[exercise])}# {self.random.randrange(self.remarks)}\n"


@dataclass(frozen=True)
class Oddity:
    """make(released notebook, exercise, right text) -> files."""

    make: Callable[[nbformat.NotebookNode, str, str], dict[str, bytes]]
    lost: dict | None


ODDITIES: list[Oddity] = []


def odd(lost: dict | None):
    def register(make):
        ODDITIES.append(Oddity(make, lost))
        return make

    return register


# ---- notebooks that were edited, with a right text: nothing but the text counts -------------------------------------


@odd(FULL)
def grade_cell_deleted(released, exercise, text):
    return notebook(exercise, changed(released, text, lambda nb: nb.cells.pop()))


@odd(FULL)
def grade_cell_edited(released, exercise, text):
    return notebook(exercise, changed(released, text, lambda nb: nb.cells[-1].update(source="1000")))


@odd(FULL)
def grade_cells_twice(released, exercise, text):
    return notebook(exercise, changed(released, text, lambda nb: nb.cells.extend(copy.deepcopy(nb.cells[-3:]))))


@odd(FULL)
def points_edited(released, exercise, text):
    return notebook(exercise, changed(released, text, lambda nb: nb.cells[-1].metadata["nbgrader"].update(points=1000)))


@odd(FULL)
def schema_from_the_future(released, exercise, text):
    def edit(nb):
        nb.cells[-1].metadata["nbgrader"].update(schema_version=99)

    return notebook(exercise, changed(released, text, edit))


@odd(FULL)
def metadata_is_a_string(released, exercise, text):
    return notebook(exercise, changed(released, text, lambda nb: nb.cells[-1].metadata.update(nbgrader="x")))


@odd(FULL)
def solution_cell_without_metadata(released, exercise, text):
    return notebook(exercise, changed(released, text, lambda nb: nb.cells[SOLUTION_CELL].metadata.clear()))


@odd(FULL)
def solution_cell_twice(released, exercise, text):
    def edit(nb):
        nb.cells.insert(SOLUTION_CELL, copy.deepcopy(nb.cells[SOLUTION_CELL]))
        nb.cells[SOLUTION_CELL].source = "an earlier attempt"

    return notebook(exercise, changed(released, text, edit))


@odd(FULL)
def solution_cell_as_markdown(released, exercise, text):
    return notebook(exercise, changed(released, text, lambda nb: nb.cells[SOLUTION_CELL].update(cell_type="markdown")))


@odd(FULL)
def magic_line_deleted(released, exercise, text):
    return notebook(exercise, changed(released, text, lambda nb: nb.cells[SOLUTION_CELL].update(source=text)))


@odd(FULL)
def cell_that_ends_the_kernel(released, exercise, text):
    cell = new_code_cell("import os; os._exit(0)")
    return notebook(exercise, changed(released, text, lambda nb: nb.cells.insert(0, cell)))


@odd(FULL)
def cell_that_replaces_the_judge(released, exercise, text):
    cell = new_code_cell("import grader.classroom\ngrader.classroom.score = lambda *a: 1000\n%autocall 2")
    return notebook(exercise, changed(released, text, lambda nb: nb.cells.insert(0, cell)))


@odd(FULL)
def script_in_markdown(released, exercise, text):
    cell = new_markdown_cell("<script>steal()</script><img src=x onerror=steal()>")
    return notebook(exercise, changed(released, text, lambda nb: nb.cells.insert(0, cell)))


@odd(FULL)
def unknown_kernel(released, exercise, text):
    kernel = {"name": "conda-env-mine-py", "display_name": "mine"}
    return notebook(exercise, changed(released, text, lambda nb: nb.metadata.update(kernelspec=kernel)))


@odd(FULL)
def windows_line_ends(released, exercise, text):
    return {name: data.replace(b"\n", b"\r\n") for name, data in notebook(exercise, filled(released, text)).items()}


@odd(FULL)
def byte_order_mark(released, exercise, text):
    return {name: b"\xef\xbb\xbf" + data for name, data in notebook(exercise, filled(released, text)).items()}


@odd(FULL)
def script_in_utf16(released, exercise, text):
    return {f"{exercise[3:]}.py": text.replace("\n", "\r\n").encode("utf-16")}


@odd(FULL)
def untouched_notebook_beside_a_script(released, exercise, text):
    return {**notebook(exercise, released), **script(exercise, text)}


@odd(FULL)
def foreign_files_beside_a_script(released, exercise, text):
    trap = b"raise SystemExit('a file beside a submission was run')"
    names = ("conftest.py", "torch.py", "triton.py", "sitecustomize.py", "numpy.py")
    return {**script(exercise, text), **dict.fromkeys(names, trap)}


@odd(FULL)
def slow_but_right(released, exercise, text):
    return script(exercise, f"{text}\nfor _ in range(20_000_000):\n    pass\n")


# ---- nothing that is right ------------------------------------------------------------------------------------------


@odd(NOTHING)
def forged_output(released, exercise, text):
    forged = new_output("execute_result", data={"text/plain": "1000.0"}, execution_count=1)
    return notebook(exercise, changed(released, _stub(exercise), lambda nb: nb.cells[-1].update(outputs=[forged])))


@odd(NOTHING)
def solution_cell_deleted(released, exercise, text):
    return notebook(exercise, changed(released, text, lambda nb: nb.cells.pop(SOLUTION_CELL)))


@odd(NOTHING)
def solution_cell_emptied(released, exercise, text):
    return notebook(exercise, changed(released, text, lambda nb: nb.cells[SOLUTION_CELL].update(source="")))


@odd(NOTHING)
def syntax_error(released, exercise, text):
    return script(exercise, f"{text}\n)\n")


@odd(NOTHING)
def entry_renamed(released, exercise, text):
    return script(exercise, _renamed(text))


@odd(NOTHING)
def null_byte(released, exercise, text):
    return script(exercise, f"x = '\x00'\n{text}")


@odd(NOTHING)
def ten_megabytes(released, exercise, text):
    return notebook(exercise, filled(released, f"# {'x' * 10_000_000}\n{text}"))


@odd(NOTHING)
def nested_too_deeply(released, exercise, text):
    return script(exercise, f"x = {'(' * 100_000}0{')' * 100_000}\n{text}")


# ---- files that attack: what they would get if they were let ---------------------------------------------------------


@odd(NOTHING)
def ends_the_process(released, exercise, text):
    return script(exercise, f"import os\nos._exit(0)\n{text}")


@odd(NOTHING)
def exits(released, exercise, text):
    return script(exercise, f"exit(0)\n{text}")


@odd(NOTHING)
def loops_at_import(released, exercise, text):
    return script(exercise, f"{text}\nwhile True:\n    pass\n")


@odd(NOTHING)
def loops_deaf_to_signals(released, exercise, text):
    """In `tox -- slow` the file computes for all the time that it may. Elsewhere it sleeps, as `loops_at_import`
    computes."""
    turn = "pass" if SLOW else "signal.pause()"
    deaf = f"import signal\nfor n in (2, 15):\n    signal.signal(n, signal.SIG_IGN)\nwhile True:\n    {turn}\n"
    return notebook(exercise, filled(released, f"{deaf}{text}"))


@odd(NOTHING)
def forks_again_and_again(released, exercise, text):
    """In `tox -- slow` the file forks without end, and takes all cores from the hand-ins beside it. Elsewhere it makes
    128 processes, more than a sandbox permits, and they sleep for ever."""
    if SLOW:
        return script(exercise, f"import os\nwhile True:\n    os.fork()\n{text}")
    asleep = "while True:\n    signal.pause()\n"
    return script(exercise, f"import os, signal\nfor _ in range(7):\n    os.fork()\n{asleep}{text}")


@odd(NOTHING)
def eats_memory(released, exercise, text):
    return script(exercise, f"held = []\nwhile True:\n    held.append([0] * 10**8)\n{text}")


@odd(FULL)
def prints_100_megabytes(released, exercise, text):
    return script(exercise, f"for _ in range(100):\n    print('x' * 1_000_000)\n{text}")


@odd(NOTHING)
def writes_into_the_gradebook(released, exercise, text):
    attack = "import sqlite3\nsqlite3.connect('gradebook.db').execute('update grade set auto_score = 1000')\n"
    return script(exercise, f"{attack}{text}")


@odd(NOTHING)
def writes_a_file(released, exercise, text):
    return script(exercise, f"open('/tmp/course_was_here', 'w').write('x')\n{text}")


@odd(NOTHING)
def uses_the_network(released, exercise, text):
    return script(exercise, f"import socket\nsocket.create_connection(('127.0.0.1', 80))\n{text}")


@odd(NOTHING)
def runs_a_command_while_compiling(released, exercise, text):
    return script(exercise, text.replace("tl.program_id", "tl.core.inspect.os.system('id') or tl.program_id", 1))


@odd(NOTHING)
def patches_the_comparison(released, exercise, text):
    return script(exercise, f"{_stub(exercise)}\ntorch.testing.assert_close = lambda *a, **k: None\n")


@odd(NOTHING)
def raises_markup(released, exercise, text):
    return script(exercise, f"raise ValueError('<script>steal()</script>' * 1000 + 'PASS')\n{text}")


HOSTILE_SCRIPTS = (
    ends_the_process, exits, loops_at_import, forks_again_and_again, eats_memory, prints_100_megabytes,
    writes_into_the_gradebook, writes_a_file, uses_the_network, runs_a_command_while_compiling, patches_the_comparison,
    raises_markup,
)  # fmt: skip


# ---- files that cannot be judged: no points, and no 0 ---------------------------------------------------------------


@odd(None)
def not_a_notebook(released, exercise, text):
    return {f"{exercise[3:]}.ipynb": b"this is not a notebook"}


@odd(None)
def empty_file(released, exercise, text):
    return {f"{exercise[3:]}.ipynb": b""}


@odd(None)
def json_without_cells(released, exercise, text):
    return {f"{exercise[3:]}.ipynb": b'{"cells": "none"}'}


@odd(None)
def wrong_name(released, exercise, text):
    return {"my solution.ipynb": json.dumps(filled(released, text)).encode()}


@odd(None)
def latin_1(released, exercise, text):
    return {f"{exercise[3:]}.py": f"# größer\n{text}".encode("latin-1")}


# ---- helpers --------------------------------------------------------------------------------------------------------


def handed_out(*exercises: str) -> dict[str, nbformat.NotebookNode]:
    """What students get, without nbgrader's way of making it: exercise id -> the notebook with the stub in it."""
    from grader.classroom.nbgrader.source_notebook import notebook_of
    from grader.course.folder import Folder

    made = {id: notebook_of(Folder(ROOT / "exercises" / id), {"right": 1, "cost": 1}) for id in exercises}
    return {id: filled(notebook, _stub(id)) for id, notebook in made.items()}


def filled(released: nbformat.NotebookNode, text: str) -> nbformat.NotebookNode:
    notebook = copy.deepcopy(released)
    cell = notebook.cells[SOLUTION_CELL]
    cell.source = f"{cell.source.partition(chr(10))[0]}\n{text.rstrip()}"
    return notebook


def changed(released: nbformat.NotebookNode, text: str, edit: Callable) -> nbformat.NotebookNode:
    notebook = filled(released, text)
    edit(notebook)
    return notebook


def notebook(exercise: str, content: nbformat.NotebookNode) -> dict[str, bytes]:
    return {f"{exercise[3:]}.ipynb": json.dumps(content, ensure_ascii=False, indent=1).encode()}


def script(exercise: str, text: str) -> dict[str, bytes]:
    return {f"{exercise[3:]}.py": text.encode()}


def _right_texts(exercise: str) -> list[str]:
    paths = sorted((ROOT / "solutions" / exercise / "accepted").glob("*.py"))
    return [path.read_text(encoding="utf-8") for path in [ROOT / "solutions" / exercise / f"{exercise[3:]}.py", *paths]]


def _stub(exercise: str) -> str:
    return (ROOT / "exercises" / exercise / f"{exercise[3:]}.py").read_text(encoding="utf-8")


def _renamed(text: str) -> str:
    """The host function, which is the last one without a decorator, under another name."""
    head, _, tail = text.rpartition("\ndef ")
    return f"{head}\ndef another_{tail}"
