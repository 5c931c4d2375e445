"""On a GPU: two results, an updated argument and scratch: checked, drawn, timed, plotted; each fault has its name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from grader.course.folder import Folder
from grader.gpu.device import Device, device_here
from grader.progress import kept_curves
from tests.any_exercise.conftest import FOLDER
from tests.conftest import ROOT
from tests.learn.conftest import COURSE, Course

HERE = device_here()
pytestmark = pytest.mark.skipif(not isinstance(HERE, Device), reason=f"needs a GPU: {HERE}")

LARGE = "K == 1000003"  # a size that is judged in full on a GPU alone
FAULTS = {
    "z": ("z_ptr + picks, z,", f"z_ptr + picks, tl.where({LARGE}, z + 1.0, z),"),
    "state": ("state + peaks,", f"state + tl.where({LARGE}, 2 * peaks, peaks),"),
    "counts": ("tl.store(counts_ptr + pid, tl.sum(tl.sum(count, 1), 0))",
               "tl.store(counts_ptr + pid, tl.sum(tl.sum(count, 1), 0) + (pid == 500).to(tl.int32))"),
}  # fmt: skip


@pytest.fixture
def course(tmp_path) -> Course:
    """A course of this one exercise."""
    made = Course(tmp_path, made=True)
    for name in ("exercises", "solutions", "hints"):
        shutil.copytree(FOLDER.path.parents[1] / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return made


def graded(course: Course, text: str, *options: str) -> dict:
    path, result = course.path / "pick_peaks.py", course.path / "result.json"
    path.write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "exercises/90_pick_peaks",
        "--submission",
        str(path),
        "--result",
        str(result),
    ]
    done = subprocess.run([*command, "--device", "cuda", *options], cwd=course.path, capture_output=True, text=True)
    assert result.exists(), done.stdout + done.stderr
    return json.loads(result.read_text())


def test_the_solution_is_right_and_fast(course):
    found = graded(course, FOLDER.solution_file.read_text())
    assert found["outcome"] == "pass", found["message"]
    assert all(test["outcome"] == "pass" for test in found["tests"])
    print({name: figure for name, figure in found["figures"].items() if isinstance(figure, int | float | str)})


@pytest.mark.parametrize("name", FAULTS)
def test_the_result_that_is_wrong_is_named(course, name):
    right, wrong = FAULTS[name]
    text = FOLDER.solution_file.read_text()
    assert right in text
    found = graded(course, text.replace(right, wrong), "-k", "only_a_gpu")
    assert (
        found["outcome"] == "fail"
        and f"elements of {name} are wrong on the GPU" in found["message"]
        or (f"1 of 512 elements of {name}" in found["message"])
    ), found["message"]


def test_it_is_plotted(course):
    shutil.copy(FOLDER.solution_file, course.path / "exercises" / "90_pick_peaks" / "pick_peaks.py")
    done = subprocess.run(
        [COURSE, "plot", "90"], cwd=course.path, env=course.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    curves = kept_curves.kept(Folder(course.path / "exercises" / "90_pick_peaks"))
    assert None not in curves.rates["yours"]
    assert (course.path / "throughput_90_pick_peaks.png").exists()
