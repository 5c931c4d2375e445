"""The notebooks: what is derived, what a student sees when cells are run, and what never leaves the instructor."""

from __future__ import annotations

import re
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from grader.classroom.nbgrader.class_folder import Class, counts_speed, write
from grader.classroom.nbgrader.source_notebook import hints_of, notebook_of
from grader.classroom.rubric import RubricError, points_of
from grader.course.folder import Folder, all_folders
from grader.course.questions import questions_of
from grader.course.regions import marked_regions
from grader.learn.notebooks.cells import predict
from grader.learn.notebooks.parts import lesson_of
from tests.classroom.instructor import ROOT, environment, points_without_speed, solution
from tests.conftest import mutant
from tests.waiting import NEVER

EXERCISES = all_folders(ROOT)
SOFTMAX = next(folder for folder in EXERCISES if folder.id == "03_softmax")
QUESTIONS, SOLUTION, CHECK = 2, 4, 5
LIMITS = {name: int(NEVER) for name in ("timeout", "startup_timeout", "iopub_timeout")}  # whole seconds, for a kernel


@pytest.fixture(scope="module")
def points():
    return points_without_speed(*EXERCISES)


def run(tmp_path, notebook, order):
    """Runs the cells in this order, as a student does, in a kernel of its own; their outputs."""
    for name, value in environment().items():
        pytest.MonkeyPatch().setenv(name, value)
    client = NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": tmp_path}}, **LIMITS)
    outputs = []
    with client.setup_kernel():
        for place in order:
            notebook.cells[place].outputs = []
            client.execute_cell(notebook.cells[place], place)
            outputs.append(notebook.cells[place].outputs)
    return outputs


def text_of(outputs):
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"], outputs
    return "".join(o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in outputs)


def filled(folder, points, text):
    notebook = notebook_of(folder, points[folder.id])
    magic = notebook.cells[SOLUTION].source.partition("\n")[0]
    notebook.cells[SOLUTION].source = f"{magic}\n{text}"
    return notebook


@pytest.mark.parametrize("folder", EXERCISES, ids=lambda folder: folder.id)
def test_what_is_released_is_the_stub_and_holds_no_line_of_the_solution(folder, points):
    from grader.author.stubs import stub_of

    notebook = notebook_of(folder, points[folder.id])
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


def test_a_test_file_that_cannot_be_read_is_a_sentence(tmp_path):
    (tmp_path / "exercises/01_masked_add").mkdir(parents=True)
    (tmp_path / "exercises/01_masked_add/test_masked_add.py").write_text("def test_x(: pass")
    with pytest.raises(RubricError):
        points_of([Folder(tmp_path / "exercises/01_masked_add")])


def test_the_questions_are_cells_without_points(points):
    cells = notebook_of(SOFTMAX, points[SOFTMAX.id]).cells
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


def test_a_student_runs_the_cells_out_of_order_and_again(tmp_path, points):
    folder = SOFTMAX
    notebook = filled(folder, points, mutant("03_softmax/pad_zero"))
    right = len(notebook.cells) - 2
    before, _, report, score, again = run(tmp_path, notebook, [CHECK, SOLUTION, CHECK, right, CHECK])
    assert text_of(before) == "There is no softmax.py yet. Run the solution cell first: it saves the file.\n"
    assert "The rows of z sum to" in text_of(report)
    assert "FAIL  columns are not a power of two" in text_of(report)
    assert [o for o in report if "image/svg+xml" in o.get("data", {})]
    assert text_of(score).endswith("5.0")
    assert "The rows of z sum to" in text_of(again)


def test_the_untouched_notebook_says_not_attempted(tmp_path, points):
    stub = EXERCISES[0].learner_file.read_text(encoding="utf-8")
    _, report, score = run(tmp_path, filled(EXERCISES[0], points, stub), [SOLUTION, CHECK, -2])
    assert "not attempted" in text_of(report)
    assert text_of(score).endswith("0")


def test_nbgraders_own_validation_takes_the_cells_of_a_right_notebook(tmp_path, points):
    notebook = filled(EXERCISES[0], points, solution("01_masked_add"))
    nbformat.write(notebook, tmp_path / "masked_add.ipynb")
    limits = [f"--Execute.{name}={seconds}" for name, seconds in LIMITS.items()]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "nbgrader", "validate", "masked_add.ipynb", *limits],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=NEVER,
    )  # fmt: skip
    assert "Success! Your notebook passes all the tests." in done.stdout, done.stdout + done.stderr


def test_a_class_keeps_to_what_it_began_with(tmp_path):
    said: list[str] = []
    assert counts_speed(tmp_path) is None
    for speed in (True, False):
        write(tmp_path, EXERCISES[:1], Class(speed=speed), said.append)
        assert counts_speed(tmp_path) is speed
    assert "speed" in said[0] and "speed" not in said[2]
