"""The folder that `course grade SUBMISSIONS --out RESULTS` writes, when the submissions change between two runs."""

from __future__ import annotations

from pathlib import Path

from grader.classroom.export_formats import Scores, totals_rows
from grader.classroom.handin import HandIn
from grader.classroom.names import Person
from grader.classroom.plain_folder.result_files import write_output
from grader.classroom.result_store import Text
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder
from tests.classroom.instructor import ROOT

ADD, SOFTMAX = (Folder(ROOT / "exercises" / id) for id in ("01_masked_add", "03_softmax"))
STORES_ONE = {
    "name": "test_stores", "item": "right", "points": 1.0, "outcome": "pass", "message": "", "hidden": False, "id": "",
}  # fmt: skip


POSSIBLE = {ADD.id: 1, SOFTMAX.id: 1}


def judged(student: str, folder: Folder = ADD) -> StudentWork:
    result = {
        "exercise": folder.id,
        "outcome": "pass",
        "message": "",
        "report": "",
        "fault": None,
        "tests": [STORES_ONE],
    }
    hand_in = HandIn("x\n")
    return StudentWork(
        student=student, exercise=folder.id, hand_in=hand_in, text=Text(folder, "x\n", None), result=result
    )


def people(*ids: str) -> dict[str, Person]:
    return {id: Person(id) for id in ids}


def files_of(student: str, out: Path) -> list[str]:
    """Returns the paths of the student's files in the results."""
    return [str(path) for path in paths_in(out) if path.is_file() and student in path.relative_to(out).parts]


def paths_in(out: Path) -> list[Path]:
    return sorted(out.rglob("*"))


def test_a_student_who_is_gone_from_the_submissions_is_gone_from_the_results(tmp_path):
    work = [judged("ada"), judged("bob"), judged("bob", SOFTMAX)]
    write_output(work, people("ada", "bob"), POSSIBLE, tmp_path)
    assert len(files_of("bob", tmp_path)) == 8
    write_output([judged("ada"), judged("ada", SOFTMAX)], people("ada"), POSSIBLE, tmp_path)
    assert len(files_of("ada", tmp_path)) == 8
    assert not [path for path in paths_in(tmp_path) if "bob" in path.relative_to(tmp_path).parts]  # no empty folder


def test_work_that_this_run_does_not_show_stays_while_its_student_is_there(tmp_path):
    write_output([judged("ada"), judged("ada", SOFTMAX)], people("ada"), POSSIBLE, tmp_path)
    before = paths_in(tmp_path)
    write_output([judged("ada", SOFTMAX)], people("ada"), POSSIBLE, tmp_path)
    assert paths_in(tmp_path) == before
    write_output([], people("ada"), POSSIBLE, tmp_path)
    assert paths_in(tmp_path) == before


def test_an_exercise_that_this_run_does_not_show_keeps_all_its_students(tmp_path):
    """A class hands in one exercise after the other, and all results go to one folder."""
    write_output([judged("ada"), judged("bob")], people("ada", "bob"), POSSIBLE, tmp_path)
    write_output([judged("ada", SOFTMAX)], people("ada"), POSSIBLE, tmp_path)
    assert len(files_of("bob", tmp_path)) == 4


def test_what_somebody_else_has_put_there_stays(tmp_path):
    write_output([judged("ada")], people("ada"), POSSIBLE, tmp_path)
    note = tmp_path / "students/ada/my notes.txt"
    note.write_text("late")
    write_output([judged("bob")], people("bob"), POSSIBLE, tmp_path)
    assert note.exists() and not (tmp_path / "students/ada/01_masked_add.json").exists()


def test_who_has_no_score_has_no_total():
    students = [Scores("Ada", None, "ada", "ada", [3.0, None]), Scores("Bob", None, "bob", "bob", [None, None])]
    header, ada, bob = totals_rows({"a": 5.0, "b": 2.0}, students)
    assert header[-3:] == ["total", "of", "without a score"]
    assert (ada[-3:], bob[-3:]) == ([3.0, 7.0, 1], [None, 7.0, 2])
