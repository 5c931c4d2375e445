"""The page about a class, from results as the judge writes them."""

from __future__ import annotations

import re

from grader.classroom.class_report import write_report
from grader.classroom.handin import HandIn
from grader.classroom.result_store import Text, faulty
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder
from tests.classroom.instructor import ROOT, solution
from tests.conftest import mutant

SOFTMAX = Folder(ROOT / "exercises/03_softmax")
TESTS = ("test_one_row", "test_two_rows", "test_three_rows")


def case(name: str, outcome: str = "pass", item: str = "right", id: str = "", message: str = "") -> dict:
    return {"name": name, "item": item, "hidden": False, "outcome": outcome, "id": id, "points": 1, "message": message}


def graded(student: str, content: str, failed: tuple[str, ...] = (), folder: Folder = SOFTMAX, **more) -> StudentWork:
    tests = [case(name, "fail" if name in failed else "pass") for name in TESTS]
    reached = len(TESTS) - len(failed)
    result = {"exercise": folder.id, "tests": tests, "points": reached, "possible": len(TESTS), "fault": None,
              "outcome": "fail" if failed else "pass", "cause": "padding" if failed else "",
              "message": f"The rows of z sum to 0.{student}.\nLine 3" if failed else "", **more}  # fmt: skip
    text = Text(folder, content, None)
    return StudentWork(student=student, exercise=folder.id, hand_in=HandIn(content), text=text, result=result)


def page(tmp_path, *works: StudentWork) -> str:
    write_report(list(works), ROOT, tmp_path / "report.html")
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_distribution_causes_and_hardest_tests(tmp_path):
    works = [graded(f"{n}", f"# {n}", TESTS[:1]) for n in range(3)]
    works += [graded("7", "# 7", TESTS), graded("8", "# 8")]
    shown = page(tmp_path, *works)
    assert 'aria-label="Students by points: 0: 1, 2: 3, 3: 1"' in shown
    assert "The rows of z sum to 0.0." in shown and "Line 3" not in shown
    assert re.search(
        r"<strong>4</strong> students; the words are those of one \(<code>padding</code>\): 0, 1, 2, 7", shown
    )
    assert re.search(r"one row</td><td class=\"number\">4 of 5", shown)
    assert shown.index("one row") < shown.index("two rows")


def test_what_a_person_has_to_look_at(tmp_path):
    noisy = [case("test_speed", "skipped", "speed", "inconclusive", "runs differ by 6 %")]
    works = [
        graded("noisy", "a", tests=noisy),
        graded("lost", "b", **faulty(SOFTMAX.id, "the GPU fell off")),
        StudentWork(student="late", exercise=SOFTMAX.id, hand_in=HandIn(problem="softmax.py is a link")),
        StudentWork(student="gone", exercise=SOFTMAX.id, hand_in=HandIn(problem="expected", absent=True)),
    ]
    shown = page(tmp_path, *works)
    for heading, student, why in (
        ("Faults of the machine: 1", "lost", "the GPU fell off"),
        ("Waiting: points still open: 1", "noisy", "runs differ by 6 %"),
        ("Not graded, for the student to mend: 1", "late", "softmax.py is a link"),
    ):
        part = shown.partition(heading)[2].partition("</section>")[0]
        assert f">{student}</th>" in part and why in part
    assert '<td class="number">0.0 of 1, up to 1 open</td>' in shown
    assert "missing: gone</li>" in shown
    assert "4 students, 3 submissions" in shown


def test_works_that_are_alike_are_named(tmp_path):
    unusual = mutant("03_softmax/ticket_relaxed")
    works = [graded(student, solution("03_softmax")) for student in ("ada", "bob")]
    works += [graded("cem", unusual, TESTS), graded("dan", unusual.replace("row", "my_row"), TESTS)]
    shown = page(tmp_path, *works)
    assert "the same text to the letter: ada, bob" in shown
    assert "a kernel that the course has, to the letter: ada, bob" in shown
    assert re.search(r"cem and dan: \d+ % of what is particular to them", shown)


def test_the_page_says_what_was_not_compared(tmp_path):
    add = Folder(ROOT / "exercises/01_masked_add")
    shown = page(tmp_path, graded("ada", "x = 1"), graded("ada", "y = 1", folder=add))
    short, softmax = shown.partition('<section id="03_softmax"')[::2]
    assert "Nothing was found." in short and "Nothing was found." in softmax
    assert "so short that right ones look alike" in short and "so short" not in softmax


def test_files_that_name_what_belongs_to_the_system_are_told(tmp_path):
    texts = (
        "import os\nos.system('id')",
        "import subprocess",
        "import os\nos.getcwd()",
        "import ctypes",
        "from os import environ",
        "empty = 1  # os",
    )
    shown = page(tmp_path, *(graded(f"s{number}", text) for number, text in enumerate(texts)))
    part = shown.partition("name what belongs to the system: 5")[2].partition("</section>")[0]
    assert ">s0</th>" in part and ">s1</th>" in part
    assert "belongs to the system" not in page(tmp_path, graded("s5", texts[5]))


def test_markup_of_a_student_stays_text(tmp_path):
    evil = "<script>steal()</script>"
    shown = page(tmp_path, graded(evil, "x", TESTS, message=evil, cause=evil))
    assert "<script" not in shown and "&lt;script&gt;" in shown


def test_medals_of_a_class_are_counted(tmp_path):
    works = [graded(f"{n}", f"# {n}", medal=medal) for n, medal in enumerate(["gold", "gold", "bronze", ""])]
    assert "Speed on a GPU: 2 gold, 1 bronze." in page(tmp_path, *works)
    assert "Speed on a GPU" not in page(tmp_path, graded("8", "# 8", medal=""))


def test_every_student_has_a_row_and_every_number_its_names(tmp_path):
    works = [graded(f"s{n:02}", f"# {n}", TESTS[:1]) for n in range(30)]
    works.append(StudentWork(student="gone", exercise=SOFTMAX.id, hand_in=HandIn(problem="expected", absent=True)))
    works.append(StudentWork(student="late", exercise=SOFTMAX.id, hand_in=HandIn(problem="softmax.py is a link")))
    shown = page(tmp_path, *works)
    everyone = ", ".join(f"s{n:02}" for n in range(30))
    assert f"partly right: {everyone}</li>" in shown and "missing: gone</li>" in shown
    assert f": {everyone}</p>" in shown.partition("What to teach next")[2]
    matrix = shown.partition("Every student")[2].partition("</section>")[0]
    assert len(re.findall(r'<tr><th scope="row">', matrix)) == 32
    assert re.search(
        r'>s07</th><td class="number"><span class="key" title="partly right">2<.*<td class="number">2</td>', matrix
    )
    assert 'title="not graded: softmax.py is a link">?<' in matrix
