"""A class of thirty that does not exist, through real nbgrader: every point as the table has it.

On two exercises, on all of them in `tox -- slow`. The first run is disturbed: a worker is killed while it judges, and
the whole command while it enters scores. In `tox -- slow` the command is killed while its workers judge, too;
test_folder.py kills it there in every run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from nbgrader.utils import is_grade

from grader.course.folder import all_folders
from grader.course.regions import marked_regions
from tests.classroom.instructor import ROOT, Classroom, environment
from tests.classroom.synthetic import Class, HandIn
from tests.slow import SLOW
from tests.waiting import NEVER, until

SEED, STUDENTS = 24, 30
GRADE = ("course", "grade", "--jobs", "1")  # each judge takes six seconds of a core to start
# Each takes a judge several seconds. Elsewhere than in `tox -- slow` others stand for them here: a file that sleeps for
# ever for one that computes for ever. tests/test_robustness.py has the limits of time, memory and what is printed.
DEAR = ("loops_at_import", "eats_memory", "prints_100_megabytes", "slow_but_right")
EXERCISES = [folder for folder in all_folders(ROOT) if SLOW or folder.number in ("01", "03")]
HIDDEN_NAME = "rows far below zero, between other rows"
HIDDEN = f"""
[[case]]
name = "{HIDDEN_NAME}"
arguments = [{{ input = "normal", shape = [31, 300], layout = "every second element", plus = -200 }}]
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory) -> tuple[Classroom, list[HandIn], str]:
    """(the class's folder, what was handed in, what the last `course grade` said)."""
    classroom = Classroom(tmp_path_factory.mktemp("whole") / "class")
    (classroom.path / "hidden").mkdir(parents=True)
    (classroom.path / "hidden/03_softmax.toml").write_text(HIDDEN)
    classroom.make(*(folder.id for folder in EXERCISES))
    released = {folder.id: classroom.released(folder.id, folder.name) for folder in EXERCISES}
    course_class = Class(SEED, released)
    if not SLOW:  # what is right by other ways is proved elsewhere, and the same text is judged once
        course_class.right = {id: texts[:1] for id, texts in course_class.right.items()}
        course_class.remarks = 1
    hand_ins = _enough(course_class.hand_ins(STUDENTS))
    assert len({one.student for one in hand_ins}) == STUDENTS
    assert {one.exercise for one in hand_ins} == {folder.id for folder in EXERCISES}
    assert any(one.kind == "partly right" for one in hand_ins)
    for hand_in in hand_ins:
        classroom.hand_in(hand_in.student, hand_in.exercise, hand_in.files)
    temporary(classroom).mkdir()
    if SLOW:
        disturbed(classroom, lambda: count(classroom, "results/*/*.json") > 15, kill_worker=True)
    disturbed(classroom, lambda: count(classroom, "autograded/*/*/*.ipynb") > 15, kill_worker=not SLOW)
    return classroom, hand_ins, classroom.here(*GRADE)


def temporary(classroom: Classroom) -> Path:
    """The processes of the class work below this folder, which tells them from processes of other tests."""
    return classroom.path.parent / "temporary"


def _enough(hand_ins: list[HandIn]) -> list[HandIn]:
    """All that are odd and not dear; of the ordinary ones those of students who have no other: the run is short."""
    kept: list[HandIn] = []
    for hand_in in hand_ins:
        if hand_in.kind in DEAR and not SLOW:
            continue
        ordinary = hand_in.kind in ("right", "partly right", "stub")
        if not ordinary or all(one.student != hand_in.student for one in kept):
            kept.append(hand_in)
    return kept


def disturbed(classroom: Classroom, far_enough: Callable[[], bool], kill_worker: bool = False) -> None:
    """Runs `course grade`, ends one of its workers by force, and then the command itself."""
    running = subprocess.Popen(
        GRADE, cwd=classroom.path, env=environment(TMPDIR=str(temporary(classroom))),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip

    folders: set[Path] = set()  # of the workers

    def is_killed() -> bool:
        folders.update(temporary(classroom).glob("course-*"))
        return count(classroom, "results/*/*.json") > 3 and killed_one_of(workers_of(running.pid))

    if kill_worker:
        until(lambda: running.poll() is not None or is_killed())
        # Where both are killed at once nobody is left to clear up: the command first notices that its worker is gone.
        until(lambda: running.poll() is not None or not all(folder.exists() for folder in folders))
        until(
            lambda: (
                running.poll() is not None
                or any(b"triton_forkserver" in one for one in processes_in(temporary(classroom)).values())
            )
        )
    until(lambda: running.poll() is not None or far_enough())
    running.kill()
    running.wait(NEVER)


def killed_one_of(processes: list[int]) -> bool:
    """Kills the first that is still there; returns False where all have gone."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            return True
    return False


def workers_of(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [child for child in path.read_text().split() if b"warm_judge" in facts_of(child)]
    return [int(child) for child in found]


def processes_in(folder: Path) -> dict[str, bytes]:
    """Returns how the command of each process begins that works below this folder, or was told of it, by number."""
    numbers = [path.name for path in Path("/proc").glob("[0-9]*")]
    return {number: facts[:200] for number in numbers if str(folder).encode() in (facts := facts_of(number))}


def facts_of(process: str) -> bytes:
    """Returns the process's command, environment and working folder; nothing where the process has gone."""
    path = Path("/proc", process)
    try:
        told = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
        return told + os.readlink(path / "cwd").encode()
    except OSError:
        return b""


def count(classroom: Classroom, pattern: str) -> int:
    return len(list(classroom.path.glob(pattern)))


@pytest.fixture(scope="module")
def points(graded) -> dict[str, dict[str, float]]:
    """By exercise and item, as the notebooks have them; test_notebook.py compares them with the tests."""
    classroom, _, _ = graded
    released = {folder.id: classroom.released(folder.id, folder.name) for folder in EXERCISES}
    graders = {id: [cell.metadata.nbgrader for cell in one.cells if is_grade(cell)] for id, one in released.items()}
    return {id: {one.grade_id: one.points for one in cells} for id, cells in graders.items()}


def test_every_point_is_as_expected(graded, points):
    classroom, hand_ins, said = graded
    scores, wrong = classroom.scores(), []
    for hand_in in hand_ins:
        for item, expected in hand_in.expected(points[hand_in.exercise]).items():
            reached = scores.pop((hand_in.student, hand_in.exercise[3:], item))
            if reached != expected:
                wrong.append(
                    f"{hand_in.student}, {hand_in.exercise}, {hand_in.kind}, {item}: {reached}, not {expected}"
                )
    assert not wrong, "\n".join([*wrong, "Said of those that failed:", *sorted(said_of_failures(classroom))])
    assert not scores, "scores of hand-ins that nobody made"


def said_of_failures(classroom: Classroom) -> set[str]:
    results = [json.loads(path.read_text()) for path in classroom.path.glob("results/*/*.json")]
    return {f"{one['exercise']}: {one['message'][:200]}" for one in results if one["outcome"] == "fail"}


def test_the_class_report_names_what_was_not_graded(graded):
    classroom, hand_ins, said = graded
    problems = said.partition("Not graded, for the student to mend")[2]
    for hand_in in hand_ins:
        assert (hand_in.lost is None) == (f"  {hand_in.student}, {hand_in.exercise}/" in problems), hand_in.kind
    assert "a fault here" not in said
    page = (classroom.path / "report.html").read_text(encoding="utf-8")
    assert f"{STUDENTS} students, {len(hand_ins)} submissions" in page and "<script" not in page


def test_a_second_run_changes_nothing(graded):
    classroom, _, said = graded
    before = hashlib.sha256((classroom.path / "gradebook.db").read_bytes()).digest()
    again = classroom.here("course", "grade")
    assert ", 0 to judge." in again
    assert "0 hand-ins entered into the gradebook" in again
    assert hashlib.sha256((classroom.path / "gradebook.db").read_bytes()).digest() == before
    assert again.partition("graded.")[2] == said.partition("graded.")[2]


def test_nothing_of_the_instructor_is_released(graded):
    classroom, _, _ = graded
    files = [path for path in (classroom.path / "release").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == sorted(f"{folder.name}.ipynb" for folder in EXERCISES)
    released = "\n".join(path.read_text(encoding="utf-8") for path in files)
    for secret in ("BEGIN SOLUTION", "END SOLUTION", HIDDEN_NAME, str(ROOT), str(classroom.path), "## Explanation"):
        assert secret not in released, secret
    for folder in EXERCISES:
        lesson = (folder.path / "README.md").read_text(encoding="utf-8")
        lines = folder.solution_file.read_text(encoding="utf-8").splitlines()
        for first, last in marked_regions("\n".join(lines)):
            shown = [s for line in lines[first : last - 1] if len(s := line.strip()) > 12 and s not in lesson]
            assert not [line for line in shown if line.replace('"', '\\"') in released]


def test_feedback_is_small_loads_nothing_and_hides_what_is_hidden(graded):
    classroom, hand_ins, _ = graded
    for folder in EXERCISES:
        classroom.here("nbgrader", "generate_feedback", folder.id)
    pages = list(classroom.path.glob("feedback/*/*/*.html"))
    assert len(pages) == len(hand_ins)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        shown = text.partition("Your file, as it was judged")[0]
        assert len(shown) < 60_000, page
        assert "<script" not in text and "src=x" not in text, page
        assert not re.search(r'(src|href)="(?!data:|#)', text), page
        assert "31 x 300" not in shown, page
        assert str(ROOT) not in text and str(classroom.path) not in text, page
    assert [page for page in pages if HIDDEN_NAME in page.read_text(encoding="utf-8")]


def _levels(lost: dict | None) -> list[tuple[str, str]]:
    """What the columns core and full may say of a hand-in that loses these points."""
    if lost is None:
        return [("", "")]
    if not any(lost.values()):
        return [("1 of 1", "1 of 1")]
    if "right" not in lost:  # the cost of the core may be wrong, or that of full
        return [("0 of 1", "0 of 1"), ("1 of 1", "0 of 1")]
    return [("1 of 1" if lost["cost"] in (2, 4) else "0 of 1", "0 of 1")]


def test_exports_hold_the_points_of_the_gradebook(graded, points):
    classroom, hand_ins, _ = graded
    rows = {(row["student_id"], row["assignment"]): row for row in classroom.export("Grades")}
    canvas = {row["SIS User ID"]: row for row in classroom.export("Canvas")}
    for hand_in in hand_ins:
        row = rows[hand_in.student, hand_in.exercise]
        assert row["status"] == ("not graded" if hand_in.lost is None else "graded")
        assert row["score"] == canvas[hand_in.student][hand_in.exercise]
        assert (row["core"], row["full"]) in _levels(hand_in.lost), (hand_in, row)
    for exporter, run in (("Gradescope", classroom.run), ("JUnit", classroom.here)):  # one as it is typed
        run("nbgrader", "export", f"--exporter=grader.classroom.nbgrader.exports.{exporter}")
    judged = sum(hand_in.lost is not None for hand_in in hand_ins)
    assert count(classroom, "gradescope/*/*/results.json") == count(classroom, "junit/*/*.xml") == judged
    possible = sum(points["03_softmax"].values())
    for path in classroom.path.glob("gradescope/03_softmax/*/results.json"):
        tests = json.loads(path.read_text())["tests"]
        assert sum(test["max_score"] for test in tests) == possible
        assert [test["output"] for test in tests if test["visibility"] != "visible"] == [""]


def test_no_process_and_no_file_of_a_submission_is_left(graded):
    classroom, _, _ = graded
    assert not Path("/tmp/course_was_here").exists()
    folder = temporary(classroom)
    until(  # a process that was killed is gone a little later
        lambda: not processes_in(folder) and not list(folder.glob("course-*")),
        lambda: f"{processes_in(folder)}, {list(folder.iterdir())}",
    )


def test_the_formgrader_shows_the_class(graded, tmp_path):
    selenium = pytest.importorskip("selenium", reason="needs selenium")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("needs chromium and chromium-driver")
    from tests.classroom.browser import Formgrader

    assert selenium
    classroom, hand_ins, _ = graded
    failing = next(h for h in hand_ins if h.kind == "partly right")
    number, name = failing.exercise.split("_", 1)
    with Formgrader(classroom.path, tmp_path) as formgrader:
        table = formgrader.text("formgrader/gradebook/03_softmax/softmax", until="Submission #")
        assert table.count("Submission #") == sum(h.exercise == "03_softmax" for h in hand_ins)
        page = formgrader.submission(failing.exercise, name, failing.student)
        assert f"{number} {name} {name}.py" in " ".join(page.split())
        assert "points" in page
        assert formgrader.scripts_that_ran() == []
