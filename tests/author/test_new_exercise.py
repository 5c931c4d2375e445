"""`course new`: an exercise that works at once, in a course that lies anywhere; and what is no name for one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course.folder import Folder, all_folders
from tests.conftest import folders_with_kernels
from tests.learn.conftest import Course

ID = "37_bias_residual"


@pytest.fixture
def course(tmp_path) -> Course:
    """A copy of the course without its tests/, outside the checkout."""
    return Course(tmp_path)


def everything(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in root.rglob("*")}


def headings(folder: Folder) -> list[str]:
    return re.findall(r"^## .*", (folder.path / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_a_new_exercise_works_and_check_says_only_what_it_still_lacks(course, proven_here):
    done = course.here("new", ID)
    assert done.status == 0 and all((course.path / line).is_file() for line in done.lines[:-1])
    assert done.lines[-1].endswith("course stub 37 and course check 37")
    assert course.here("stub", "37").lines == [f"{course.file(ID)}: in step"]
    done = course.here("check", ID, "--jobs", "1")
    assert done.status == 1 and done.lines == [
        f"{ID}: stub not attempted 1 of 1, solution passes 1 of 1, accepted 1 of 1, mutants rejected with their "
        "sentence 9 of 9, cheats 0 of 0; 6 complaints",
        f"  solutions/{ID}/accepted has 1 kernel; 4 are the least",
        f"  solutions/{ID}/mistakes.toml has 1 kernel; 10 are the least",
        f"  exercises/{ID}/README.md has 699 words; 700 are the least",
        f"  exercises/{ID}/README.md links to programs.svg, which is not there",
        f"  course.md has no row of {ID}: the path through the course leaves it out",
        "  test_it_reaches_the_gate has no measured gate: course gate 37 on a GPU, or take this test out",
        "6 complaints.",
    ]


def test_the_lessons_have_its_headings_in_their_order_and_some_of_their_own(course):
    course.here("new", ID)
    (new,) = (folder for folder in all_folders(course.path) if folder.id == ID)
    for folder in folders_with_kernels():
        assert [one for one in headings(folder) if one in headings(new)] == headings(new), folder.id


def test_its_files_have_the_form_that_ruff_gives(course):
    made = course.here("new", ID).lines[:-1]
    files = [line for line in made if line.endswith(".py")]
    command = [sys.executable, "-m", "ruff", "format", "--check", "--no-cache", *files]
    done = subprocess.run(command, cwd=course.path, capture_output=True, text=True)
    assert len(files) == 5 and done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("03_softmax", "03_softmax is there already: nothing was written."),
        ("03_other", "The number 03 is that of 03_softmax: choose another."),
        ("37_softmax", "The name softmax is that of 03_softmax: choose another."),
        ("37", "'37' is no name of an exercise: two digits and a name were expected, as 37_bias_residual."),
        ("7_bias", "'7_bias' is no name of an exercise"),
        ("37_Bias", "'37_Bias' is no name of an exercise"),
        ("37_2d", "'37_2d' is no name of an exercise"),
        ("37_a/b", "'37_a/b' is no name of an exercise"),
        ("../37_bias", "'../37_bias' is no name of an exercise"),
        ("37_lambda", "'lambda' cannot be the name of the function that a learner writes: choose another."),
        ("37_torch", "'torch' cannot be the name of the function"),
    ],
)
def test_what_is_no_name_for_it_is_told_and_nothing_is_written(course, name, sentence):
    before = everything(course.path)
    done = course.here("new", name)
    assert done.status == 2 and done.out == "" and done.err.splitlines()[-1].startswith(f"Error: {sentence}")
    assert everything(course.path) == before


def test_what_an_exercise_of_this_name_left_behind_is_kept(course):
    (course.path / "hints" / f"{ID}.md").write_text("mine")
    before = everything(course.path)
    done = course.here("new", ID)
    assert done.status == 2 and f"hints/{ID}.md is there already: nothing was written." in done.err
    assert everything(course.path) == before


def test_what_cannot_be_written_whole_is_taken_back(course):
    shutil.rmtree(course.path / "hints")
    (course.path / "hints").write_text("a file where a folder has to be")
    before = everything(course.path)
    done = course.here("new", ID)
    assert done.status != 0 and "Nothing was written." in done.err
    assert everything(course.path) == before


def test_outside_of_a_course_it_is_refused(course, tmp_path_factory):
    elsewhere = Course(tmp_path_factory.mktemp("elsewhere"), made=True)
    done = elsewhere.here("new", ID)
    assert done.status == 2 and "There is no course here. Next: cd into the folder that holds it" in done.err
    assert list(elsewhere.path.iterdir()) == []


# What a teacher changes in the files of the new exercise: x is held between two numbers, both of which may be negative.
OF_TWO_NUMBERS = {
    "solutions/{id}/{name}.py": (
        (r"x_ptr, s_ptr, z_ptr, N,", "x_ptr, z_ptr, N, low, high,"),
        (r"    s = tl.load.*\n", "    x = tl.where(x < low, low, x)\n"),
        (r"x \* s, mask", "tl.where(x > high, high, x), mask"),
        (r"\(x, s\):", "(x, low, high):"),
        (r"x, s: \[N\]", "x: [N]"),
        (r"\(x, s, z, N,", "(x, z, N, low, high,"),
        (r"z = x \* s", "z = x between low and high"),
    ),
    "exercises/{id}/test_{name}.py": (
        (r"normal\((.*?)\), normal\(\1\)", r"normal(\1), -1.5, -0.5"),
        (r"lambda x, s: x \* s", "lambda x, low, high: x.clamp(low, high)"),
        (r"x\[n\], s\[n\]", "x[n]"),
        (r"    +s=contiguous.*\n", "        low=between(-3.0, -1.5),\n        high=between(-1.0, 2.0),\n"),
        (r"Exercise, contiguous", "Exercise, between, contiguous"),
        (r"(?s)\n\ndef test_it_reaches_the_gate.*", ""),
    ),
    "exercises/{id}/questions.toml": (
        (r's = "\d+"', "low = -1.5, high = -0.5"), (r"6000", "4000"), (r"read from s and", "and"),
    ),
}  # fmt: skip


def test_an_exercise_of_two_negative_numbers_works_as_well(course, proven_here):
    id, name = "38_limits", "limits"
    course.here("new", id)
    for file, changes in OF_TWO_NUMBERS.items():
        path = course.path / file.format(id=id, name=name)
        text = path.read_text(encoding="utf-8")
        for old, new in changes:
            text, found = re.subn(old, new, text)
            assert found, old
        path.write_text(text, encoding="utf-8")
    for path in (course.path / f"solutions/{id}/accepted").iterdir():
        path.unlink()
    assert course.here("stub", "38").status == 0
    done = course.here("check", id, "--jobs", "1")
    assert done.lines[0].startswith(
        f"{id}: stub not attempted 1 of 1, solution passes 1 of 1, accepted 0 of 0, mutants rejected with their "
        "sentence 9 of 9"
    )
    lacks = (f"solutions/{id}/accepted", f"solutions/{id}/mistakes.toml", f"exercises/{id}/README.md", "course.md")
    assert all(line.startswith(tuple(f"  {each} " for each in lacks)) for line in done.lines[1:-1]), done.out
