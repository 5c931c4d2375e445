"""`course check --record` and `--since-record`: the commit that is proven, and when that may be believed."""

from __future__ import annotations

import json
import shutil

import pytest

from grader.author import record
from grader.author.check import Checked
from grader.author.git import git_text
from tests.author.test_touched import commit_all, git, write
from tests.learn.conftest import Course

SEED = 12345


@pytest.fixture
def course(tmp_path) -> Course:
    """A checkout whose last commit says of the one before that it is proven."""
    course = Course(tmp_path)
    (tmp_path / "tests").mkdir(exist_ok=True)
    commit_all(tmp_path, "init")
    record.write(tmp_path, SEED)
    commit_all(tmp_path)
    return course


def test_the_commit_that_was_written_is_read_again(course):
    assert record.record_of(course.path) == record.ProofRecord(git_text(course.path, "rev-parse", "HEAD~1"), SEED)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("versions", {"torch": "1.0", "triton": "3.9.0"}, "tells of other releases than torch "),
        ("commit", "f" * 40, "is no ancestor of what is checked out"),
        ("commit", "--output=mine", "names no commit"),
        ("commit", 7, "names no commit"),
        ("tree", "0" * 40, "are others than"),
        ("seed", -1, "cannot be read: NoSeed"),
    ],
)
def test_a_record_that_does_not_hold_here_is_not_believed(course, key, value, sentence):
    kept = json.loads((course.path / record.FILE).read_text())
    (course.path / record.FILE).write_text(json.dumps(kept | {key: value}))
    with pytest.raises(record.NoRecord, match=sentence):
        record.record_of(course.path)


@pytest.mark.parametrize("text", ["{", "[]", "{}", "7"])
def test_a_record_that_cannot_be_read_is_told(course, text):
    (course.path / record.FILE).write_text(text)
    with pytest.raises(record.NoRecord, match="^tests/proven.json cannot be read: "):
        record.record_of(course.path)


def test_without_a_record_everything_is_proven(course):
    (course.path / record.FILE).unlink()
    with pytest.raises(record.NoRecord, match="^There is no tests/proven.json.$"):
        record.record_of(course.path)


def test_since_a_record_nothing_but_itself_has_changed(course):
    done = course.here("check", "--since-record")
    assert done.status == 0 and done.lines[0].startswith("Proves no exercise: nothing that has changed since ")


def test_a_change_since_the_record_touches_its_exercise(course, monkeypatch):
    proven = []
    monkeypatch.setattr("grader.author.check.check", lambda folders, *_: proven.extend(folders) or Checked(0, []))
    write(course.path, "exercises/01_masked_add/README.md")
    touched = course.here("check", "--since-record").lines[0]
    assert touched.startswith("Proves 01_masked_add (exercises/01_masked_add/README.md): changed since ")
    assert [folder.id for folder in proven] == ["01_masked_add"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--record", "01"), "--record: it keeps that all exercises are proven. Name none, and no change."),
        (("--record", "--since-record"), "--record: it keeps that all exercises are proven."),
        (("--since-record", "--changed", "HEAD"), "each name a commit: give one of them"),
        (("--since-record", "01"), "--since-record chooses the exercises itself"),
        (("--drawn", "0.1"), "--drawn: it needs --changed or --since-record"),
    ],
)
def test_options_that_do_not_go_together_are_told(course, arguments, sentence):
    done = course.here("check", *arguments)
    assert done.status == 2 and done.out == "" and sentence in " ".join(done.err.split())


def test_files_that_are_not_committed_are_not_recorded(course):
    write(course.path, "course.md")
    done = course.here("check", "--record")
    assert done.status == 2 and "course.md is not committed" in done.err


def test_a_proof_whose_commit_git_cannot_tell_is_not_recorded(course, monkeypatch):
    def check(*_) -> Checked:
        shutil.rmtree(course.path / ".git")
        return Checked(0, [])

    monkeypatch.setattr("grader.author.check.check", check)
    done = course.here("check", "--record")
    assert done.status == 1 and done.err.startswith("Error: The proof was not recorded: git rev-parse fails in ")


def test_what_is_proven_is_recorded(tmp_path, monkeypatch, proven_here):
    """With a course of a single exercise, which has all that `course check` asks of it but its number of mutants."""
    monkeypatch.setattr("grader.author.check._static_complaints", lambda folder: [])
    course = Course(tmp_path)
    for folder in (tmp_path / "exercises").glob("[0-9]*"):
        shutil.rmtree(folder)
    course.here("new", "37_bias_residual")
    test_file = tmp_path / "exercises/37_bias_residual/test_bias_residual.py"
    before, speed, _ = test_file.read_text().partition("def test_it_reaches_the_gate")
    assert speed  # its gate is measured on a GPU
    test_file.write_text(before.rstrip() + "\n")
    lesson = tmp_path / "exercises/37_bias_residual/README.md"
    text = lesson.read_text()
    lesson.write_text(text.replace("11 points:", "10 points:").replace("2 for what a GPU", "1 for what a GPU"))
    write(tmp_path, ".gitignore", "__pycache__/\n.course/\n")
    commit_all(tmp_path, "init")
    done = course.here("check", "--record", "--jobs", "1")
    assert done.lines[-2:] == [
        "Kept in tests/proven.json and tests/mutants/first_tests.json. Next: commit both, and nothing else.",
        "No complaints.",
    ], done.out + done.err
    recorded = record.record_of(tmp_path)
    assert recorded.commit == git_text(tmp_path, "rev-parse", "HEAD")
    assert f"Seed {recorded.seed}, from the committed files." in done.lines
    name = "tests/mutants/37_bias_residual.toml: mask_less_or_equal"
    assert name in json.loads((tmp_path / "tests/mutants/first_tests.json").read_text())
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "what is proven")
    done = course.here("check", "--since-record", "--drawn", "0.1", "--jobs", "1")
    assert done.lines[0].startswith("Proves no exercise") and done.lines[-1] == "No complaints."
    assert done.lines[1].startswith("37_bias_residual: ")
