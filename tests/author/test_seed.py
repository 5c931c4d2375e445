"""`course check --seed`: the data of all runs are those of one number, which the committed files may give."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.author import record
from grader.author.author_commands import _seed
from grader.author.seed import NoSeed, seed_of, seed_of_tree
from tests.author.test_touched import commit_all, git, write
from tests.learn.conftest import Course

ID = "37_bias_residual"
MISNAMED = """
[mask_less_or_equal]
wrong = "the mask is offsets <= N: one lane past the end takes part."
finding = "oob-store"
sentence = "a sentence that nobody is told"
changes = [["offsets < N", "offsets <= N"]]
"""


@pytest.fixture
def checkout(tmp_path) -> Path:
    write(tmp_path, "lesson.md")
    commit_all(tmp_path, "init")
    return tmp_path


def test_all_runs_have_the_seed_that_was_given(tmp_path, proven_here):
    course = Course(tmp_path)
    course.here("new", ID)
    write(tmp_path, f"tests/mutants/{ID}.toml", MISNAMED)
    done = course.here("check", ID, "--seed", "7", "--jobs", "1")
    assert done.status == 1 and "again with --seed 7)" in done.out


def test_the_seed_of_the_record_is_taken_where_it_holds_and_else_that_of_the_committed_files(
    tmp_path, monkeypatch, capsys
):
    Course(tmp_path)
    (tmp_path / "tests").mkdir(exist_ok=True)
    commit_all(tmp_path, "init")
    monkeypatch.chdir(tmp_path)
    assert _seed("recorded", to_compare=False) == seed_of_tree(tmp_path)[0]
    assert capsys.readouterr().out == f"{seed_of_tree(tmp_path)[1]}\n"
    record.write(tmp_path, 7)
    assert _seed("recorded", to_compare=False) == 7 and capsys.readouterr().out == ""


def test_what_is_no_seed_is_told_before_anything_is_proven(tmp_path):
    done = Course(tmp_path).here("check", "01", "--seed", "x")
    assert done.status == 2 and done.out == "" and "--seed x: a whole number from 0" in done.err


def test_the_same_committed_files_give_the_same_seed_and_others_another(checkout):
    seed, told = seed_of_tree(checkout)
    assert told == f"Seed {seed}, from the committed files." and seed_of(str(seed)) == seed
    git(checkout, "commit", "-qm", "no change", "--allow-empty")
    assert seed_of_tree(checkout) == (seed, told)
    write(checkout, "lesson.md", "one more word")
    assert seed_of_tree(checkout) == (seed, told)
    commit_all(checkout)
    assert seed_of_tree(checkout)[0] != seed


def test_where_git_knows_no_files_a_seed_is_drawn_and_told(tmp_path):
    (seed, told), (other, _) = seed_of_tree(tmp_path), seed_of_tree(tmp_path)
    assert seed != other and told.startswith(f"Seed {seed}, drawn: git rev-parse fails in {tmp_path}")


@pytest.mark.parametrize("text", ["-1", "1.5", "", str(1 << 63), "²", "Tree"])
def test_another_word_is_no_seed(text):
    with pytest.raises(NoSeed, match="a whole number from 0"):
        seed_of(text)
