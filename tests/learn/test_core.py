"""Core and full: what passes the core, and what a learner is told and allowed after it."""

from __future__ import annotations

import json
import shutil

import pytest

from grader.course.folder import Folder, all_folders, load_test_file
from grader.judging.uses import CheckUse, TrafficUse, Use, uses_asked
from tests.conftest import ROOT, folders_with_kernels, mutant
from tests.learn.conftest import Course
from tests.typed_commands import Finished

FOLDERS = folders_with_kernels()
STRIDED = ("01_masked_add", "02_strided_blocks")  # the idea of 02 is strides


def core_tests(folder: Folder) -> set[str]:
    tests = vars(load_test_file(folder)).items()
    return {name for name, test in tests if any(mark.name == "core" for mark in getattr(test, "pytestmark", ()))}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.id)
def test_each_exercise_has_a_core_of_values_and_cost_in_contiguous_calls(folder):
    core = core_tests(folder)
    uses: list[Use] = [use for use in uses_asked(load_test_file(folder), CheckUse, TrafficUse) if use.test in core]
    assert {use.test for use in uses} == core and len(core) >= 4
    assert any(isinstance(use, TrafficUse) for use in uses)
    if folder.id not in STRIDED:
        assert not [use.test for use in uses for data in use.data if getattr(data, "layout", None) and data.layout.name]


def result_of(course, id: str, text: str, *options: str) -> dict:
    course.save(id, text)
    path = course.path / "result.json"
    assert course.pytest(f"exercises/{id}", "--result", str(path), *options).status == 1
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("03_softmax/always_fp32", True),  # the first dtype is right
        ("03_softmax/pad_zero", False),
        ("03_softmax/no_store_mask", False),
    ],
)
def test_the_core_is_passed_where_the_idea_is_right(course, name, passes):
    result = result_of(course, name.partition("/")[0], mutant(name))
    assert result["core"] == passes and result["outcome"] == "fail"


def test_a_part_of_the_tests_passes_no_core(course):
    assert not result_of(course, "03_softmax", mutant("03_softmax/both_strides_ignored"), "-k", "row or view")["core"]


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory) -> tuple[Course, Finished]:
    """(a course in which 01 and the core of 03 are passed, what was said of 03)."""
    course = Course(tmp_path_factory.mktemp("half done"))
    course.write("01_masked_add")
    course.pytest("exercises/01_masked_add")
    course.save("03_softmax", mutant("03_softmax/both_strides_ignored"))
    return course, course.pytest("exercises/03_softmax", "--result", str(course.path / "result.json"))


@pytest.fixture
def half_done(judged_once, tmp_path) -> Course:
    """A copy of that course."""
    shutil.copytree(judged_once[0].path, tmp_path / "half done")
    return Course(tmp_path / "half done", made=True)


def test_the_core_is_passed_where_contiguous_rows_are_right(judged_once):
    """Its traffic is judged, though values of full are wrong."""
    course, _ = judged_once
    result = json.loads((course.path / "result.json").read_text())
    assert result["core"] and result["outcome"] == "fail"


def test_the_report_says_what_is_left_and_that_one_may_go_on(judged_once):
    _, done = judged_once
    said = " ".join(done.out.split())
    tests = (ROOT / "exercises/03_softmax/test_softmax.py").read_text().count("@pytest.mark.core")
    assert f"The core is passed, its {tests} tests, in fp32: what is wrong belongs to full. You may go on, and " in said
    assert "come back later: course open 02" in said
    assert done.lines[-1].startswith("  Next: edit exercises/03_softmax/softmax.py")


def test_the_next_exercise_is_one_whose_core_is_open(half_done):
    done = half_done.here("status")
    assert "core passed" in done.out
    assert f"1 of {len(all_folders(ROOT))} passed, and the core of 1 more" in done.out
    assert done.lines[-1].startswith(
        "Next: 02_strided_blocks. Read it with: course open 02. To finish 03_softmax: pytest"
    )


def test_a_core_that_fails_again_is_the_work_at_hand(half_done):
    half_done.save("03_softmax", mutant("03_softmax/pad_zero"))
    half_done.pytest("exercises/03_softmax")
    done = half_done.here("status")
    assert "core passed, now failing" in done.out
    assert done.lines[-1] == "Next: edit exercises/03_softmax/softmax.py and run pytest exercises/03_softmax"


def test_the_solution_opens_with_core_alone(half_done):
    closed = half_done.here("solution", "03")
    assert closed.status == 1 and "its core is passed" in closed.err and "course solution 03 --core" in closed.err
    opened = half_done.here("solution", "03", "--core")
    assert opened.status == 0 and "tl.load" in opened.out
    assert "gave-up" not in (half_done.path / "progress.txt").read_text()


def test_without_its_core_the_solution_stays_closed(course):
    done = course.here("solution", "03", "--core")
    assert done.status == 1 and "its solution opens when it is passed" in done.err


def test_hints_stay_open(half_done):
    assert half_done.here("hint", "03").status == 0
