"""`course grade` in a class's folder with real nbgrader; a stand-in judges, so that nothing waits for a judge."""

from __future__ import annotations

import shutil
import zipfile
from itertools import count
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from grader.classroom.nbgrader.one_at_a_time import alone_in
from tests.classroom.instructor import Classroom, solution

ADD, SOFTMAX, TRANSPOSE, WEEK = "01_masked_add", "03_softmax", "04_transpose", "week1"
POINTS = {ADD: {"right": 10, "cost": 5}, SOFTMAX: {"right": 17, "cost": 3}}


def judged(request: dict) -> dict:
    """In the place of a judge: a text is right, but for one that says that it is wrong."""
    wrong = "wrong" in request["text"]
    common = {"hidden": False, "id": "", "message": "", "outcome": "fail" if wrong else "pass"}
    points = POINTS[request["exercise"]].items()
    tests = [{"name": f"test_{item}", "item": item, "points": worth, **common} for item, worth in points]
    return {"exercise": request["exercise"], "tests": tests, "outcome": tests[0]["outcome"], "fault": None, "points": 1,
            "possible": 1, "cause": "", "message": "", "report": "", "seed": 1}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The folder of a class with one assignment of two exercises."""
    classroom = Classroom(tmp_path_factory.mktemp("made") / "class")
    classroom.make(ADD, SOFTMAX, assignment=WEEK)
    return classroom.path


@pytest.fixture
def week(made, classroom, judged_by) -> Classroom:
    judged_by(judged)
    shutil.copytree(made, classroom.path)
    return classroom


def grades(classroom: Classroom) -> dict[str, dict[str, str]]:
    return {row["student_id"]: row for row in classroom.export("Grades")}


def test_of_two_notebooks_one_is_one_of_two_and_its_student_is_told(week):
    week.hand_in("ada", WEEK, {"masked_add.py": solution(ADD)})
    week.hand_in("bob", WEEK, {"masked_add.py": solution(ADD), "softmax.py": "wrong"})
    said = week.here("course", "grade")
    note = "softmax of this assignment was not handed in and counts 0."
    assert f"ada, week1/masked_add: {note}" in said
    rows = grades(week)
    assert (rows["ada"]["core"], rows["ada"]["full"], rows["ada"]["note"]) == (
        "1 of 2",
        "1 of 2",
        f"masked_add: {note}",
    )
    assert (rows["bob"]["full"], rows["bob"]["note"]) == ("1 of 2", "")
    week.here("nbgrader", "generate_feedback", WEEK)
    assert note in week.feedback("ada", WEEK, "masked_add")


def test_points_of_a_person_that_the_judge_has_overtaken_are_told_after_each_run(week):
    week.here("nbgrader", "db", "assignment", "add", WEEK, "--duedate", "2027-05-01 12:00 UTC")
    week.hand_in("cem", WEEK, {"softmax.py": "wrong", "timestamp.txt": "2027-05-01 14:30:00 UTC"})
    week.here("course", "grade")
    with Gradebook(f"sqlite:///{week.path / 'gradebook.db'}", "class") as gradebook:
        for item, points in (("right", 9), ("cost", 1)):
            gradebook.find_grade(item, "softmax", WEEK, "cem").manual_score = points
        gradebook.db.commit()
    week.hand_in("cem", WEEK, {"softmax.py": solution(SOFTMAX)})
    for _ in range(2):
        said = week.here("course", "grade").partition("Your points count, and the judge gives more by now:")[2]
        assert "cem, week1/softmax: right has 9 by hand, and 17 by the judge" in said
        assert "cem, week1/softmax: cost has 1 by hand, and 3 by the judge" in said
    row = grades(week)["cem"]
    assert "right has 9 by hand, and 17 by the judge; cost has 1 by hand, and 3 by the judge" in row["note"]
    assert (row["duedate"], row["hours_late"], row["score"]) == ("2027-05-01 12:00:00", "2.5", "10.0")
    assert (week.path / "grades.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    week.here("nbgrader", "generate_feedback", WEEK)
    page = week.feedback("cem", WEEK, "softmax")
    assert "Your instructor has changed points" in page and "9 of 17, by hand" in page and ">cem</p>" in page
    (total,) = week.export("Totals")
    assert total == {
        "student": "cem",
        "name": "cem",
        WEEK: "10.0",
        "total": "10.0",
        "of": "35.0",
        "without a score": "0",
    }


def test_a_late_penalty_that_regrade_takes_back_is_told(week, judged_by):
    """The due date has moved since: nbgrader counts penalties anew where a hand-in is entered again."""
    seeds = count()
    judged_by(lambda request: judged(request) | {"seed": next(seeds)})
    with (week.path / "nbgrader_config.py").open("a") as config:
        config.write('\nc.LateSubmissionPlugin.penalty_method = "zero"\n')
    week.here("nbgrader", "db", "assignment", "add", WEEK, "--duedate", "2027-05-01 12:00 UTC")
    for student, hour in (("ada", 11), ("cem", 14)):
        files = {"softmax.py": solution(SOFTMAX), "timestamp.txt": f"2027-05-01 {hour}:30:00 UTC"}
        week.hand_in(student, WEEK, files)
    assert "late penalty" not in week.here("course", "grade")
    week.here("nbgrader", "db", "assignment", "add", WEEK, "--duedate", "2027-05-02 12:00 UTC")
    assert "late penalty" not in week.here("course", "grade")
    said = week.here("course", "grade", "--regrade")
    assert "cem, week1: the late penalty was 20 and is 0 by the due date of today." in said
    assert said.count("late penalty") == 1


def test_a_file_that_names_no_exercise_is_its_students_and_told(week):
    archive = week.path.parent / "canvas.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("gasgus_1_1_homework.pdf", b"%PDF")
        file.writestr("steineli_2_2_my softmax final.py", solution(SOFTMAX))
        file.writestr("suesue_3_30_softmax-1.py", "wrong")
        file.writestr("suesue_3_31_softmax-2.py", solution(SOFTMAX))
        file.writestr("nobody.txt", "x")
    for taken in (4, 0):
        said = week.here("course", "grade", "--from", str(archive))
        assert f"{taken} files of" in said and "Ignored: nobody.txt: it names no student" in said
    rows = grades(week)
    assert [rows[who]["status"] for who in ("gasgus", "steineli", "suesue")] == ["not graded", "not graded", "graded"]
    assert "there is homework.pdf" in rows["gasgus"]["note"]
    assert "there is my softmax final.py" in rows["steineli"]["note"]
    assert "softmax-1.py was not judged: softmax-2.py is newer; softmax: masked_add" in rows["suesue"]["note"]
    assert rows["suesue"]["score"] == "20.0"
    page = (week.path / "report.html").read_text(encoding="utf-8")
    assert "<li>nobody.txt: it names no student</li>" in page and "there is homework.pdf" in page


def test_what_an_export_says_is_told_in_every_later_run(week):
    """A hand-in at two places is never "nothing was handed in"; a group is told, and nobody of it to be alike."""
    archive = week.path.parent / "canvas.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("ada/masked_add.py", "one")
        file.writestr("ada_masked_add.py", "another")
        file.writestr("kim+lee/softmax (2).ipynb", "def theirs(): ...")
        file.writestr("bob/softmax.py", "def his(): ...")
    week.hand_in("mia+ned", WEEK, {"softmax.py": "def of_both(): ..."})
    problem = "masked_add was sent at several places and taken from neither: ada/masked_add.py and ada_masked_add.py."
    for options in (["--from", str(archive)], []):
        said = week.here("course", "grade", *options)
        assert f"ada, week1/masked_add: {problem}" in said and "The same text to the letter" not in said
        rows, page = grades(week), (week.path / "report.html").read_text(encoding="utf-8")
        week.here("nbgrader", "generate_feedback", "--force", WEEK)
        assert "ada_masked_add.py. These points are open" in week.feedback("ada", WEEK, "masked_add")
        assert not [text for text in (*(row["note"] for row in rows.values()), page, said) if ".;" in text]
        assert sorted(rows) == ["ada", "bob", "kim", "lee", "mia", "ned"]
        assert rows["ada"]["status"] == "not graded" and problem in page
        assert rows["ada"]["note"].startswith(f"masked_add: {problem[:-1]}; softmax: ")
        assert "Handed in together by kim, lee." in rows["kim"]["note"] and rows["lee"]["status"] == "graded"
        assert "Handed in together by mia, ned." in rows["ned"]["note"]
        assert "the same text to the letter" not in page


def test_a_file_waits_where_the_assignment_of_its_exercise_is_not_generated_yet(classroom, judged_by):
    """And one of an exercise that the class does not have is told, and is no hand-in of another exercise."""
    judged_by(judged)
    classroom.path.mkdir()
    classroom.here("course", "notebooks", "--out", str(classroom.path), "--no-speed", "01", "03", cwd=classroom.course)
    classroom.here("nbgrader", "generate_assignment", SOFTMAX)
    archive = classroom.path.parent / "subs.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for student in ("ada", "bob"):
            file.writestr(f"{student}/masked_add.py", solution(ADD))
            file.writestr(f"{student}/transpose.py", "x")
        file.writestr("ada/softmax.py", solution(SOFTMAX))
    waiting = (
        f"{ADD} is no assignment yet: what 2 students handed in waits in submitted/; next: nbgrader "
        f"generate_assignment {ADD}, then course grade"
    )
    elsewhere = (
        f"{TRANSPOSE} is no exercise of this class: 2 files of it count for nothing; next, if it is to be one: course "
        f"notebooks --out . 04, nbgrader generate_assignment {TRANSPOSE}, then course grade --from {archive} again"
    )
    said = classroom.here("course", "grade", "--from", str(archive))
    page = (classroom.path / "report.html").read_text(encoding="utf-8")
    assert "3 files of 2 students taken" in said and waiting in said and elsewhere in said
    assert waiting in page and elsewhere in page and "was not looked at" not in said
    assert not (classroom.path / "submitted/bob" / SOFTMAX).exists()
    assert [row["score"] for row in classroom.export("Grades") if row["student_id"] == "ada"] == ["20.0"]
    classroom.here("nbgrader", "generate_assignment", ADD)
    (classroom.path / "submitted/yara").mkdir()
    (classroom.path / "submitted/yara/softmax.py").write_text(solution(SOFTMAX))
    said = classroom.here("course", "grade")
    assert f"{ADD}: 2 graded." in said and waiting not in said
    assert "submitted/yara/softmax.py was not looked at: it lies in no assignment's folder. Move it to" in said
    assert "sent.json was not looked at" not in said
    scores = {(row["student_id"], row["assignment"]): row["score"] for row in classroom.export("Grades")}
    assert (scores["ada", ADD], scores["bob", ADD], scores["ada", SOFTMAX]) == ("15.0", "15.0", "20.0")


def test_the_assignment_that_is_graded_gets_no_files_of_another(classroom, judged_by):
    judged_by(judged)
    classroom.make(ADD, SOFTMAX)
    (classroom.path / "subs/ada").mkdir(parents=True)
    for name, exercise in (("masked_add.py", ADD), ("softmax.py", SOFTMAX)):
        (classroom.path / "subs/ada" / name).write_text(solution(exercise))
    assert "1 graded" in classroom.here("course", "grade", SOFTMAX, "--from", "subs")
    assert f"{ADD}: 1 graded." in classroom.here("course", "grade")


def test_a_gradebook_that_is_gone_is_a_sentence(week):
    week.hand_in("ada", WEEK, {"softmax.py": "x"})
    (week.path / "gradebook.db").unlink()
    said = week.here("course", "grade", status=1)
    assert "The gradebook does not know week1" in said and "nbgrader generate_assignment --force week1" in said
    week.here("nbgrader", "generate_assignment", "--force", WEEK)
    assert "week1: 1 graded." in week.here("course", "grade")


def test_a_class_is_graded_by_one_command_at_a_time(week):
    """Whatever the gradebook is: both would judge, and the second would remove what the first has just entered."""
    week.hand_in("ada", WEEK, {"softmax.py": solution(SOFTMAX)})
    with alone_in(week.path):
        said = week.here("course", "grade", status=1)
        assert said in week.here("course", "grade", "--db", f"sqlite:///{week.path}/gradebook.db", status=1)
    assert f"{week.path} is being graded, by " in said and ", process " in said and "Nothing was graded." in said
    assert "1 hand-in entered" in week.here("course", "grade")


def test_a_folder_that_was_held_by_a_process_that_is_gone_is_free(tmp_path):
    with alone_in(tmp_path):
        pass
    assert (tmp_path / ".course_grade").read_text()
    with alone_in(Path(tmp_path)):
        pass
