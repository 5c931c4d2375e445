"""Hand-ins are read as data: what counts of a notebook and of a file, and what is said of those that do not count."""

from __future__ import annotations

import copy
import json
import os

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from grader.classroom.handin import HandIn, filled, placeholder, read_hand_in, solution_text
from grader.classroom.nbgrader.source_notebook import notebook_of
from grader.course.folder import Folder
from tests.classroom.instructor import ROOT

RELEASED = notebook_of(Folder(ROOT / "exercises/03_softmax"), {"right": 16, "cost": 2})
STUB = solution_text(RELEASED)
CELL = 4


def write(folder, notebook, name="softmax.ipynb"):
    data = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    (folder / name).write_bytes(data)


def read(folder):
    return read_hand_in(folder, "softmax", STUB)


def edited(change):
    notebook = copy.deepcopy(filled(RELEASED, "my kernel"))
    change(notebook)
    return notebook


def test_the_text_of_the_solution_cell_counts(tmp_path):
    write(tmp_path, filled(RELEASED, "my kernel"))
    assert read(tmp_path).text == "my kernel\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda nb: nb.cells[CELL].update(source="my kernel"),
        lambda nb: nb.cells[CELL].metadata.clear(),
        lambda nb: nb.cells[CELL].update(cell_type="markdown"),
        lambda nb: nb.cells[CELL].update(source=nb.cells[CELL].source.replace("\n", "\r\n")),
        lambda nb: nb.cells[CELL].update(source=nb.cells[CELL].source.splitlines(keepends=True)),
        lambda nb: nb.metadata.update(course="x", kernelspec=3),
        lambda nb: nb.update(nbformat=99),
        lambda nb: nb.cells.insert(0, "not a cell"),
        lambda nb: nb.cells[0].update(metadata=[1]),
    ],
    ids=["no magic line", "no metadata", "markdown", "windows", "list of lines", "metadata", "format", "cell", "list"],
)
def test_edits_around_the_text_do_not_matter(tmp_path, change):
    write(tmp_path, edited(change))
    assert read(tmp_path).text == "my kernel\n"
    assert read(tmp_path).notes == []


def test_of_two_solution_cells_the_last_counts_and_it_is_said(tmp_path):
    def twice(notebook):
        notebook.cells.append(copy.deepcopy(notebook.cells[CELL]))
        notebook.cells[-1].source = "%%writefile softmax.py\nthe second"

    write(tmp_path, edited(twice))
    assert read(tmp_path).text == "the second\n"
    assert "2 solution cells; the last one was judged" in read(tmp_path).notes[0]


def test_a_deleted_solution_cell_is_an_empty_file_with_advice(tmp_path):
    write(tmp_path, edited(lambda nb: nb.cells.pop(CELL)))
    hand_in = read(tmp_path)
    assert hand_in.text.strip() == ""
    assert "no solution cell any more" in hand_in.notes[0]


@pytest.mark.parametrize(
    "data, problem",
    [
        (b"", "is empty (0 bytes)"),
        (b"hello", "is not a notebook (line 1 is not JSON)"),
        (b"[1, 2]", "is not a notebook (it has no list of cells)"),
        (b"\xff\xfe{", "is not a notebook (byte 0 is not UTF-8)"),
        (b"[" * 100_000, "is not a notebook (nested too deeply)"),
    ],
    ids=["empty", "text", "list", "bytes", "nested"],
)
def test_a_notebook_that_is_none_is_not_graded_and_the_sentence_says_why(tmp_path, data, problem):
    write(tmp_path, data)
    hand_in = read(tmp_path)
    assert hand_in.text is None
    assert problem in hand_in.problem


@pytest.mark.parametrize(
    ("data", "size"),
    [(b"", "0 bytes"), (b"\n", "1 byte"), (b" \r\n\t", "4 bytes"), ("\ufeff\n".encode("utf-16"), "6 bytes")],
)
def test_an_empty_script_is_not_graded_either(tmp_path, data, size):
    write(tmp_path, data, "softmax.py")
    assert read(tmp_path).problem == f"softmax.py is empty ({size}); hand in again"


def test_a_broken_notebook_beside_a_script_is_noted_and_the_script_judged(tmp_path):
    write(tmp_path, b"hello")
    write(tmp_path, b"my kernel", "softmax.py")
    assert read(tmp_path).text == "my kernel\n"
    assert "softmax.ipynb is not a notebook" in read(tmp_path).notes[0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_script_may_come_in_any_unicode(tmp_path, encoding):
    write(tmp_path, "größer\r\n".encode(encoding), "softmax.py")
    assert read(tmp_path).text == "größer\n"


def test_a_script_in_another_encoding_is_not_guessed_at(tmp_path):
    write(tmp_path, "größer".encode("latin-1"), "softmax.py")
    assert "is not UTF-8 text (byte 2)" in read(tmp_path).problem


def test_an_untouched_notebook_gives_way_to_a_script(tmp_path):
    write(tmp_path, b"my kernel", "softmax.py")
    write(tmp_path, RELEASED)
    assert read(tmp_path).text == "my kernel\n"
    assert read(tmp_path).notes == ["softmax.ipynb was not judged: it is the empty exercise, and softmax.py is not."]


@pytest.mark.parametrize("newer", ["softmax.py", "softmax.ipynb"])
def test_of_two_that_were_worked_on_the_newer_counts_and_it_is_said(tmp_path, newer):
    write(tmp_path, filled(RELEASED, "the softmax.ipynb"))
    write(tmp_path, b"the softmax.py", "softmax.py")
    for name in ("softmax.py", "softmax.ipynb"):
        os.utime(tmp_path / name, (2000, 2000) if name == newer else (1000, 1000))
    assert read(tmp_path).text == f"the {newer}\n"
    assert read(tmp_path).notes[0].endswith(f" was not judged: {newer} is newer.")


def test_a_wrong_name_is_told_with_the_names_that_are_there(tmp_path):
    write(tmp_path, RELEASED, "my softmax.ipynb")
    assert read(tmp_path).problem == "softmax.ipynb or softmax.py was expected; there is my softmax.ipynb"
    assert not read(tmp_path).absent


def test_of_several_notebooks_the_one_that_was_worked_on_counts_and_the_others_are_told(tmp_path):
    write(tmp_path, RELEASED)
    write(tmp_path, filled(RELEASED, "my kernel"), "softmax (1).ipynb")
    write(tmp_path, filled(RELEASED, "a try"), "Untitled.ipynb")
    assert read(tmp_path).text == "my kernel\n"
    assert read(tmp_path).notes == [
        "softmax.ipynb was not judged: it is the empty exercise, and softmax (1).ipynb is not."
    ]


def test_an_empty_folder_is_absent(tmp_path):
    (tmp_path / "timestamp.txt").write_text("2030-01-01")
    assert read(tmp_path).absent


def test_a_placeholder_of_ours_counts_as_nothing(tmp_path):
    write(tmp_path, placeholder(RELEASED))
    assert read(tmp_path).absent


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "secret.py").write_text("the solution")
    (tmp_path / "softmax.py").symlink_to(tmp_path / "secret.py")
    assert "is a link" in read(tmp_path).problem


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "softmax.py")
    assert "is not a file" in read(tmp_path).problem


@pytest.mark.parametrize("name", ["softmax.py", "softmax.ipynb"])
def test_a_zip_under_the_name_of_a_script_or_a_notebook_is_told_as_one(tmp_path, name):
    write(tmp_path, b"PK\x03\x04\x14\x00\xff", name)
    assert read(tmp_path).problem == (
        f"{name} is a zip, or a document of a word processor, whatever its name ends in; hand in softmax.py or "
        "softmax.ipynb itself"
    )


def test_a_lone_surrogate_is_replaced(tmp_path):
    write(tmp_path, new_notebook(cells=[new_code_cell("%%writefile softmax.py\nx = '\ud800'")]))
    assert read(tmp_path).text == "x = '?'\n"


def beside(text, at=CELL + 1):
    """An edit: a cell of the student's own that writes the same file."""
    return lambda nb: nb.cells.insert(at, new_code_cell(f"%%writefile softmax.py\n{text}"))


def untouched(change):
    notebook = copy.deepcopy(RELEASED)
    notebook.cells[CELL].source = f"%%writefile softmax.py\n{STUB}\n# a remark"
    change(notebook)
    return notebook


@pytest.mark.parametrize("at", [0, CELL + 1, -1])
def test_a_kernel_in_another_cell_is_judged_where_the_solution_cell_is_untouched(tmp_path, at):
    write(tmp_path, untouched(beside("x = 1\n", at)))
    assert read(tmp_path).text == "x = 1\n"
    assert read(tmp_path).notes == [
        "The solution cell of softmax.ipynb is as it was handed out; another cell, which begins with "
        "%%writefile softmax.py, was judged in its place."
    ]


@pytest.mark.parametrize("at", [2, CELL + 1])
def test_a_kernel_in_a_cell_that_saves_no_file_is_told(tmp_path, at):
    own = STUB.replace("import triton", "import triton  # mine\nX = 1", 1)
    write(tmp_path, untouched(lambda nb: nb.cells.insert(at, new_code_cell(own))))
    assert read(tmp_path).notes == [
        "Another cell of softmax.ipynb defines the functions of softmax and does not begin with %%writefile "
        "softmax.py, so it was not judged. Move its code into the solution cell."
    ]
    write(tmp_path, untouched(lambda nb: nb.cells.insert(at, new_code_cell("softmax(x)"))))
    assert read(tmp_path).notes == []


def test_a_kernel_in_another_cell_than_the_one_that_was_worked_on_is_told(tmp_path):
    write(tmp_path, edited(beside("x = 1\n")))
    assert read(tmp_path).text == "my kernel\n"
    assert read(tmp_path).notes == [
        "softmax.ipynb has another cell that begins with %%writefile softmax.py; the solution cell was judged, and not "
        "that."
    ]


@pytest.mark.parametrize(
    "head",
    [
        "%%time\n%%writefile softmax.py\n",
        "# my solution\n\n%%writefile softmax.py\n",
        "%matplotlib inline\n  %%file ./softmax.py\n",
        "%%capture\n# a\n%%time\n%%writefile  softmax.py  \n",
    ],
)
def test_what_stands_above_the_line_that_saves_the_file_is_not_in_it(tmp_path, head):
    write(tmp_path, edited(lambda nb: nb.cells[CELL].update(source=f"{head}my kernel")))
    assert read(tmp_path) == HandIn("my kernel\n")


def test_a_notebook_counts_as_one_whatever_its_name(tmp_path):
    write(tmp_path, filled(RELEASED, "my kernel"), "softmax.py")
    assert read(tmp_path).text == "my kernel\n"
    assert read(tmp_path).notes == ["softmax.py is a notebook and no Python text; it was read as a notebook."]


def test_python_counts_as_such_whatever_its_name(tmp_path):
    write(tmp_path, b"import torch\n(", "softmax.ipynb")
    assert read(tmp_path).text == "import torch\n(\n"
    assert read(tmp_path).notes == ["softmax.ipynb is Python text and no notebook; it was read as a .py file."]


@pytest.mark.parametrize("name", ["softmax.py", "softmax.ipynb"])
def test_another_exercises_file_is_told(tmp_path, name):
    other = (ROOT / "solutions/01_masked_add/masked_add.py").read_text(encoding="utf-8")
    write(tmp_path, other.encode(), name)
    assert read(tmp_path).text is None
    assert read(tmp_path).problem == (
        f"{name} is another exercise's file, that of 01 · Masked add; hand in that of softmax"
    )
    for own in (f"{other}\n\ndef softmax(x): ...\n", "def masked_add(x, y): ...\n", STUB):
        write(tmp_path, own.encode(), name)
        assert read(tmp_path).text == own


def test_another_exercises_notebook_is_told(tmp_path):
    other = notebook_of(Folder(ROOT / "exercises/01_masked_add"), {"right": 16})
    write(tmp_path, filled(other, "def masked_add(): ..."))
    assert read(tmp_path).problem == (
        "softmax.ipynb is another exercise's notebook, it writes masked_add.py; hand in that of softmax"
    )
    write(tmp_path, edited(lambda nb: nb.cells[CELL].update(source="%%writefile mine.py\ndef softmax(): ...")))
    assert read(tmp_path).text == "def softmax(): ...\n"
