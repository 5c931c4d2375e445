"""`course grade SUBMISSIONS --out RESULTS`: a small class of right, wrong and hostile work, killed once."""

from __future__ import annotations

import os
import re
import zipfile
from importlib.util import find_spec

import pytest
from click.testing import CliRunner

from grader.classroom import class_commands
from grader.classroom.cluster.engine import MOST_PER_GPU
from grader.classroom.plain_folder.submissions import read_submissions
from grader.classroom.rubric import SPEED, items_of
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder, all_folders
from grader.course.regions import stub_text
from tests.classroom.instructor import ROOT, solution
from tests.classroom.submission_folder import SubmissionFolder
from tests.classroom.synthetic import Class, HandIn, handed_out
from tests.classroom.test_names import METADATA
from tests.classroom.test_sent_files import zipped
from tests.conftest import mutant
from tests.judging.test_mended_calls import COPY, HEAD, changed

ADD, COPYING, SOFTMAX = "01_masked_add", "02_strided_blocks", "03_softmax"
SEED, STUDENTS, ORDINARY = 4, 70, 8
HOSTILE = ("ends_the_process", "patches_the_comparison", "raises_markup", "script_in_markdown")
ODD = (*HOSTILE, "latin_1", "not_a_notebook", "solution_cell_deleted", "syntax_error")
TEXT = solution(ADD).encode()


@pytest.fixture(scope="module")
def graded(tmp_path_factory) -> tuple[SubmissionFolder, list[HandIn], str]:
    """(the folder, what was handed in, what the last run said)."""
    base = tmp_path_factory.mktemp("folder")
    folder = SubmissionFolder(base / "submissions", base / "results")
    course_class = Class(SEED, handed_out(ADD))
    course_class.right, course_class.remarks = {ADD: [solution(ADD)]}, 2  # the same text is judged once
    everything = course_class.hand_ins(STUDENTS)
    ordinary = [one for one in everything if one.kind in ("right", "partly right", "stub")][:ORDINARY]
    hand_ins = [one for one in everything if one.kind in ODD] + ordinary
    assert {"right", "partly right", "stub", *ODD} <= {one.kind for one in hand_ins}
    for hand_in in hand_ins:
        folder.hand_in(hand_in)
    assert folder.killed(lambda: folder.judged >= 4, "--jobs", "1", "--isolation", "limits")
    return folder, hand_ins, folder.grade("--jobs", "2", "--isolation", "limits")


def test_every_point_is_as_expected(graded):
    folder, hand_ins, said = graded
    right = next(one.student for one in hand_ins if one.kind == "right")
    points = {name: item.possible for name, item in items_of(folder.result(right, ADD), without=(SPEED,)).items()}
    reached = {(row["student"], row["item"]): float(row["score"]) for row in folder.table("items.csv")}
    rows = {row["student"]: row for row in folder.table()}
    for hand_in in hand_ins:
        expected = hand_in.expected(points)
        assert [reached.get((hand_in.student, item)) for item in points] == list(expected.values()), hand_in.kind
        row, is_graded = rows[hand_in.student], hand_in.lost is not None
        assert row["status"] == ("graded" if is_graded else "not graded"), hand_in.kind
        assert row["score"] == "" if not is_graded else float(row["score"]) == sum(expected.values()), hand_in.kind
        assert row["first_failure"] == "not attempted" or hand_in.kind != "stub"
        assert folder.result(hand_in.student, ADD)["student"] == hand_in.student
    assert "a fault here" not in said


def test_what_the_killed_run_had_judged_is_not_judged_again(graded):
    _, _, said = graded
    texts, missing = map(int, re.search(r"(\d+) different texts, (\d+) to judge", said).groups())
    assert 0 < missing <= texts - 4


def test_a_second_run_changes_nothing_and_one_student_can_be_judged_again(graded, judged_by, shared_judge):
    folder, hand_ins, _ = graded
    judged_by(shared_judge.judge)
    before, seeds = folder.verdicts(), {path: path.read_bytes() for path in folder.out.glob("texts/*/*.json")}
    assert ", 0 to judge." in folder.here()
    assert folder.verdicts() == before
    right = next(one.student for one in hand_ins if one.kind == "right")
    assert ", 1 to judge;" in folder.here("--isolation", "limits", "--regrade", right)
    assert folder.verdicts() == before
    changed = [path for path, content in seeds.items() if path.read_bytes() != content]
    assert [path.stem for path in changed] == [folder.result(right, ADD)["text"].rpartition("/")[2][:-3]]


def test_the_page_shows_causes_cases_and_no_markup_of_a_student(graded):
    folder, hand_ins, _ = graded
    page = (folder.out / "report.html").read_text(encoding="utf-8")
    assert f"{len({one.student for one in hand_ins})} students" in page
    assert "What to teach next" in page and "Hardest tests" in page
    assert "Not graded, for the student to mend" in page
    assert "<script" not in page and not re.search(r'(src|href)="(?!#)', page)


def test_exports_leave_open_what_is_not_graded(graded):
    folder, hand_ins, _ = graded
    canvas = {row["SIS User ID"]: row[ADD] for row in folder.table("exports/canvas.csv")}
    for hand_in in hand_ins:
        assert bool(canvas[hand_in.student]) == (hand_in.lost is not None)
    judged = sum(hand_in.lost is not None for hand_in in hand_ins)
    assert len(list(folder.out.glob("exports/junit/*/*.xml"))) == judged
    assert len(list(folder.out.glob("exports/gradescope/*/*/results.json"))) == judged


def judged(request: dict) -> dict:
    """In the place of a judge: all is right."""
    test = {"name": "test_a_size", "item": "right", "hidden": False, "outcome": "pass", "id": "", "points": 1}
    return {"exercise": request["exercise"], "tests": [{**test, "message": ""}], "outcome": "pass", "fault": None,
            "points": 1, "possible": 1, "cause": "", "message": "", "report": "", "seed": 1}  # fmt: skip


@pytest.fixture
def folder(tmp_path) -> SubmissionFolder:
    (tmp_path / "submissions").mkdir()
    return SubmissionFolder(tmp_path / "submissions", tmp_path / "results")


@pytest.mark.parametrize("options", [(), ("--mend",)])
def test_the_line_of_a_mistake_is_told_where_the_instructor_wants_it(folder, judged_by, shared_judge, options):
    judged_by(shared_judge.judge)
    wrong = HEAD + changed(COPY, ("cols < N", "cols != N"))
    folder.put("ada", COPYING, {"strided_blocks.py": wrong.encode()})
    folder.here("--isolation", "limits", *options)
    result = folder.result("ada", COPYING)
    assert ("With another comparison in line 11" in result["message"]) == bool(options)
    assert "in the place of" not in str(result)


def test_every_layout_is_understood_and_the_rest_is_named(folder, judged_by):
    judged_by(judged)
    folder.put("ada", ADD, {"masked_add.py": TEXT})
    folder.put("bob", "week1", {"masked_add.py": TEXT})
    folder.put("cem", "", {"masked_add.py": TEXT, "softmax.py": mutant("03_softmax/always_fp32").encode()})
    folder.put("dan", ADD, {"add.py": TEXT})
    (folder.path / "eve_masked_add.py").write_bytes(TEXT)
    folder.put("cem", "old", {"masked_add.py": b"an older one"})
    os.utime(folder.path / "cem/old/masked_add.py", (0, 0))
    (folder.path / "link_masked_add.py").symlink_to(ROOT / "README.md")
    (folder.path / "notes.txt").write_text("not a submission")
    said = folder.here("--only", "1")
    assert "6 hand-ins, 1 different text, 1 to judge" in said
    assert "link, 01_masked_add: link_masked_add.py is a link; hand in the file itself" in said
    assert "Ignored: notes.txt: it names no student" in said
    assert (
        "dan, 01_masked_add: masked_add.ipynb or masked_add.py was expected; there is dan/01_masked_add/add.py" in said
    )
    rows = {(row["student"], row["exercise"]): row for row in folder.table()}
    assert [rows[who, ADD]["status"] for who in ("ada", "bob", "cem", "eve")] == ["graded"] * 4
    assert {exercise for _, exercise in rows} == {ADD}  # the other was not asked for, and has no result
    assert rows["cem", ADD]["note"] == "cem/old/masked_add.py was not judged: cem/masked_add.py is newer."


def read(folder: SubmissionFolder, *only: Folder) -> tuple[dict[str, StudentWork], list[str]]:
    """(the work on masked_add by student, what was ignored)."""
    found = read_submissions(folder.path, all_folders(ROOT), only, without=folder.out)
    return {one.student: one for one in found.all if one.exercise == ADD}, found.ignored


def test_of_several_files_the_newer_counts_but_the_empty_exercise_never(folder):
    stub = stub_text(solution(ADD)).encode()
    for student, week1, flat in (("newer", TEXT, b"x = 1\n"), ("stub", TEXT, stub), ("older stub", stub, TEXT)):
        folder.put(student, "week1", {"masked_add.py": week1})
        folder.put(student, "", {"masked_add.py": flat})
    for path in (folder.path / "newer/week1/masked_add.py", folder.path / "older stub/week1/masked_add.py"):
        os.utime(path, (0, 0))
    found, ignored = read(folder)
    assert ignored == []
    assert found["newer"].text.text == "x = 1\n"
    assert found["stub"].text.text == found["older stub"].text.text == TEXT.decode()
    notes = {student: one.hand_in.notes for student, one in found.items()}
    assert notes["newer"] == ["newer/week1/masked_add.py was not judged: newer/masked_add.py is newer."]
    assert notes["stub"][0].endswith("it is the empty exercise, and stub/week1/masked_add.py is not.")


def test_what_is_misspelt_is_its_students_and_told(folder):
    folder.put("dan", "", {"maskd_add.py": TEXT, "softmax.py": TEXT})
    folder.put("eve", "", {})
    folder.put("results", "exports", {"canvas.csv": b""})
    folder.put(SOFTMAX, "gus", {"softmax.py": TEXT})  # the other way round
    (folder.path / "ada_masked_add.py").write_bytes(TEXT)
    (folder.path / "fred_maskd_add.py").write_bytes(TEXT)
    found, ignored = read(folder, Folder(ROOT / "exercises" / ADD))
    assert ignored == []
    absent = {student for student, one in found.items() if one.hand_in.absent}
    assert absent == {"eve", "gus"}
    problem = "masked_add.ipynb or masked_add.py was expected"
    assert found["dan"].note == f"{problem}; there is dan/maskd_add.py"
    assert found["fred"].note == f"{problem}; there is fred_maskd_add.py"
    assert found["eve"].note == found["gus"].note == problem


def test_a_folder_that_is_no_class_is_refused(folder):
    (folder.path / "texts").mkdir()
    (folder.path / "summary.csv").write_text("")
    assert "holds results of this command, not submissions" in folder.here(status=1)
    assert "is the course itself" in SubmissionFolder(ROOT, folder.out).here(status=1)


def test_files_named_for_students_alone_need_the_exercise(folder, judged_by):
    judged_by(judged)
    (folder.path / "ada.py").write_bytes(TEXT)
    said = folder.here(status=1)
    assert "say which exercise they are for with --only NN" in said
    assert "01_masked_add: 1 graded." in folder.here("--only", "01")
    with zipfile.ZipFile(folder.path.parent / "export.zip", "w") as file:
        file.writestr("bob/masked_add.py", TEXT)
        file.writestr("bob/maskd.py", TEXT)
        for place in ("eve/masked_add.py", "eve_masked_add.py"):
            file.writestr(place, place)
    zipped = SubmissionFolder(folder.path.parent / "export.zip", folder.out)
    said = zipped.here()
    assert (
        "eve/masked_add.py and eve_masked_add.py. Leave one of them in the export, then run the command again." in said
        and "1 different text" in said
        and "Ignored: bob/maskd.py: no .py file or notebook of an exercise is called so" in said
    )
    assert [(row["student"], row["note"]) for row in folder.table()] == [
        ("bob", ""),
        (
            "eve",
            "masked_add was sent at several places and taken from neither: eve/masked_add.py and eve_masked_add.py.",
        ),
    ]


def test_commands_say_what_is_wrong(folder):
    assert "holds no submission: STUDENT/masked_add.py or STUDENT_masked_add.py" in folder.here(status=1)
    (folder.path / "ada_masked_add.py").write_bytes(TEXT)
    assert "--regrade NAME" in folder.here("--student", "ada", status=2)
    assert "has nothing of a student 'bob'" in folder.here("--regrade", "bob", status=1)
    assert "--db belongs to a class's folder" in folder.here("--db", "sqlite:///x", status=2)
    assert "No exercise is called '77'" in folder.here("--only", "77", status=1)
    among = SubmissionFolder(folder.path, folder.path)
    assert "results would lie among the hand-ins. Name another folder." in among.here(status=1)
    nowhere = SubmissionFolder(folder.path / "nowhere", folder.out)
    assert "nowhere is not there: a folder of submissions was expected" in nowhere.here(status=1)


def test_a_folder_needs_no_nbgrader_and_a_class_does(monkeypatch, tmp_path):
    monkeypatch.setattr(class_commands, "find_spec", lambda name: None if name == "nbgrader" else find_spec(name))
    (tmp_path / "empty").mkdir()
    of_folder = CliRunner().invoke(class_commands.grade, [str(tmp_path / "empty"), "--out", str(tmp_path / "out")])
    assert "holds no submission" in of_folder.output
    of_class = CliRunner().invoke(class_commands.grade, [])
    assert "nbgrader is missing" in of_class.output


def test_an_option_that_swallows_the_folder_says_so(tmp_path):
    said = CliRunner().invoke(class_commands.grade, ["--regrade", str(tmp_path), "--out", str(tmp_path / "out")]).output
    assert f"--regrade took {tmp_path} for a student: put it at the end." in " ".join(said.split())


def test_numbers_after_one_only_want_their_own(tmp_path):
    arguments = [str(tmp_path), "--out", str(tmp_path / "out"), "--only", "01", "03", "07"]
    said = CliRunner().invoke(class_commands.grade, arguments).output
    assert "Each further exercise wants an --only of its own: --only 03 --only 07." in " ".join(said.split())


@pytest.mark.parametrize(("option", "on"), [([], "goes on from there"), (["--regrade"], "begins anew")])
def test_whoever_stops_the_command_hears_what_it_does_next_time(tmp_path, monkeypatch, option, on):
    def stopped(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(class_commands, "_grade_folder", stopped)
    said = CliRunner().invoke(class_commands.grade, [str(tmp_path), "--out", str(tmp_path / "out"), *option]).output
    assert "What was judged is kept" in said and f"the same command {on}." in said


def test_the_help_names_as_many_judges_as_a_gpu_gets():
    said = " ".join(CliRunner().invoke(class_commands.grade, ["--help"]).output.split())
    assert f"at most {MOST_PER_GPU} per GPU" in said


HOMEWORK = {"homework/masked_add.py": TEXT, "__MACOSX/homework/._masked_add.py": b"", "homework/.DS_Store": b""}
PLATFORM_NAMES = {  # as Canvas and Moodle write them, and what becomes of each
    "banivo_1009_50010_masked_add.py": ("banivo", ""),
    "fringgus_1007_50008_masked_add.py.txt": ("fringgus", ""),
    "kimhana_1008_50009_masked_add (1).py": ("kimhana", ""),
    "novakkim_1011_50012_homework.zip": ("novakkim", ""),
    "rossbob_1002_50002_masked_add-1.py": ("rossbob", ""),
    "waremal_1014_50015_Masked_Add.py": ("waremal", ""),
    "wrayfay_1006_50007_masked_add.txt": ("wrayfay", ""),
    "özcem_LATE_1003_50004_masked_add.py": ("özcem", ""),
    "pipia_1017_50018_softmax.py": ("pipia", "not graded"),
    "rexrex_1019_50020_masked_add.pdf": ("rexrex", "not graded"),
    "steineli_1005_50006_my add final.py": ("steineli", "not graded"),
    "Ada Lovelace_7001_assignsubmission_file_/hw.zip": ("Ada Lovelace", ""),
    "eva.py": ("eva", ""),
    "fay_masked_add.py": ("fay", ""),
    "gus_maskd_add.py": ("gus", "not graded"),
    "hal/notes.pdf": ("hal", "not graded"),
}


def test_whoever_sent_anything_has_a_row(folder, judged_by):
    judged_by(judged)
    for name in PLATFORM_NAMES:
        (folder.path / name).parent.mkdir(exist_ok=True)
        (folder.path / name).write_bytes(zipped(HOMEWORK) if name.endswith(".zip") else TEXT)
    for attempt, text in (("50022_masked_add-2", b"the second"), ("50021_masked_add-1", b"the first")):
        (folder.path / f"suesue_1020_{attempt}.py").write_bytes(text)
    (folder.path / "notes.txt").write_bytes(b"mine")
    roster = folder.path.parent / "students.csv"
    roster.write_text("id,first_name,last_name,email,lms_user_id\nbob,Bob,Ross,bob@example.org,1002\ntim,Tim,,,\n")
    said = folder.here("--only", "01", "--roster", str(roster))
    rows = {row["student"]: row for row in folder.table()}
    expected = {student: status or "graded" for student, status in PLATFORM_NAMES.values() if student != "rossbob"}
    expected |= {"bob": "graded", "suesue": "graded", "tim": "missing"}
    assert {student: row["status"] for student, row in rows.items()} == expected
    assert rows["steineli"]["note"].endswith("; there is steineli_1005_50006_my add final.py")
    assert rows["pipia"]["note"].endswith("; there is pipia_1017_50018_softmax.py")  # of another exercise
    first, second = "suesue_1020_50021_masked_add-1.py", "suesue_1020_50022_masked_add-2.py"
    assert rows["suesue"]["note"] == f"{first} was not judged: {second} is newer."
    assert "Not in the roster, kept under the name that the folder gives: Ada Lovelace, banivo, " in said
    assert "steineli, 01_masked_add: masked_add.ipynb or masked_add.py was expected" in said
    assert "Ignored: notes.txt: it names no student" in said
    page = (folder.out / "report.html").read_text(encoding="utf-8")
    assert "steineli_1005_50006_my add final.py" in page and "<li>notes.txt: it names no student</li>" in page
    ids = {row["SIS User ID"]: row["ID"] for row in folder.table("exports/canvas.csv")}
    assert (ids["banivo"], ids["bob"], ids["Ada Lovelace"]) == ("1009", "1002", "")


def test_who_hears_nothing_else_hears_which_file_was_not_understood(folder, judged_by):
    """One file of a student is understood, and another names no exercise: who misses it asks why."""
    judged_by(judged)
    folder.put("Jörg Müller", "", {"masked_add (1).py": TEXT, "meine Lösung.py": TEXT})
    folder.put("ada", "", {"masked_add.py": TEXT, "softmax.py": b" \n"})
    folder.put("bob", "", {"masked_add.py": TEXT, "softmax.py": TEXT, "notes.pdf": b"%PDF"})
    said = folder.here("--only", "01", "--only", "03")
    rows = {(row["student"], row["exercise"]): row for row in folder.table()}
    assert rows["Jörg Müller", SOFTMAX]["status"] == "not graded"
    to_mend = said.partition("Not graded, for the student to mend:")[2]
    assert f"Jörg Müller, {SOFTMAX}: softmax.ipynb or softmax.py was expected; there is" in to_mend
    assert [line.partition(":")[2] for line in said.splitlines() if line.startswith("Ignored")] == [
        " bob/notes.pdf: no .py file or notebook of an exercise is called so"
    ]
    report = (folder.out / "report.html").read_text(encoding="utf-8")
    assert 'title="not graded: softmax.ipynb or softmax.py was expected; there is Jörg Müller' in report
    assert rows["ada", SOFTMAX]["note"] == "softmax.py is empty (2 bytes); hand in again"
    page = (folder.out / "feedback/Jörg Müller" / f"{SOFTMAX}.html").read_text(encoding="utf-8")
    assert "softmax.ipynb or softmax.py was expected; there is" in page and "meine Lösung.py" in page
    (folder.path / "Jörg Müller/meine Lösung.py").unlink()
    folder.here("--only", "01", "--only", "03")
    assert not (folder.out / "feedback/Jörg Müller" / f"{SOFTMAX}.html").exists()


def test_a_file_of_an_exercise_that_was_not_asked_for_is_told(folder, judged_by):
    judged_by(judged)
    folder.put("ada", "", {"masked_add.py": TEXT, "softmax.py": TEXT})
    folder.put("pit", "", {"transpose.py": TEXT})
    to_mend = folder.here("--only", "01", "--only", "03").partition("Not graded, for the student to mend:")[2]
    for exercise, name in ((ADD, "masked_add"), (SOFTMAX, "softmax")):
        problem = f"{name}.ipynb or {name}.py was expected; there is pit/transpose.py"
        assert f"pit, {exercise}: {problem}" in to_mend
    assert {row["status"] for row in folder.table() if row["student"] == "pit"} == {"not graded"}


def test_an_exercise_of_which_nothing_is_judged_has_its_points(folder, judged_by):
    judged_by(judged)
    folder.put("ada", "", {"masked_add.py": b"", "softmax.py": solution(SOFTMAX).encode()})
    folder.here("--only", "01", "--only", "03")
    assert {row["exercise"]: row["max_score"] for row in folder.table()} == {ADD: "15.0", SOFTMAX: "1"}
    assert folder.table("totals.csv")[0]["of"] == "16.0"


def test_two_of_one_name_stay_two(folder):
    for number in ("1001_1", "1002_2"):
        (folder.path / f"leekim_{number}_masked_add.py").write_bytes(TEXT)
    found, _ = read(folder)
    assert list(found) == ["leekim_1001", "leekim_1002"]


def test_gradescopes_folders_belong_to_whom_it_names(folder):
    folder.put("submission_77", "", {"masked_add.py": TEXT})
    (folder.path / "submission_metadata.yml").write_bytes(METADATA)
    found, ignored = read(folder)
    assert (list(found), ignored) == (["1001", "bob@example.org"], [])
    assert all(one.text.text == TEXT.decode() for one in found.values())


def test_one_hand_in_of_several_is_everyones_and_accuses_nobody(folder, judged_by):
    judged_by(judged)
    folder.put("ada+bob", "", {"masked_add.py": TEXT})
    (folder.path / "cem+dan_masked_add.py").write_bytes(TEXT + b"# another\n")
    folder.put("+eve", "", {"masked_add.py": TEXT + b"# of one\n"})
    folder.here("--only", "01")
    notes = {row["student"]: row["note"] for row in folder.table()}
    assert notes["ada"] == notes["bob"] == "Handed in together by ada, bob."
    assert (notes["cem"], notes["'+eve"]) == ("Handed in together by cem, dan.", "")
    assert "the same text to the letter" not in (folder.out / "report.html").read_text(encoding="utf-8")
    (folder.path / "gus_masked_add.py").write_bytes(TEXT)
    folder.here("--only", "01")
    assert "the same text to the letter: ada, bob, gus" in (folder.out / "report.html").read_text(encoding="utf-8")
