"""Names of folders and files, and what a file says, in front of an instructor: on a terminal, on a page, in a table."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as xml

import pytest

from grader.classroom.class_report import write_report
from grader.classroom.export_formats import csv_of, gradescope_text, junit_text
from grader.classroom.handin import HandIn
from grader.classroom.intake import take_in
from grader.classroom.json_text import json_text
from grader.classroom.nbgrader.cell_outputs import report_outputs
from grader.classroom.plain_folder.submissions import read_submissions
from grader.classroom.result_store import Text
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder, all_folders
from tests.classroom.instructor import ROOT, solution
from tests.classroom.submission_folder import SubmissionFolder

ADD = "01_masked_add"
STEERING = "\x1b[31mEve\x1b]0;owned\x07 \x9b1A \u202e"
NEW_LINE = "ada\r\n  pass  everything"


def is_plain(text: str) -> bool:
    return all(c.isprintable() or c in "\n\t" for c in text)


@pytest.fixture
def folder(tmp_path) -> SubmissionFolder:
    (tmp_path / "submissions").mkdir()
    return SubmissionFolder(tmp_path / "submissions", tmp_path / "results")


def test_a_name_that_would_pass_for_another_one_is_no_students(folder):
    folder.put("ada", "", {"masked_add.py": b"x = 1\n"})
    folder.put("ada\n", "", {"masked_add.py": b"x = 2\n"})
    (folder.path / "\x1b[2J_masked_add.py").write_bytes(b"x = 3\n")
    found = read_submissions(folder.path, all_folders(ROOT), (), without=folder.out)
    assert found.students == ["ada"]
    assert sorted(line.partition(": ")[0] for line in found.ignored) == ["\x1b[2J_masked_add.py", "ada\n/masked_add.py"]


def test_a_platforms_export_makes_no_such_folder(tmp_path):
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "a\x9bb\x1b[31m_masked_add.py").write_bytes(b"x = 1\n")
    taken = take_in(tmp_path / "export", tmp_path / "submitted", {"01": ["masked_add"]}, [])
    assert not taken.students and "its name has control characters" in taken.ignored[0]


def test_what_the_command_prints_is_plain(folder):
    folder.put("ada", ADD, {f"{STEERING}\nNot graded.py": b"x = 1\n"})
    folder.put(f"{STEERING}{NEW_LINE}", "", {"masked_add.py": b"x = 2\n"})
    said = folder.here("--only", "1")
    assert is_plain(said)
    (ignored,) = (line for line in said.splitlines() if "pass  everything" in line)
    assert ignored.startswith("Ignored: ?[31mEve?]0;owned? ?1A ?ada")
    (problem,) = (line for line in said.splitlines() if "was expected; there is" in line)
    assert "Not graded.py" in problem
    for path in folder.out.rglob("*"):
        assert not path.is_file() or is_plain(path.read_text(encoding="utf-8-sig")), path


def test_a_cell_of_a_table_is_one_line_and_no_formula():
    rows = list(csv.reader(csv_of([[STEERING, NEW_LINE, "\n=1+1", " @x", 3, None]]).splitlines()))
    assert rows == [["?[31mEve?]0;owned? ?1A ?", "ada    pass  everything", "' =1+1", "' @x", "3", ""]]


def result(message: str) -> dict:
    test = {"name": "test_a_row", "item": "right", "hidden": False, "outcome": "fail", "id": "x", "points": 1}
    return {"exercise": ADD, "tests": [test | {"message": message}], "outcome": "fail", "fault": None, "points": 0,
            "possible": 1, "cause": "x", "message": message, "report": message}  # fmt: skip


def test_texts_for_other_programs_are_plain():
    message = f"{STEERING}\nLine 3"
    for output in json.loads(gradescope_text([result(message)], message, 0))["output"], junit_text([result(message)]):
        assert is_plain(output) and "?[31mEve" in output and "\nLine 3" in output
    assert xml.fromstring(junit_text([result(message)])).find(".//failure").text.endswith("\nLine 3")
    (shown,) = report_outputs(result(message), [NEW_LINE])
    assert is_plain(shown["text"])


def test_json_keeps_a_text_and_shows_none_of_it_to_a_terminal():
    content = {"student": STEERING, "notes": [NEW_LINE, "\udcfc", "\U000e0001", "Gül ≥ 3"]}
    assert is_plain(json_text(content)) and json.loads(json_text(content)) == content and "Gül" in json_text(content)


def test_a_page_is_plain(tmp_path):
    text = solution(ADD)
    hand_in = HandIn(text, notes=[STEERING])
    exercise = Folder(ROOT / "exercises" / ADD)
    judged = result(f"{STEERING} it said")
    work = StudentWork(student=STEERING, exercise=ADD, hand_in=hand_in, text=Text(exercise, text, None), result=judged)
    write_report([work], ROOT, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert is_plain(page) and "?[31mEve" in page
