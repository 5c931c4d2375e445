"""`pytest --since-record`: which tests stay after a change, and that it is all of them where nothing is known."""

from __future__ import annotations

import json

import pytest

from tests.author.test_touched import commit_all, git, write
from tests.reads import FILE
from tests.selection import selection_of

FILES = (
    "README.md", "course.md", "docs/words.md", "grader/cli.py", "tests/gates/figures.json", "tests/proven.json",
    "tests/test_some.py", "tests/mutants/03_softmax/old.py",
)  # fmt: skip
READS = {
    "tests/test_some.py": {
        "03_softmax course.md": ["test_03"],
        "05_matmul course.md": ["test_05"],
        "exercises docs/words.md": ["test_all"],
        "*": ["test_skipped"],
    },
    "tests/test_own.py": {"{id}": ["test_own"], "": ["test_other"]},
    "tests/test_blind.py": {"": ["test_blind"], "05_matmul": ["test_05"]},
}
TESTS = {
    "tests/test_some.py": ["test_03", "test_05", "test_all", "test_skipped", "test_unknown"],
    "tests/test_own.py": ["test_own[03_softmax]", "test_own[05_matmul]", "test_other[03_softmax]"],
    "tests/test_blind.py": ["test_blind", "test_05[03_softmax]"],
    "tests/test_unknown.py": ["test_it"],
}
UNKNOWN = {"test_unknown", "test_skipped", "test_it"}
OF_03 = UNKNOWN | {"test_03", "test_all", "test_own[03_softmax]"}
OF_05 = UNKNOWN | {"test_05", "test_all", "test_own[05_matmul]", "test_05[03_softmax]"}
ALL = {test for tests in TESTS.values() for test in tests}


@pytest.fixture
def course(tmp_path):
    """A checkout whose last commit says what the tests read at the one before."""
    for id in ("03_softmax", "05_matmul"):
        for name in (f"exercises/{id}/README.md", f"solutions/{id}/{id[3:]}.py", f"hints/{id}.md"):
            write(tmp_path, name, "as it was")
    for name in FILES:
        write(tmp_path, name, "as it was")
    commit_all(tmp_path, "init")
    record(tmp_path)
    commit_all(tmp_path)
    return tmp_path


def record(root, **more) -> None:
    commit = (root / ".git" / (root / ".git/HEAD").read_text().split()[1]).read_text().strip()
    write(root, FILE, json.dumps({"commit": commit, "files": READS} | more))


def stays(root) -> set[str]:
    selection = selection_of(root)
    files = {file: tests for file, tests in TESTS.items() if not selection.leaves_out_file(file)}
    return {test for file, tests in files.items() for test in tests if not selection.leaves_out(f"{file}::{test}")}


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ("exercises/03_softmax/README.md", OF_03),
        ("solutions/03_softmax/softmax.py", OF_03),
        ("hints/03_softmax.md", OF_03),
        ("tests/mutants/03_softmax/old.py", OF_03),
        ("tests/mutants/03_softmax/new.py", OF_03),
        ("solutions/05_matmul/matmul.py", OF_05),
        ("docs/words.md", UNKNOWN | {"test_all"}),
        ("course.md", UNKNOWN | {"test_03", "test_05"}),
        ("README.md", UNKNOWN),
        ("tests/proven.json", UNKNOWN),
        ("tests/gates/figures.json", UNKNOWN),
    ],
)
def test_a_change_of_contents_keeps_what_reads_them(course, changed, kept):
    write(course, changed)
    assert stays(course) == kept
    commit_all(course)
    assert stays(course) == kept


@pytest.mark.parametrize(
    "changed",
    [
        "grader/cli.py", "tests/test_some.py", "tests/test_new.py", "tox.ini", "exercises/odd.txt", "docs/new.md",
        "exercises/03_softmax/new.py", "exercises/04_new/README.md", "tests/mutants/05_matmul/first.py",
    ],
)  # fmt: skip
def test_a_change_of_anything_else_keeps_all(course, changed):
    write(course, "hints/03_softmax.md")
    write(course, changed)
    assert stays(course) == ALL and selection_of(course).told.startswith(f"all tests: {changed} changed since ")


def test_a_deleted_file_keeps_all(course):
    (course / "hints/03_softmax.md").unlink()
    assert stays(course) == ALL


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "cannot be read: JSONDecodeError"), ("[]", "TypeError"), ('{"commit": 1, "files": []}', "AttributeError")],
)
def test_a_record_that_cannot_be_read_keeps_all(course, text, said):
    write(course, FILE, text)
    assert stays(course) == ALL and said in selection_of(course).told


def test_without_a_record_all_stay(course):
    (course / FILE).unlink()
    assert stays(course) == ALL and selection_of(course).told == f"all tests: there is no {FILE}"


@pytest.mark.parametrize("commit", ["", "--all", "0" * 40])
def test_a_record_of_no_commit_keeps_all(course, commit):
    record(course, commit=commit)
    assert stays(course) == ALL


def test_a_record_that_is_no_ancestor_keeps_all(course):
    git(course, "checkout", "-q", "--orphan", "other")
    commit_all(course)
    assert stays(course) == ALL and "is no ancestor" in selection_of(course).told


def test_without_git_all_stay(course, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert stays(course) == ALL


def test_one_line_says_what_changed(course):
    write(course, "hints/03_softmax.md")
    commit = json.loads((course / FILE).read_text())["commit"][:7]
    told = f"tests that read what changed since {commit}: 03_softmax, {FILE}"
    assert selection_of(course).told == told
