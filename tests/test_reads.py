"""`python -m tests.reads`: which parts of the course a test is said to read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from tests import reads
from tests.author.test_touched import commit_all, write
from tests.conftest import ROOT
from tests.reads import Watch, named_in, part_of, recorded

HINTS = "hints/03_softmax.md"


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


@pytest.mark.parametrize("test", ["test_it[03_softmax-fp16]", "test_it[fp16-03]", "test_it[03_softmax/pad_zero]"])
def test_the_parameters_of_a_test_name_an_exercise(test):
    assert named_in(test, "03_softmax")
    assert not named_in(test, "13_online_softmax") and not named_in(test.replace("[", "-"), "03_softmax")


def test_any_process_that_opens_a_file_is_seen():
    watch = Watch()
    for command in (["cat"], [sys.executable, "-I", "-c", "import sys; open(sys.argv[1])"]):
        subprocess.run([*command, ROOT / HINTS], check=True, stdout=subprocess.DEVNULL)
        assert watch.opened() == {"03_softmax"}
    assert watch.opened() == set()


def test_a_list_counts_only_where_files_come_and_go():
    watch = Watch()
    list((ROOT / "exercises").glob("*/*.py"))
    assert watch.opened() == set()
    list((ROOT / "tests/mutants/03_softmax").glob("*"))
    assert watch.opened() == {"03_softmax"}


def test_a_copy_is_watched_and_copying_is_no_reading(tmp_path):
    watch = Watch()
    (ROOT / "hints/01_masked_add.md").read_text()
    watch.copytree(shutil.copytree, ROOT / "exercises", tmp_path / "exercises")
    watch.copytree(shutil.copytree, tmp_path / "exercises", tmp_path / "again")
    assert watch.opened() == {"01_masked_add"}
    new = tmp_path / "again" / "03_softmax" / "new"
    new.mkdir()
    assert watch.opened() == set()
    (new / "file.py").write_text("")
    (tmp_path / "exercises" / "04_transpose" / "README.md").read_text()
    assert watch.opened() == {"03_softmax", "04_transpose"}


FILE = """\
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

def test_skipped():
    pytest.skip("needs a GPU")
"""


def test_reads_of_each_test_are_recorded(tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(FILE)
    assert recorded(ROOT, str(file)) == {
        "course.md {id}": ["test_own"],
        "01_masked_add 03_softmax course.md": ["test_both"],
        "04_transpose course.md": ["test_first", "test_second"],
        "course.md": ["test_nothing"],
        "*": ["test_skipped"],
    }


def test_a_file_that_fails_is_not_recorded(tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text("def test_it():\n    assert False\n")
    assert recorded(ROOT, str(file)) is None


def test_what_is_recorded_at_this_commit_is_not_recorded_again(tmp_path, monkeypatch):
    """The second file fails at first, as if the recording had been interrupted there."""
    write(tmp_path, "tests/test_one.py")
    write(tmp_path, "tests/test_two.py")
    commit_all(tmp_path, "init")
    asked: list[str] = []

    def recorded(checkout, test_file):
        assert (checkout / test_file).exists() and checkout != tmp_path
        asked.append(test_file)
        return {"03_softmax": ["test_it"]} if "one" in test_file or len(asked) > 2 else None

    monkeypatch.setattr(reads, "ROOT", tmp_path)
    monkeypatch.setattr(reads, "recorded", recorded)
    assert [reads.main([]), reads.main([])] == [0, 0]
    assert sorted(asked[:2]) == ["tests/test_one.py", "tests/test_two.py"] and asked[2:] == ["tests/test_two.py"]
    kept = json.loads((tmp_path / reads.FILE).read_text())["files"]
    assert kept == dict.fromkeys(["tests/test_one.py", "tests/test_two.py"], {"03_softmax": ["test_it"]})
