"""Real nbgrader, end to end, on a handful of hand-ins: exchange, late penalties, overrides, machines that fail."""

from __future__ import annotations

import _ctypes
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from grader.course.folder import Folder
from grader.gpu.nvml import LIBRARY
from grader.processes import bubblewrap
from tests.classroom.instructor import ROOT, Classroom, points_without_speed, solution
from tests.classroom.synthetic import filled, notebook
from tests.conftest import mutant
from tests.gpu import fake_nvml

ADD, SOFTMAX = "01_masked_add", "03_softmax"
RIGHT, COST = points_without_speed(Folder(ROOT / "exercises" / ADD))[ADD].values()
FULL = RIGHT + COST
THROUGHPUT = """

@pytest.fixture
def throughput():
    if not gpu_here():
        pytest.skip("needs a GPU")


def test_it_is_fast(throughput):
    pass
"""


@pytest.fixture
def own_course(tmp_path) -> Path:
    """A course of one exercise, with a test that a machine without a GPU cannot run."""
    for name in (f"exercises/{ADD}", f"solutions/{ADD}"):
        shutil.copytree(ROOT / name, tmp_path / "course" / name)
    (tmp_path / "course/hints").mkdir()
    shutil.copy(ROOT / f"hints/{ADD}.md", tmp_path / "course/hints")
    tests = tmp_path / f"course/exercises/{ADD}/test_masked_add.py"
    text = tests.read_text().partition("\n\ndef test_a_size_that_only_a_gpu_gets_through")[0]
    head = "import pytest\n\nfrom grader.gpu.nvml import gpu_here\n"
    tests.write_text(f"{head}{text}\n{THROUGHPUT}")
    return tmp_path / "course"


def fake_gpu(tmp_path) -> dict[str, str]:
    """An environment with an NVML that reports GPUs."""
    folder = tmp_path / "gpu"
    if not folder.exists():
        folder.mkdir()
        shutil.copy(fake_nvml.__file__, folder / "pynvml.py")
        (folder / LIBRARY).symlink_to(_ctypes.__file__)  # some library: the fake package calls none
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"DASK_DISTRIBUTED__DIAGNOSTICS__NVML": "False"}  # Dask asks for more than the fake has
    return {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": os.pathsep.join(paths), **own}


def broken_sandbox(tmp_path) -> dict[str, str]:
    """An environment whose bubblewrap comes up for a trial and fails for a submission."""
    (tmp_path / "broken").mkdir()
    tool = tmp_path / "broken/bwrap"
    tool.write_text('#!/bin/sh\ncase "$*" in *"env true") exit 0;; esac\necho "bwrap: No such device" >&2\nexit 1\n')
    tool.chmod(0o755)
    return {"PATH": os.pathsep.join([str(tool.parent), str(Path(sys.executable).parent), os.environ["PATH"]])}


def test_exchange_late_penalty_and_feedback(classroom, tmp_path):
    classroom.make(ADD, SOFTMAX, assignment="week1")
    config = classroom.path / "nbgrader_config.py"
    config.write_text(config.read_text() + '\nc.LateSubmissionPlugin.penalty_method = "zero"\n')
    classroom.run("nbgrader", "db", "assignment", "add", "week1", "--duedate", "2020-01-01 00:00:00 UTC")
    classroom.run("nbgrader", "release_assignment", "week1")

    home = tmp_path / "home of a student"
    home.mkdir()
    exchange = f"--Exchange.root={classroom.path.parent / 'class_exchange'}"
    student = {"HOME": str(home), "JUPYTER_DATA_DIR": str(home / ".jupyter"), "cwd": home}
    classroom.run("nbgrader", "fetch_assignment", "week1", "--course", "triton", exchange, **student)
    assert {path.name for path in (home / "week1").iterdir()} == {"masked_add.ipynb", "softmax.ipynb"}
    handed_out = classroom.released("week1", "masked_add")
    (home / "week1/masked_add.ipynb").write_bytes(notebook(ADD, filled(handed_out, solution(ADD)))["masked_add.ipynb"])
    (home / "week1/softmax.py").write_text(mutant("03_softmax/pad_zero"))
    classroom.run("nbgrader", "submit", "week1", "--course", "triton", exchange, **student)
    classroom.run("nbgrader", "collect", "week1")

    said = classroom.run("course", "grade")
    assert "week1: 2 graded." in said
    (name,) = {path.name for path in (classroom.path / "submitted").iterdir()}
    assert classroom.scores() == {
        (name, "masked_add", "right"): RIGHT,
        (name, "masked_add", "cost"): COST,
        (name, "softmax", "right"): 5,
        (name, "softmax", "cost"): 0,
    }
    (row,) = classroom.export("Grades")
    assert (row["status"], row["reached"], row["late_penalty"], row["score"]) == (
        "graded", f"{FULL + 5}", f"{FULL + 5}", "0.0"
    )  # fmt: skip

    classroom.run("nbgrader", "generate_feedback", "week1")
    classroom.run("nbgrader", "release_feedback", "week1")
    classroom.run("nbgrader", "fetch_feedback", "week1", "--course", "triton", exchange, **student)
    (page,) = home.rglob("softmax.html")
    text = page.read_text()
    assert "The rows of z do not sum to 1" in text
    assert "data:image/svg+xml;base64," in text
    assert "<script" not in text and "http" not in text
    assert len(text) < 60_000


def test_a_gpu_item_stays_open_until_a_gpu_is_there(classroom, own_course, tmp_path):
    classroom.course, classroom.speed = own_course, True
    classroom.make(ADD)
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as export:
        export.writestr("Łukasz Müller_12_assignsubmission_file_/masked_add.py", solution(ADD))
        export.writestr("Ada_13_assignsubmission_file_/masked_add.py", mutant(f"{ADD}/floor_grid"))
    said = classroom.run("course", "grade", "--from", str(tmp_path / "export.zip"))
    assert "Łukasz Müller, 01_masked_add/masked_add: needs a GPU" in said
    assert "Next: run the same command on a machine with a GPU." in said
    assert classroom.scores()["Łukasz Müller", "masked_add", "speed"] is None
    rows = {row["student_id"]: row for row in classroom.export("Grades")}
    assert (rows["Łukasz Müller"]["status"], rows["Łukasz Müller"]["score"]) == ("partly graded", "")
    assert (rows["Łukasz Müller"]["reached"], rows["Łukasz Müller"]["judged"]) == (f"{FULL}", f"{FULL}")
    classroom.run("nbgrader", "generate_feedback", ADD)
    assert "open, of 1" in classroom.feedback("Łukasz Müller", ADD, "masked_add")

    override(classroom, "Ada", "right", 7)
    classroom.run("course", "grade", **fake_gpu(tmp_path))
    scores = classroom.scores()
    assert scores["Łukasz Müller", "masked_add", "speed"] == 1
    rows = {row["student_id"]: row for row in classroom.export("Grades")}
    assert (rows["Łukasz Müller"]["status"], rows["Łukasz Müller"]["score"]) == ("graded", f"{FULL + 1}")
    assert rows["Ada"]["reached"] == "8.0"  # a person gave 7 for the values; the speed test passes for anyone here
    assert not (classroom.path / "feedback/Łukasz Müller").joinpath(ADD).exists(), "a page with the old score is left"

    tests = own_course / f"exercises/{ADD}/test_masked_add.py"
    tests.write_text(tests.read_text().replace("def test_it_is_fast", "@pytest.mark.points(3)\ndef test_it_is_fast"))
    said = classroom.run("course", "grade", **fake_gpu(tmp_path), status=1)
    both = f"right {RIGHT:g}, cost {COST:g}"
    assert f"the notebook has {both}, speed 1; the tests have {both}, speed 3" in said
    classroom.make(ADD)
    classroom.run("course", "grade", **fake_gpu(tmp_path))
    assert classroom.scores()["Łukasz Müller", "masked_add", "speed"] == 3


def override(classroom: Classroom, student: str, item: str, score: float) -> None:
    """What a person's entry in the formgrader does."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{classroom.path / 'gradebook.db'}") as gradebook:
        grade = gradebook.find_grade(item, "masked_add", ADD, student)
        grade.manual_score = score
        gradebook.db.commit()


@pytest.mark.skipif(bool(bubblewrap.missing()), reason=bubblewrap.missing() or "-")
def test_a_fault_of_the_machine_is_nobodys_zero_and_the_next_run_grades(classroom, tmp_path):
    classroom.make(ADD)
    classroom.hand_in("ada", ADD, {"masked_add.py": solution(ADD)})
    results = classroom.path / "results"
    results.mkdir()
    full_disk = ["bwrap", "--dev-bind", "/", "/", "--size", "4096", "--tmpfs", str(results), "course", "grade"]
    said = classroom.run(*full_disk, "--isolation", "limits", status=1)
    assert "No space left on device. What was judged is kept." in said

    said = classroom.run("course", "grade", status=1, **broken_sandbox(tmp_path))
    assert "Not graded, a fault here and not a student's:\n  ada, 01_masked_add/masked_add: " in said
    assert "torch and triton could not be imported: bwrap: No such device" in said
    assert "Next: mend the fault (course doctor), then run the same command" in said
    (row,) = classroom.export("Grades")
    assert (row["status"], row["score"]) == ("not graded", "")
    assert "01_masked_add: 1 graded." in classroom.run("course", "grade")
    assert classroom.scores()["ada", "masked_add", "right"] == RIGHT


def test_a_hand_in_that_gets_worse_keeps_no_score_of_the_earlier_one(classroom):
    classroom.make(ADD)
    classroom.hand_in("ada", ADD, {"masked_add.py": solution(ADD)})
    classroom.run("course", "grade")
    classroom.hand_in("ada", ADD, {"masked_add.py": "größer".encode("latin-1")})
    said = classroom.run("course", "grade")
    assert "masked_add.py is not UTF-8 text" in said
    assert classroom.scores()["ada", "masked_add", "right"] is None
    classroom.run("nbgrader", "generate_feedback", ADD)
    page = classroom.feedback("ada", ADD, "masked_add")
    assert "is not UTF-8 text (byte 2); save it as UTF-8" in page and "No response." not in page
    assert "masked_add: not graded</h1>" in page
    assert "nothing of yours was judged" in page and "as it was judged" not in page


def test_nbgraders_own_autograde_asks_the_judge_too(classroom):
    classroom.make(ADD)
    handed_out = classroom.released(ADD, "masked_add")
    classroom.hand_in("ada", ADD, notebook(ADD, filled(handed_out, solution(ADD))))
    classroom.hand_in("eve", ADD, {"masked_add.ipynb": b"not a notebook"})
    classroom.run("nbgrader", "autograde", ADD)
    scores = classroom.scores()
    assert (scores["ada", "masked_add", "right"], scores["eve", "masked_add", "right"]) == (RIGHT, None)


def test_commands_say_what_is_missing(classroom, tmp_path):
    tmp_path.joinpath("elsewhere").mkdir()
    said = classroom.run("course", "grade", status=1, cwd=tmp_path / "elsewhere")
    assert "has no nbgrader_config.py. Next: cd into the class's folder" in said
    classroom.make(ADD)
    assert "Nothing was handed in for 01_masked_add" in classroom.run("course", "grade", status=1)
    classroom.hand_in("ada", ADD, {"masked_add.py": solution(ADD)})
    assert "no folder of a student 'bob'" in classroom.run("course", "grade", "--student", "bob", status=1)
    assert "no folder of a student 'bob'" in classroom.run("course", "grade", "--regrade", "bob", status=1)
    assert "1 to judge" in classroom.run("course", "grade", "--regrade", "ada")
    assert ", 1 to judge" in classroom.run("course", "grade", "--regrade")
    assert "--only belongs to --out" in classroom.run("course", "grade", "--only", "01", status=2)
    said = classroom.run("course", "grade", "02_x", status=1)
    assert "There is no assignment 02_x in release/; there are 01_masked_add." in said
    (tmp_path / "broken.zip").write_bytes(b"PK")
    assert "cannot be read as a zip file" in classroom.run(
        "course", "grade", "--from", str(tmp_path / "broken.zip"), status=1
    )
    (classroom.path / "hidden").mkdir()
    cases = '[[case]]\nname = "two"\narguments = [{ input = "normal", shape = [9] }]\n'
    (classroom.path / "hidden/01_masked_add.toml").write_text(cases)
    said = classroom.run("course", "grade", status=1)
    assert (
        "hidden case 'two': 1 data sets are given, and masked_add takes 2 arguments: x, y. Nothing was graded." in said
    )
    tools = tmp_path / "tools"
    tools.mkdir()
    said = classroom.run(
        shutil.which("course", path=str(Path(sys.executable).parent)), "grade", "--isolation", "strict",
        status=1, PATH=str(tools),
    )  # fmt: skip
    assert "--isolation strict: bubblewrap is not installed" in said


def test_a_hidden_case_that_the_solution_fails_is_no_students_mistake(classroom):
    classroom.make(SOFTMAX)
    classroom.hand_in("ada", SOFTMAX, {"softmax.py": mutant(f"{SOFTMAX}/pad_zero")})
    (classroom.path / "hidden").mkdir()
    case = 'name = "to the bit"\nbound = "exact"\narguments = [{ input = "normal", shape = [64, 300] }]\n'
    (classroom.path / "hidden/03_softmax.toml").write_text(f"[[case]]\n{case}")
    for again in (False, True):  # when all is judged, too
        said = classroom.run("course", "grade", status=1)
        assert ("with the hidden cases: the solution of 03_softmax." in said) == (not again)
        assert "the solution itself does not pass the hidden case 'to the bit'." in said
        assert "Nothing was entered into the gradebook. Next: mend the case, then run the same command." in said
    assert not (classroom.path / "autograded").exists()


def test_the_page_and_the_exports_tell_of_all_who_handed_in_nothing_and_of_what_was_not_looked_at(classroom):
    classroom.make(ADD, SOFTMAX)
    for student, exercise in (("ada", ADD), ("ada", SOFTMAX), ("dan", ADD)):
        classroom.hand_in(student, exercise, {f"{exercise[3:]}.py": solution(exercise)})
    classroom.hand_in("dan", "03_softmaks", {"softmax.py": solution(SOFTMAX)})
    said = classroom.run("course", "grade", "1", "3")
    assert "submitted/dan/03_softmaks was not looked at: no released assignment is called so" in said
    page = (classroom.path / "report.html").read_text(encoding="utf-8")
    assert "<h1>2 students, 3 submissions</h1>" in page
    for options in (["--student", "ada"], [SOFTMAX]):
        classroom.run("course", "grade", *options)
        assert shown(page) == shown((classroom.path / "report.html").read_text(encoding="utf-8"))
    assert "by dan: there is no such folder" in classroom.run("course", "grade", "3", "--student", "dan", status=1)
    rows = {(row["assignment"], row["student_id"]): row for row in classroom.export("Grades")}
    missing = rows[SOFTMAX, "dan"]
    assert (missing["status"], missing["score"], missing["reached"], missing["judged"]) == ("missing", "", "", "")
    assert missing["note"] == "nothing was handed in" and rows[SOFTMAX, "ada"]["status"] == "graded"


def shown(page: str) -> str:
    """Without the time at which it was written."""
    return re.sub(r"<time.*?</time>", "", page)
