"""`pytest --since-record`: which tests stay after a change, and that it is all of them where nothing is known."""

from __future__ import annotations

import pytest

from grader.author.git import git_text
from tests.author.test_touched import commit_all, git, write
from tests.recorded_reads import FILE, FileReads, read_record, write_record
from tests.selection import selection_of

FILES = (
    "README.md", "course.md", "docs/words.md", "grader/cli.py", "grader/files.py", "grader/judge/run.py",
    "grader/page.html", "tests/conftest.py", "tests/gates/figures.json", "tests/proven.json", "tests/test_some.py",
    "tests/test_own.py", "tests/mutants/03_softmax/old.py", "tox.ini",
)  # fmt: skip
READS = {
    "tests/test_some.py": {
        "03_softmax course.md": ["test_03"],
        "05_matmul course.md": ["test_05"],
        "exercises docs/words.md": ["test_all"],
        "exercises/ course.md": ["test_which"],
        "*": ["test_skipped"],
    },
    "tests/test_own.py": {"{id}": ["test_own"], "": ["test_other"]},
    "tests/test_blind.py": {"": ["test_blind"], "05_matmul": ["test_05"]},
}
CODE = {
    "tests/test_some.py": ["grader/cli.py", "grader/page.html", "tests/conftest.py", "tests/test_some.py"],
    "tests/test_own.py": ["grader/files.py", "grader/judge/", "tests/conftest.py", "tests/test_own.py"],
    "tests/test_blind.py": ["tests/", "tests/learn/", "tests/conftest.py"],
}
TESTS = {
    "tests/test_some.py": ["test_03", "test_05", "test_all", "test_which", "test_skipped", "test_unknown"],
    "tests/test_own.py": ["test_own[03_softmax]", "test_own[05_matmul]", "test_other[03_softmax]"],
    "tests/test_blind.py": ["test_blind", "test_05[03_softmax]"],
    "tests/test_unknown.py": ["test_it"],
}
UNKNOWN = {"test_unknown", "test_skipped", "test_it"}
OF_03 = UNKNOWN | {"test_03", "test_all", "test_own[03_softmax]"}
OF_05 = UNKNOWN | {"test_05", "test_all", "test_own[05_matmul]", "test_05[03_softmax]"}
OF_SOME = UNKNOWN | set(TESTS["tests/test_some.py"])
OF_OWN = UNKNOWN | set(TESTS["tests/test_own.py"])
OF_BLIND = UNKNOWN | set(TESTS["tests/test_blind.py"])
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


def record(root, files=READS, **more) -> None:
    commit = more.get("commit", git_text(root, "rev-parse", "HEAD"))
    kept = read_record(root) if (root / FILE).exists() else {}
    for file in files:
        tests = {test: frozenset(parts.split()) for parts, tests in READS[file].items() for test in tests}
        kept[file] = FileReads(commit, frozenset(CODE[file]), tests)
    write_record(root, kept)


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
        ("course.md", UNKNOWN | {"test_03", "test_05", "test_which"}),
        ("README.md", UNKNOWN),
        ("tests/proven.json", UNKNOWN),
        ("tests/gates/figures.json", UNKNOWN),
        ("exercises/04_new/README.md", UNKNOWN | {"test_all", "test_which"}),
        ("tests/mutants/04_new/first.py", UNKNOWN | {"test_all", "test_which"}),
        ("grader/cli.py", OF_SOME),
        ("grader/page.html", OF_SOME),
        ("tests/test_some.py", OF_SOME),
        ("grader/files.py", OF_OWN),
        ("grader/judge/run.py", UNKNOWN),
        ("grader/judge/new.py", OF_OWN),
        ("tests/conftest.py", ALL),
        ("tests/test_new.py", OF_BLIND),
        ("tests/learn/test_new.py", OF_BLIND),
        ("grader/judge/deep/new.py", OF_OWN),
    ],
)
def test_a_change_keeps_what_reads_it(course, changed, kept):
    write(course, changed)
    assert stays(course) == kept
    commit_all(course)
    assert stays(course) == kept


@pytest.mark.parametrize(
    "changed",
    [
        "tox.ini", "exercises/odd.txt", "docs/new.md", "exercises/03_softmax/new.py", "grader/new.html",
        "tests/mutants/05_matmul/first.py", "tests/judge/conftest.py", "grader/judge/__init__.py", "tests/helper.py",
        "tests/other_judges/30_new.py", "tests/operations/exercises/90_new/test_new.py",
    ],
)  # fmt: skip
def test_a_change_of_which_no_record_tells_keeps_all(course, changed):
    write(course, "hints/03_softmax.md")
    write(course, changed)
    assert stays(course) == ALL and selection_of(course).told.startswith(f"all tests: {changed} changed since ")


def test_a_deleted_file_keeps_all(course):
    (course / "hints/03_softmax.md").unlink()
    assert stays(course) == ALL


@pytest.mark.parametrize(
    ("deleted", "kept"),
    [("grader/cli.py", OF_SOME), ("grader/judge/run.py", OF_OWN), ("tests/test_own.py", OF_OWN | OF_BLIND)],
)
def test_deleted_code_keeps_what_read_or_listed_it(course, deleted, kept):
    (course / deleted).unlink()
    assert stays(course) == kept


def test_each_file_is_held_against_its_own_commit(course):
    write(course, "hints/03_softmax.md")
    commit_all(course)
    record(course, ["tests/test_own.py"])
    assert stays(course) == UNKNOWN | {"test_03", "test_all"}
    write(course, "grader/files.py")
    assert stays(course) == UNKNOWN | {"test_03", "test_all"} | OF_OWN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read: Expecting value"),
        ("[]", "TypeError"),
        ('{"code": [], "files": []}', "AttributeError"),
        ('{"code": [], "files": {"tests/test_some.py": {"commit": "1", "code": "0", "reads": {}}}}', "IndexError"),
        ('{"code": [], "files": {"tests/test_some.py": {"commit": "1", "code": "a", "reads": {}}}}', "invalid literal"),
    ],
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
    told = "tests that read what changed since that was recorded: "
    assert selection_of(course).told == f"{told}03_softmax, {FILE}"
    for id in range(6):
        write(course, f"grader/judge/new{id}.py")
    assert selection_of(course).told == (
        f"{told}03_softmax, grader/, grader/judge/, grader/judge/new0.py, grader/judge/new1.py, grader/judge/new2.py "
        "and 4 more"
    )
