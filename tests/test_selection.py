"""`pytest --since-record`: which test files stay after a change, and that it is all of them where nothing is known."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.author import record
from grader.author.touched import Change
from tests.author.test_touched import commit_all, git, write
from tests.conftest import ROOT
from tests.selection import Texts, sees, selection_of
from tests.waiting import NEVER

IDS = ("03_softmax", "05_matmul", "07_row_sum")
FILES = {
    "course.md": "".join(f"| [{id}](exercises/{id}/README.md) |\n" for id in IDS),
    "tox.ini": "pip install triton==3.6.0\npip install triton==3.9.0\n",
    "grader/operations/gemm.py": "",
    "tests/conftest.py": "@pytest.fixture\ndef bench():\n    return '05_matmul'\n\ndef other():\n    pass\n",
    "tests/helper.py": "from tests.deep import TEXT\n\ndef deep():\n    return TEXT\n\ndef shallow():\n    return 1\n",
    "tests/deep.py": "TEXT = 'softmax'\n",
    "tests/test_by_id.py": "ID = '03_softmax'\n",
    "tests/test_by_number.py": "NUMBERS = ['03']\n",
    "tests/test_by_name.py": "def test_it():\n    run('softmax.py')\n",
    "tests/test_by_helper.py": "from tests.helper import deep\n\ndef test_it():\n    deep()\n",
    "tests/test_by_script.py": "SCRIPT = 'deep.py'\n",
    "tests/test_by_fixture.py": "def test_it(bench):\n    pass\n",
    "tests/test_of_all.py": "def test_it():\n    all_folders(ROOT)\n",
    "tests/test_that_lists.py": "def test_it():\n    (ROOT / 'exercises').glob('*')\n",
    "tests/test_of_page.py": "PAGE = ROOT / 'docs' / 'words.md'\n",
    "tests/test_blind.py": "from tests.helper import shallow\n\ndef test_it(home):\n    home.iterdir(), shallow\n",
}
LARGE = {"of_all", "that_lists"}
OF_03 = LARGE | {"by_id", "by_number", "by_name", "by_helper", "by_script"}


@pytest.fixture
def course(tmp_path) -> Path:
    """A checkout whose last commit says of the one before that it is proven."""
    for id in IDS:
        write(tmp_path, f"exercises/{id}/test_{id[3:]}.py", "operation = 'gemm'\n" if id == "05_matmul" else "")
    for name, text in FILES.items():
        write(tmp_path, name, text)
    commit_all(tmp_path, "init")
    record.write(tmp_path, 1)
    commit_all(tmp_path)
    return tmp_path


def kept(root: Path) -> set[str] | None:
    """The names of the test files that stay; None where all do."""
    found = selection_of(root).kept
    return None if found is None else {path.stem.removeprefix("test_") for path in found}


@pytest.mark.parametrize(
    ("changed", "stays"),
    [
        ("exercises/03_softmax/README.md", OF_03),
        ("solutions/03_softmax/softmax.py", OF_03),
        ("hints/03_softmax.md", OF_03),
        ("tests/mutants/03_softmax.toml", OF_03),
        ("tests/gates/03_softmax/softmax.py", OF_03),
        ("solutions/05_matmul/matmul.py", LARGE | {"by_fixture"}),
        ("docs/words.md", {"that_lists", "of_page"}),
        ("README.md", {"that_lists"}),
    ],
)
def test_a_change_of_an_exercise_or_a_page_keeps_what_can_see_it(course, changed, stays):
    write(course, changed)
    assert kept(course) == stays
    commit_all(course)
    assert kept(course) == stays


@pytest.mark.parametrize(
    "changed",
    [
        "grader/judge/judge.py", "grader/operations/gemm.py", "tests/test_blind.py", "tests/helper.py", "tox.ini",
        "constraints.txt", "pyproject.toml", ".ci/run", "exercises/odd.txt", "tests/gates/odd.txt",
    ],
)  # fmt: skip
def test_a_change_of_anything_else_keeps_all(course, changed):
    write(course, "hints/03_softmax.md")
    write(course, changed, "# triton==3.9.0")
    assert kept(course) is None and selection_of(course).told.startswith(f"all test files: {changed} changed since ")


def test_without_a_record_all_stay(course):
    (course / record.FILE).unlink()
    assert selection_of(course).told == f"all test files: There is no {record.FILE}."


def test_a_record_that_is_no_ancestor_keeps_all(course):
    git(course, "checkout", "-q", "--orphan", "other")
    commit_all(course)
    assert kept(course) is None and "is no ancestor" in selection_of(course).told


def test_without_git_all_stay(course, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert kept(course) is None


def test_another_release_keeps_all_but_those_that_tox_names(course, monkeypatch):
    here = record._versions()
    monkeypatch.setattr(record, "_versions", lambda: here | {"triton": "3.6.0"})
    assert kept(course) == {"that_lists"}
    monkeypatch.setattr(record, "_versions", lambda: here | {"triton": "3.7.0"})
    assert kept(course) is None
    monkeypatch.setattr(record, "_versions", lambda: here | {"torch": "1.0"})
    assert kept(course) is None


def test_an_import_that_cannot_be_followed_keeps_all(course):
    for text in (
        "from tests.helper import *",
        "import tests.helper",
        "from . import helper",
        "from tests.gone import a",
    ):
        write(course, "tests/test_blind.py", text)
        commit_all(course)
        record.write(course, 1)
        write(course, "hints/03_softmax.md", text)
        assert kept(course) is None, text


def test_a_new_operation_belongs_to_the_exercises_that_state_it(course):
    write(course, "grader/operations/soft_cap.py")
    write(course, "exercises/03_softmax/test_softmax.py", "operation = 'soft_cap'")
    assert kept(course) == OF_03
    write(course, "grader/operations/soft_cap.py", "from grader.operations.gemm import a")
    write(course, "grader/operations/over.py", "from grader.operations.soft_cap import a")
    assert kept(course) == OF_03
    write(course, "exercises/07_row_sum/test_row_sum.py", "operation = 'over'")
    assert kept(course) == OF_03


def test_an_exercise_that_gets_another_one_next_has_changed(course):
    write(course, "exercises/04_new/test_new.py", "")
    rows = FILES["course.md"].replace("| [07_", "| [04_new] |\n| [07_")
    write(course, "course.md", rows)
    assert kept(course) == LARGE | {"by_fixture"}  # of 05, which 04 follows


def test_one_line_says_how_many_stay_and_why(course):
    write(course, "hints/03_softmax.md")
    commit = record.record_of(course).commit[:7]
    told = f"since {commit} only 03_softmax, {record.FILE} changed: {len(OF_03)} of 10 test files"
    assert selection_of(course).told == told


# Of this course: each judges or reads exercises, and none of them 03.
BLIND = ("classroom/test_exports.py", "judge/test_refused_calls.py", "processes/test_interpreter_process.py")
WATCHED = f"""\
import os, sys

PLACES = [os.path.join({str(ROOT)!r}, name, "03_softmax") for name in (
    "exercises", "solutions", "hints", "tests/mutants", "tests/accepted", "tests/cheats", "tests/gates"
)]

def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and os.path.abspath(arguments[0]).startswith(tuple(PLACES)):
        os.write(2, f"opened {{arguments[0]}}\\n".encode())

sys.addaudithook(note)
"""


def test_a_file_that_is_left_out_opens_no_file_of_the_exercise(tmp_path):
    paths, texts = [ROOT / "tests" / name for name in BLIND], Texts(ROOT)
    change = Change(frozenset({"03_softmax"}), frozenset(), ())
    assert [path for path in paths if sees(texts.of(path), change)] == []
    write(tmp_path, "sitecustomize.py", WATCHED)  # every Python that is started imports it
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    look = [sys.executable, "-c", f"open({str(ROOT / 'hints/03_softmax.md')!r})"]
    tests = [sys.executable, "-m", "pytest", "-q", "-s", *map(str, paths)]
    looked, done = (
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=NEVER)
        for command in (look, tests)
    )
    assert "opened " in looked.stderr
    assert done.returncode == 0 and "opened " not in done.stdout + done.stderr, done.stdout + done.stderr
