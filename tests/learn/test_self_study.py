"""Notebooks for self-study: what each holds, and what the cells of one say to a stub, a wrong and a right answer."""

from __future__ import annotations

import base64
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="nbclient runs notebooks: see the extra classroom")
pytest.importorskip("ipykernel", reason="ipykernel runs notebooks: see the extra classroom")

import nbformat

from grader.course.folder import all_folders
from grader.course.questions import questions_of
from grader.course.regions import BEGIN, marked_regions
from grader.gpu.device import NO_GPU
from grader.learn.notebook import check, explanation, hint, plot
from grader.learn.notebooks.parts import IMAGE, lesson_of
from grader.learn.notebooks.self_study import Origin, self_study_notebook
from tests.conftest import ROOT, mutant
from tests.learn.student import FIRST, Student
from tests.typed_commands import ended_here, run_course

ADD = "01_masked_add"
EXERCISES = all_folders(ROOT)
SVG = re.compile(r"\]\(data:image/svg\+xml;base64,([^)]+)\)")
CALLS = ["predict", "check", "hint", "explanation", "plot"]
GITHUB = "https://github.com/somebody/something"


@pytest.mark.parametrize("folder", EXERCISES, ids=lambda folder: folder.id)
def test_a_notebook_holds_what_its_exercise_has(folder):
    notebook = self_study_notebook(folder, Origin(""), "")
    nbformat.validate(notebook)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    first, asked, task, *others = code
    assert FIRST in first and 'COURSE_FROM = ""' in first
    magic, _, stub = task.partition("\n")
    assert magic == f"%%writefile {folder.name}.py"
    assert f"{stub}\n" == folder.learner_file.read_text(encoding="utf-8")
    assert [name for name in CALLS for source in (asked, *others) if f"import {name}\n" in source] == CALLS
    assert all(question.ask in text for question in questions_of(folder))
    pictures = [ET.fromstring(base64.b64decode(data)) for data in SVG.findall(text)]
    lesson = (folder.path / "README.md").read_text(encoding="utf-8")
    assert len(pictures) == len(IMAGE.findall(lesson)) > 0
    assert all(picture.tag.endswith("svg") for picture in pictures)
    assert not re.findall(r"\]\((?!https?:|data:)[^)]*\)", re.sub(r"`[^`]*`", "", text))
    assert all(code in text for code in re.findall(r"`[^`]*`", lesson) if "](" in code)


@pytest.mark.parametrize("folder", EXERCISES, ids=lambda folder: folder.id)
def test_a_notebook_holds_no_line_of_the_solution_and_no_hint(folder):
    notebook = json.dumps(self_study_notebook(folder, Origin(""), ""), ensure_ascii=False)
    lines = folder.solution_file.read_text(encoding="utf-8").splitlines()
    secret = {line.strip() for first, last in marked_regions("\n".join(lines)) for line in lines[first : last - 1]}
    told = lesson_of(folder)  # which may show a line on purpose
    assert not [line for line in secret if len(line) > 12 and json.dumps(line)[1:-1] in notebook and line not in told]
    assert BEGIN not in notebook and "## Hint 1" not in notebook and "## Explanation" not in notebook


def test_the_same_exercise_makes_the_same_notebook():
    made = [self_study_notebook(EXERCISES[0], Origin(GITHUB), "a/b.ipynb") for _ in range(2)]
    assert made[0] == made[1]


def test_a_badge_stands_where_the_repository_is_known():
    opened = f"https://colab.research.google.com/github/somebody/something/blob/HEAD/notebooks/{ADD}.ipynb"
    for known in (GITHUB, f"{GITHUB}.git", f"{GITHUB}/"):
        notebook = self_study_notebook(EXERCISES[0], Origin(known), f"notebooks/{ADD}.ipynb")
        assert f"]({opened})" in notebook.cells[0].source
        assert f'COURSE_FROM = "{GITHUB}/archive/HEAD.tar.gz"' in notebook.cells[1].source
    wheel = "triton_course-0.1.0-py3-none-any.whl"
    notebook = self_study_notebook(EXERCISES[0], Origin(wheel), f"notebooks/{ADD}.ipynb")
    assert "colab" not in notebook.cells[0].source
    assert f'COURSE_FROM = "{wheel}"' in notebook.cells[1].source


def test_a_wrong_answer_in_a_kernel(tmp_path):
    with Student(ADD, tmp_path) as student:
        assert student.reads("import check").startswith(
            f"{tmp_path}/triton-course/exercises/{ADD} is not there. Next: run"
        )
        here = student.reads(FIRST)
        assert "Judged here: values, memory safety, races, traffic, machine code. Not here:" in here
        assert student.reads("import check") == (
            "There is no masked_add.py yet. Next: run the task cell, whose first line, %%writefile masked_add.py, "
            "saves it.\n"
        )
        said = student.checks(mutant(f"{ADD}/no_mask"))
        assert "has no mask: lanes past the end of z take part in it" in " ".join(said.split())
        assert "FAIL" in said and said == student.pytest_says(said)
        assert "Hint 1 of 3" in student.reads("import hint")
        student.cell("import plot").source = "import sys; print({'torch', 'triton', 'masked_add'} & set(sys.modules))"
        assert student.reads("import sys; print") == "set()\n"


@pytest.fixture
def laid_down(tmp_path) -> Path:
    """A folder in which a first cell has laid the course down."""
    assert run_course("init", "triton-course", cwd=tmp_path).status == 0
    return tmp_path


@pytest.fixture
def own(laid_down, monkeypatch, capsys):
    """own(call): what a cell's call prints, in this process, in the place of a kernel's and of those that it starts."""
    monkeypatch.setattr("grader.learn.notebooks.cells.ended", ended_here)
    monkeypatch.setattr("grader.learn.notebook.ended", ended_here)
    monkeypatch.setattr("grader.gpu.device._told", NO_GPU)
    monkeypatch.setattr("IPython.display.display", lambda shown: print(shown.data))
    monkeypatch.chdir(laid_down)

    def own(call: Callable[[str], None]) -> str:
        call(ADD)
        return capsys.readouterr().out

    return own


def test_a_stub_a_wrong_and_a_right_answer(laid_down, own):
    saved = laid_down / "masked_add.py"
    saved.write_bytes(EXERCISES[0].learner_file.read_bytes())
    assert own(check).endswith("are empty.\n  Next: fill in the marked regions of the task cell.\n")
    saved.write_text(mutant(f"{ADD}/no_mask"), encoding="utf-8")
    said = own(check)
    assert "FAIL" in said and re.search(r"^  Next: edit line \d+ of the task cell ", said, re.M)
    assert "exercises/" not in said.partition("\n\n")[2]
    assert said.endswith("Lines are counted without the cell's first line, %%writefile.\n")
    hints = [own(hint) for _ in range(2)]
    assert "Hint 1 of 3" in hints[0] and "Hint 2 of 3" in hints[1]
    assert "its solution opens when it is passed" in own(explanation)
    saved.write_bytes(EXERCISES[0].solution_file.read_bytes())
    said = own(check)
    assert "Passed, judged in" in said and "FAIL" not in said
    explained = own(explanation)
    assert explained.startswith('"""01 · Masked add') and BEGIN not in explained and "**Why" in explained
    assert "course plot measures on a GPU, and there is none here" in own(plot)
    assert not list((laid_down / "triton-course/exercises" / ADD).glob("*.kept*"))
    assert "passed" in run_course("status", cwd=laid_down / "triton-course").out


def test_what_was_written_in_an_editor_is_kept(laid_down, own):
    stub = EXERCISES[0].learner_file.read_text(encoding="utf-8")
    file = laid_down / "triton-course/exercises" / ADD / "masked_add.py"
    file.write_text(f"{stub}# an evening's work\n", encoding="utf-8")
    (laid_down / "masked_add.py").write_text(stub, encoding="utf-8")
    said = own(check)
    kept = file.with_name("masked_add.py.kept1")
    assert f"{file} held another text than this notebook. It is kept: {kept}" in said
    assert kept.read_text(encoding="utf-8").endswith("# an evening's work\n")
    assert file.read_text(encoding="utf-8") == stub


def test_a_task_cell_without_its_first_line_is_told(laid_down):
    with Student(ADD, laid_down) as student:
        cell = student.cell("%%writefile")
        cell.source = cell.source.partition("\n")[2].replace("import torch", "torch = None").replace("@triton.jit", "")
        cell.source = cell.source.replace("import triton.language as tl", "import types; tl = types.SimpleNamespace()")
        cell.source = cell.source.replace("import triton\n", "").replace(": tl.constexpr", "")
        student.reads("torch = None")
        said = student.reads("import check")
    assert said.startswith(
        "The task cell ran last without %%writefile masked_add.py as its first line, so its text was"
    )
    assert "There is no masked_add.py yet." in said


def test_a_folder_of_notebooks(tmp_path):
    done = run_course("notebooks", "--self-study", "--out", str(tmp_path / "mine"), "--from", GITHUB, cwd=ROOT)
    assert done.status == 0 and done.out.startswith(f"{len(EXERCISES)} notebooks in {tmp_path / 'mine'}")
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == [
        *(f"{folder.id}.ipynb" for folder in sorted(EXERCISES, key=lambda folder: folder.id)),
        "README.md",
    ]
    readme = (tmp_path / "mine/README.md").read_text(encoding="utf-8")
    assert readme.count("blob/HEAD/mine/") == len(EXERCISES)


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "work.ipynb").write_text("mine")
    done = run_course("notebooks", "--self-study", "--out", str(tmp_path), "01", cwd=ROOT)
    assert done.status == 1 and f"{tmp_path} is not empty: notebooks may hold somebody's work." in done.err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_notebooks_that_do_not_know_where_the_course_comes_from_say_so(tmp_path):
    done = run_course("notebooks", "--self-study", "--out", str(tmp_path / "mine"), "01", cwd=ROOT)
    assert "1 notebook in" in done.out
    assert "put its wheel next to them, or say --from." in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--self-study", "--assignment", "week1"], "--assignment belongs to a class; with --self-study"),
        (["--self-study", "--no-speed"], "--speed or --no-speed belongs to a class"),
        (["--from", GITHUB], "--from belongs to --self-study"),
        (["--self-study", "--from", 'a"b'], "without quotes and backslashes was expected"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, options, said):
    done = run_course("notebooks", "--out", str(tmp_path / "mine"), *options, cwd=ROOT)
    assert done.status and said in done.err and not (tmp_path / "mine").exists()
