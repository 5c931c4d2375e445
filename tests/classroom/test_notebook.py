"""The notebooks: what is derived, what a student sees when cells are run, and what never leaves the instructor."""

from __future__ import annotations

import io
import re

import nbformat
import pytest

from grader.classroom.cells import score
from grader.classroom.nbgrader import class_folder
from grader.classroom.nbgrader.class_folder import Class, counts_speed, write
from grader.classroom.nbgrader.source_notebook import hints_of, notebook_of
from grader.classroom.rubric import RubricError, points_of
from grader.course.folder import Folder, all_folders
from grader.course.questions import questions_of
from grader.course.regions import marked_regions
from grader.learn.notebooks import cells as notebook_cells
from grader.learn.notebooks.cells import predict
from grader.learn.notebooks.parts import lesson_of
from tests.classroom.instructor import ROOT, environment, points_without_speed, run_nbgrader, solution
from tests.conftest import mutant
from tests.typed_commands import ended_here
from tests.waiting import NEVER

EXERCISES = all_folders(ROOT)
ADD, SOFTMAX = (next(one for one in EXERCISES if one.id == id) for id in ("01_masked_add", "03_softmax"))
POINTS = {"right": 1, "cost": 1}  # where their number does not matter
QUESTIONS, SOLUTION, CHECK = 2, 4, 5
LIMITS = {name: int(NEVER) for name in ("timeout", "startup_timeout", "iopub_timeout")}  # whole seconds, for a kernel


@pytest.fixture(scope="module")
def points():
    """Of the exercises that the page for instructors shows. To list tests takes a process and seconds."""
    return points_without_speed(ADD, SOFTMAX)


def filled(folder, text, points):
    notebook = notebook_of(folder, points[folder.id])
    magic = notebook.cells[SOLUTION].source.partition("\n")[0]
    notebook.cells[SOLUTION].source = f"{magic}\n{text}"
    return notebook


@pytest.mark.parametrize("folder", EXERCISES, ids=lambda folder: folder.id)
def test_what_is_released_is_the_stub_and_holds_no_line_of_the_solution(folder):
    from grader.author.stubs import stub_of

    notebook = notebook_of(folder, POINTS)
    stub = stub_of(notebook.cells[SOLUTION].source)
    assert stub.partition("\n")[2] == folder.learner_file.read_text(encoding="utf-8")
    lines = folder.solution_file.read_text(encoding="utf-8").splitlines()
    secret = {line.strip() for first, last in marked_regions("\n".join(lines)) for line in lines[first : last - 1]}
    others = "\n".join([stub, hints_of(folder), *(cell.source for cell in notebook.cells[CHECK:])])
    told = lesson_of(folder)  # which may show a line on purpose
    assert not [line for line in secret if len(line) > 12 and line in others and line not in told]
    assert "## Explanation" not in others


def test_the_lesson_brings_its_pictures_and_links_nowhere():
    lesson = lesson_of(SOFTMAX)
    assert "](data:image/svg+xml;base64," in lesson
    assert "](programs.svg)" not in lesson
    assert "](.." not in lesson


def test_points_come_from_the_tests(points):
    text = SOFTMAX.test_file.read_text(encoding="utf-8")
    assert points["03_softmax"]["right"] == text.count("(check):") + text.count("(drawn):")
    assert points["03_softmax"]["cost"] == text.count("(traffic):") + text.count("(compiled):")


def test_the_page_for_instructors_shows_points_as_they_are(points):
    page = (ROOT / "classroom.md").read_text(encoding="utf-8")
    shown = re.findall(r"source/(\w+)/\w+\.ipynb: (\d+) points \((.*)\)", page)
    assert len(shown) == 2
    for exercise, total, items in shown:
        assert float(total) == sum(points[exercise].values())
        assert items == ", ".join(f"{item} {worth:g}" for item, worth in points[exercise].items())


def test_tests_that_cannot_be_listed_are_a_sentence(tmp_path):
    with pytest.raises(RubricError, match="^file or directory not found: .*01_masked_add"):
        points_of([Folder(tmp_path / "exercises/01_masked_add")])


def test_the_questions_are_cells_without_points():
    cells = notebook_of(SOFTMAX, POINTS).cells
    questions = questions_of(SOFTMAX)
    assert all(question.ask in cells[QUESTIONS].source for question in questions)
    assert cells[QUESTIONS + 1].source.endswith(f'predict("03_softmax", {", ".join(["None"] * len(questions))})')
    assert "nbgrader" not in cells[QUESTIONS + 1].metadata


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([None] * 5, "Write your answers into this cell"),
        ([58], "There are 5 questions and 1 answers."),
        ([58, 0.25, "nan", 0, "b"], "5 of 5 right."),
        ([58, 0.25, float("nan"), 0, None], "4 of 4 right."),
        ([64, 0.25, "nan", 0, "z"], "1. No: it is 58."),
        ([64, 0.25, "nan", 0, "z"], "5. Answer with a letter from a to d."),
    ],
)
def test_a_cell_says_which_answers_are_right(capsys, answers, said):
    predict("03_softmax", *answers)
    assert said in capsys.readouterr().out


def test_questions_that_are_not_there_are_a_sentence(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("grader.learn.notebooks.cells.COURSE", tmp_path)
    predict("03_softmax", 1, 2)
    assert "was not installed from a copy of the course" in capsys.readouterr().out


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """here(cell): what the cell's source prints and shows, run in this process in the place of a kernel."""
    monkeypatch.setattr(notebook_cells, "ended", ended_here)
    monkeypatch.setattr("IPython.display.display", lambda shown: print(type(shown).__name__))
    monkeypatch.chdir(tmp_path)

    def here(cell) -> str:
        exec(cell.source, {})
        said = capsys.readouterr()
        assert said.err == ""
        return said.out

    return here


def test_a_student_runs_the_cells_out_of_order(tmp_path, points, here):
    cells = filled(SOFTMAX, mutant("03_softmax/pad_zero"), points).cells
    assert here(cells[CHECK]) == "There is no softmax.py yet. Run the solution cell first: it saves the file.\n"
    (tmp_path / "softmax.py").write_text(cells[SOLUTION].source.partition("\n")[2], encoding="utf-8")
    said = here(cells[CHECK])
    assert "The rows of z do not sum to 1" in said and "FAIL  columns are not a power of two" in said
    assert said.endswith("SVG\n")
    assert "FAIL    columns are not a power of two" in here(cells[-2]) and score(SOFTMAX.id, "right") == 5


def test_the_untouched_notebook_says_not_attempted(tmp_path, points, here):
    cells = filled(ADD, solution(ADD.id), points).cells
    (tmp_path / "masked_add.py").write_bytes(ADD.learner_file.read_bytes())
    assert "not attempted" in here(cells[CHECK])
    assert "-       one full block" in here(cells[-2]) and score(ADD.id, "right") == 0


def test_nbgraders_own_validation_takes_the_cells_of_a_right_notebook(tmp_path, points, monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr("nbgrader.validator.Validator.stream", said)
    notebook = filled(ADD, solution("01_masked_add"), points)
    nbformat.write(notebook, tmp_path / "masked_add.ipynb")
    limits = [f"--Execute.{name}={seconds}" for name, seconds in LIMITS.items()]
    done = run_nbgrader("validate", "masked_add.ipynb", *limits, cwd=tmp_path, **environment())
    assert "Success! Your notebook passes all the tests." in said.getvalue(), said.getvalue() + done.out


def test_a_class_keeps_to_what_it_began_with(tmp_path, monkeypatch):
    monkeypatch.setattr(class_folder, "points_of", lambda folders, hidden: {ADD.id: {**POINTS, "speed": 1}})
    said: list[str] = []
    assert counts_speed(tmp_path) is None
    for speed in (True, False):
        write(tmp_path, [ADD], Class(speed=speed), said.append)
        assert counts_speed(tmp_path) is speed
    assert "speed" in said[0] and "speed" not in said[2]
