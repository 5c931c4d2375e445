"""`python -m tests.reads`: which parts of the course, and which code, a test is said to read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import reads
from tests.author.test_touched import commit_all, write
from tests.conftest import ROOT
from tests.parts import code_of, named_in, part_of
from tests.reads import Watch, recorded
from tests.recorded_reads import FileReads, read_record, write_record

HINTS = "hints/03_softmax.md"
COMMIT = "1" * 40


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A copy of the course in which nobody else reads: other tests run beside these."""
    course = tmp_path_factory.mktemp("course")
    for name in reads.PLACES:
        shutil.copytree(ROOT / name, course / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (*ROOT.glob("*.md"), ROOT / "pyproject.toml"):
        shutil.copy(path, course)
    return course


@pytest.fixture
def watch(course, monkeypatch) -> Watch:
    monkeypatch.setattr(reads, "ROOT", course)
    return Watch()


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("exercises/03_softmax/README.md", "03_softmax"),
        ("exercises/00_memory/README.md", "00_memory"),
        ("hints/03_softmax.md", "03_softmax"),
        ("tests/mutants/03_softmax.toml", "03_softmax"),
        ("tests/gates/figures.json", "tests/gates/figures.json"),
        ("docs/words.md", "docs/words.md"),
        ("course.md", "course.md"),
        ("grader/cli.py", ""),
        ("tests/test_words.py", ""),
    ],
)
def test_a_file_belongs_to_its_exercise_or_is_a_page(path, part):
    assert part_of(path) == part


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("grader/judge/run.py", "grader/judge/run.py"),
        ("grader/judge/__pycache__/run.cpython-311.pyc", "grader/judge/run.py"),
        ("tests/__pycache__/test_files.cpython-311-pytest-9.0.2.pyc", "tests/test_files.py"),
        ("grader/doctor/smoke.html", "grader/doctor/smoke.html"),
        ("tests/mutants/03_softmax.toml", ""),
        ("tests/proven.json", ""),
        ("exercises/03_softmax/softmax.py", ""),
        ("tox.ini", ""),
    ],
)
def test_code_is_the_module_also_where_its_bytecode_is_opened(path, code):
    assert code_of(path) == code


@pytest.mark.parametrize("test", ["test_it[03_softmax-fp16]", "test_it[fp16-03]", "test_it[03_softmax/pad_zero]"])
def test_the_parameters_of_a_test_name_an_exercise(test):
    assert named_in(test, "03_softmax")
    assert not named_in(test, "13_online_softmax") and not named_in(test.replace("[", "-"), "03_softmax")


def test_any_process_that_opens_a_file_is_seen(course, watch):
    for command in (["cat"], [sys.executable, "-I", "-c", "import sys; open(sys.argv[1])"]):
        subprocess.run([*command, course / HINTS], check=True, stdout=subprocess.DEVNULL)
        assert watch.opened() == {"03_softmax"}
    assert watch.opened() == set()


def test_a_list_counts_only_where_files_come_and_go(course, watch):
    list((course / "exercises/03_softmax").glob("*.py"))
    assert watch.opened() == set()
    list((course / "tests/mutants/03_softmax").glob("*"))
    assert watch.opened() == {"03_softmax"}
    list((course / "exercises").iterdir())
    assert watch.opened() == {"exercises/"}


def test_an_import_of_another_process_is_seen_with_and_without_bytecode(course, watch, monkeypatch):
    importing = "import sys; sys.path.insert(0, sys.argv[1]); import grader.sentences"
    for _ in range(2):
        subprocess.run([sys.executable, "-I", "-c", importing, course], check=True)
        assert watch.code() == {"grader/__init__.py", "grader/sentences.py"}
        watch = Watch()


def test_no_event_is_lost_of_a_test_that_opens_many_files(course, watch):
    for _ in range(20_000):
        (course / HINTS).open().close(), (course / "hints/04_transpose.md").open().close()
    assert watch.opened() == {"03_softmax", "04_transpose"}


def test_a_copy_is_watched_and_copying_is_no_reading(course, watch, tmp_path):
    (course / "hints/01_masked_add.md").read_text()
    watch.copytree(shutil.copytree, course / "exercises", tmp_path / "exercises")
    watch.copytree(shutil.copytree, tmp_path / "exercises", tmp_path / "again")
    assert watch.opened() == {"01_masked_add"}
    new = tmp_path / "again" / "03_softmax" / "new"
    new.mkdir()
    assert watch.opened() == set()
    (new / "file.py").write_text("")
    (tmp_path / "exercises" / "04_transpose" / "README.md").read_text()
    assert watch.opened() == {"03_softmax", "04_transpose"}


FILE = """\
import shutil
import pytest
from grader.places import COURSE

IDS = ["01_masked_add", "03_softmax"]
AT_IMPORT = (COURSE / "course.md").read_text()

@pytest.fixture(scope="module")
def shared():
    return []

def read(id):
    return (COURSE / f"hints/{id}.md").read_text()

@pytest.mark.parametrize("id", IDS)
def test_own(id):
    read(id)

def test_both():
    read("01_masked_add"), read("03_softmax")

def test_first(shared):
    shared.append(read("04_transpose"))

def test_second(shared):
    assert shared

def test_nothing():
    pass

def test_copied(tmp_path):
    shutil.copytree(COURSE / "exercises", tmp_path / "exercises")

def test_skipped():
    pytest.skip("needs a GPU")
"""


def test_what_is_opened_elsewhere_while_a_folder_is_copied_is_read(course, watch, tmp_path):
    def copy(source, target):
        (course / HINTS).read_text()
        return shutil.copytree(source, target)

    watch.copytree(copy, course / "exercises", tmp_path / "exercises")
    assert watch.opened() == {"03_softmax"}


def test_a_lost_event_may_be_of_anything(watch):
    watch._note(-1, reads.OVERFLOW, "", ())
    assert watch.opened() == {"*"} and "*" in watch.code()


def test_reads_of_each_test_are_recorded(course, tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(FILE)
    reads = recorded(course, str(file), COMMIT)
    assert reads.tests == {
        "test_own": {"course.md", "{id}"},
        "test_both": {"course.md", "01_masked_add", "03_softmax"},
        "test_first": {"course.md", "04_transpose"},
        "test_second": {"course.md", "04_transpose"},
        "test_nothing": {"course.md"},
        "test_copied": {"course.md"},
        "test_skipped": {"*"},
    }
    assert {"grader/places.py", "grader/session/plugin.py"} < reads.code and "grader/judge/run.py" not in reads.code


THROUGH_FOLDERS = """\
from grader import operations
from grader.places import COURSE

def test_it():
    (COURSE / "grader/ttir/floats.py").read_text()
    for path in (*(COURSE / "grader/wire").glob("*.py"), *(COURSE / "tests/wire").glob("*.py")):
        path.read_text()
    operations.causes()
"""


def test_a_file_that_reads_all_modules_of_a_folder_is_said_to_go_through_it(course, tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(THROUGH_FOLDERS)
    code = recorded(course, str(file), COMMIT).code
    assert {"tests/wire/", "grader/wire/", "grader/operations/", "grader/operations/mistakes/"} < code
    assert {"tests/wire/test_reading.py", "grader/operations/rope.py", "grader/ttir/floats.py"} < code
    assert not code & {"tests/", "tests/judge/", "grader/", "grader/ttir/", "grader/judge/", "grader/explain/"}


def test_a_file_that_fails_is_not_recorded(course, tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text("def test_it():\n    assert False\n")
    assert recorded(course, str(file), COMMIT) is None


@pytest.fixture
def recording(tmp_path, monkeypatch):
    """A checkout with two files of tests. recording(): records what they read, and returns which it had to ask."""
    for name in ("grader/cli.py", "grader/files.py", "tests/test_one.py", "tests/test_two.py"):
        write(tmp_path, name, "")
    commit_all(tmp_path, "init")
    asked: list[str] = []

    def recorded(checkout, test_file, commit):
        assert (checkout / test_file).exists() and checkout != tmp_path
        asked.append(test_file)
        if test_file in recording.failing:
            return None
        tests = {"test_it": frozenset({"03_softmax"}), "test_skipped": frozenset({"*"})}
        code = {test_file, "grader/cli.py"} if "one" in test_file else {test_file}
        return FileReads(commit, frozenset(code), tests)

    def recording(*test_files: str, failing: tuple[str, ...] = ()) -> list[str]:
        asked.clear()
        recording.failing = failing
        assert reads.main(list(test_files)) == 0
        return sorted(asked)

    monkeypatch.setattr(reads, "ROOT", tmp_path)
    monkeypatch.setattr(reads, "recorded", recorded)
    recording.path = tmp_path
    return recording


def test_what_is_recorded_is_not_recorded_again(recording):
    assert recording() == ["tests/test_one.py", "tests/test_two.py"]
    assert recording() == []
    assert recording("tests/test_two.py") == ["tests/test_two.py"]


def test_a_file_that_failed_is_asked_again(recording):
    assert recording(failing=("tests/test_two.py",)) == ["tests/test_one.py", "tests/test_two.py"]
    assert list(read_record(recording.path)) == ["tests/test_one.py"]
    assert recording() == ["tests/test_two.py"]


@pytest.mark.parametrize(
    ("changed", "anew"),
    [
        ("grader/cli.py", ["tests/test_one.py"]),
        ("grader/files.py", []),
        ("tests/test_two.py", ["tests/test_two.py"]),
        ("tests/test_three.py", ["tests/test_three.py"]),
        ("tox.ini", ["tests/test_one.py", "tests/test_two.py"]),
    ],
)
def test_only_files_that_read_what_changed_are_recorded_anew(recording, changed, anew):
    recording()
    before = read_record(recording.path)
    write(recording.path, changed, "changed = True")
    commit_all(recording.path)
    assert recording() == anew
    after = read_record(recording.path)
    assert {path for path in after if path not in before or after[path].commit != before[path].commit} == set(anew)


def test_a_file_that_is_gone_leaves_the_record(recording):
    recording()
    (recording.path / "tests/test_two.py").unlink()
    commit_all(recording.path)
    recording()
    assert list(read_record(recording.path)) == ["tests/test_one.py"]


def test_a_record_is_read_as_it_was_written(tmp_path):
    (tmp_path / "tests").mkdir()
    code = [f"grader/{letter}.py" for letter in "abcdefg"]
    files = {
        "tests/test_one.py": FileReads("1" * 40, frozenset(code), {"test_a": frozenset({"course.md", "03_softmax"})}),
        "tests/test_two.py": FileReads("2" * 40, frozenset(code[1:3] + code[5:6]), {"test_b": frozenset()}),
        "tests/test_none.py": FileReads("2" * 40, frozenset(), {}),
    }
    write_record(tmp_path, files)
    assert read_record(tmp_path) == files
    assert json.loads((tmp_path / reads.FILE).read_text())["files"]["tests/test_two.py"] == {
        "commit": "2" * 40,
        "code": "1-2 5",
        "reads": {"": ["test_b"]},
    }
