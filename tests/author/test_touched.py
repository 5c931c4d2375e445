"""`course check --changed REF`: what has changed since a revision of git, and which exercises that touches."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.author.touched import touched_since
from grader.course.folder import all_folders
from tests.learn.conftest import ROOT, Course

PERSON = ("-c", "user.name=A", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
FIGURES = "tests/gates/figures.json"
GEMMS = ["05_grouped_matmul", "19_matmul_epilogue", "23_descriptor_matmul", "22_persistent_matmul"]
ATTENTION = ["25_flash_attention", "26_causal_attention", "27_flash_backward", "28_paged_decoding"]


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *PERSON, *arguments], check=True, capture_output=True)


@pytest.fixture
def course(tmp_path) -> Course:
    """A checkout with one commit, tagged `before`; the course is the whole of it."""
    course = Course(tmp_path)
    write(tmp_path, FIGURES, json.dumps({"01_masked_add::test_a": {"gate": 0.7}, "03_softmax::test_b": {"gate": 0.6}}))
    write(tmp_path, ".gitignore", "*.kept1\n")
    commit_all(tmp_path, "init")
    git(tmp_path, "tag", "before")
    return course


def write(root: Path, name: str, text: str = "another text") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def commit_all(root: Path, *first: str) -> None:
    for command in ([*first, "-q"] if first else None, ["add", "-A"], ["commit", "-qm", "a change"]):
        if command:
            git(root, *command)


def ids(root: Path, revision: str = "before") -> list[str]:
    return [folder.id for folder in touched_since(root, revision)[0]]


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("exercises/03_softmax/README.md", ["03_softmax"]),
        ("solutions/03_softmax/softmax.py", ["03_softmax"]),
        ("hints/03_softmax.md", ["03_softmax"]),
        ("tests/mutants/03_softmax.toml", ["03_softmax"]),
        ("tests/mutants/03_softmax/built.py", ["03_softmax"]),
        ("tests/accepted/03_softmax/odd.py", ["03_softmax"]),
        ("tests/cheats/03_softmax/sly.py", ["03_softmax"]),
        ("tests/gates/03_softmax/softmax.py", ["03_softmax"]),
        ("solutions/99_gone/gone.py", []),
        ("exercises/README.md", []),
        ("tests/test_mutants.py", []),
        ("docs/grader/page.md", []),
        ("course.md", []),
        ("grader/judge/judge.py", None),
        ("grader/author/direct_run.py", None),
        ("grader/operations/bounds.py", None),
        ("grader/operations/rms_norm.py", ["10_rms_norm"]),
        ("grader/operations/mistakes/turns.py", None),
        ("grader/show/terminal.py", []),
        ("grader/cli.py", []),
        ("grader/session/judging_process.py", []),
        ("grader/session/session.py", None),
        ("grader/author/author_commands.py", []),
        ("pyproject.toml", None),
        ("constraints.txt", None),
    ],
)
def test_a_change_touches_an_exercise_or_all_or_none(course, changed, touched):
    write(course.path, changed)
    every = [folder.id for folder in all_folders(course.path)]
    assert ids(course.path) == (every if touched is None else touched)
    commit_all(course.path)
    assert ids(course.path) == (every if touched is None else touched) and ids(course.path, "HEAD") == []


def test_an_operation_touches_the_exercises_of_those_that_build_on_it(course):
    """19 and 25 state operations of their own, which read products as that of the others does; 26-28 build on 25."""
    shutil.copytree(ROOT / "grader" / "operations", course.path / "grader" / "operations")
    commit_all(course.path)
    write(course.path, "grader/operations/gemm.py")
    assert ids(course.path, "HEAD") == [*GEMMS, *ATTENTION]


def test_what_git_ignores_does_not_count(course):
    write(course.path, "exercises/03_softmax/softmax.py.kept1")
    assert ids(course.path) == []


def test_what_is_staged_deleted_or_renamed_counts(course):
    write(course.path, "hints/01_masked_add.md")
    git(course.path, "add", "-A")
    (course.path / "hints" / "02_strided_blocks.md").unlink()
    git(course.path, "mv", "hints/04_transpose.md", "elsewhere.md")
    assert ids(course.path) == ["01_masked_add", "02_strided_blocks", "04_transpose"]


def test_figures_of_gates_touch_the_exercise_whose_figures_they_are(course):
    figures = json.loads((course.path / FIGURES).read_text())
    write(course.path, FIGURES, json.dumps(figures, indent=2))
    assert ids(course.path) == []
    figures["03_softmax::test_b"]["gate"] = 0.65
    write(course.path, FIGURES, json.dumps(figures))
    assert ids(course.path) == ["03_softmax"]
    (course.path / FIGURES).unlink()
    assert ids(course.path) == ["01_masked_add", "03_softmax"]


def test_a_course_that_is_a_part_of_a_checkout(tmp_path):
    (tmp_path / "course").mkdir()
    course = Course(tmp_path / "course")
    commit_all(tmp_path, "init")
    write(tmp_path, "exercises/01_masked_add/README.md")
    write(course.path, "exercises/03_softmax/README.md")
    assert ids(course.path, "HEAD") == ["03_softmax"]


def test_one_line_says_which_and_why(course):
    write(course.path, "hints/01_masked_add.md")
    write(course.path, "exercises/03_softmax/README.md")
    write(course.path, "solutions/03_softmax/softmax.py")
    assert touched_since(course.path, "before")[1] == (
        "Proves 01_masked_add (hints/01_masked_add.md), 03_softmax (exercises/03_softmax/README.md and 1 more): "
        "changed since before."
    )
    write(course.path, "grader/sentences.py")
    assert touched_since(course.path, "before")[1] == (
        f"Proves all {len(all_folders(course.path))} exercises: grader/sentences.py changed since before."
    )


def test_where_nothing_is_touched_nothing_is_proven(course):
    done = course.here("check", "--changed", "before")
    assert done.status == 0 and done.lines == [
        "Proves no exercise: nothing that has changed since before touches one.", "No complaints."
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--changed", "nope"), "git knows no revision 'nope' in "),
        (("--changed=--output=mine",), "git knows no revision '--output=mine' in "),
        (("--changed", ""), "git knows no revision '' in "),
        (("--changed", "before", "03"), "--changed chooses the exercises itself: name none with it."),
    ],
)
def test_what_is_no_revision_is_told(course, arguments, sentence):
    done = course.here("check", *arguments)
    assert done.status == 2 and done.out == "" and done.err.splitlines()[-1].startswith(f"Error: {sentence}")


def test_where_there_is_no_checkout_it_is_told(tmp_path):
    done = Course(tmp_path).here("check", "--changed", "HEAD")
    assert done.status == 2 and f"{tmp_path} is no checkout of git" in done.err


def test_where_there_is_no_git_it_is_told(course, monkeypatch):
    monkeypatch.setenv("PATH", "")
    done = course.here("check", "--changed", "HEAD")
    assert done.status == 2 and "git is not installed here" in done.err
