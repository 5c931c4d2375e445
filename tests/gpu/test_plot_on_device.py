"""On a GPU: course plot and course doctor, measured for once. What they make of samples is tested without one."""

from __future__ import annotations

import re
import subprocess

import pytest

from grader.course.folder import Folder
from grader.gpu.device import Device, device_here
from grader.progress import kept_curves
from tests.learn.conftest import COURSE, Course
from tests.waiting import NEVER

HERE = device_here()
pytestmark = pytest.mark.skipif(not isinstance(HERE, Device), reason=f"needs a GPU: {HERE}")


def run(course: Course, *arguments: str) -> subprocess.CompletedProcess:
    done = subprocess.run([COURSE, *arguments], cwd=course.path, env=course.environment(), capture_output=True,
                          text=True, timeout=NEVER)  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("id", ["04_transpose", "05_grouped_matmul"])
def test_the_solution_comes_near_the_ceiling_at_the_largest_size(tmp_path, id):
    course = Course(tmp_path)
    course.write(id)
    done = run(course, "plot", id)
    assert done.returncode == 0, done.stdout + done.stderr
    curves = kept_curves.kept(Folder(course.path / "exercises" / id))
    last = len(curves.sizes) - 1
    assert curves.gpu == HERE.name and 0.5 < curves.share("yours", last) < 1.3
    assert None not in curves.rates["yours"] and curves.rates["yours"][0] < curves.rates["yours"][last]
    assert curves.rates["yours"][last] == pytest.approx(curves.rates["solution"][last], rel=0.1)
    assert (course.path / f"throughput_{id}.png").exists()


def test_a_kernel_that_is_wrong_at_one_size_is_not_plotted(tmp_path):
    course = Course(tmp_path)
    course.write("01_masked_add", "x + y, mask", "tl.where(N > 100000, x - y, x + y), mask")
    done = run(course, "plot", "01")
    assert done.returncode == 1 and "Only a right kernel is plotted." in done.stderr
    assert "At n = 131 072 an output of a timed call is wrong" in done.stderr


def test_doctor_knows_the_ceilings(tmp_path):
    done = run(Course(tmp_path), "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^copy +[\d ]+ GB/s", done.stdout, re.MULTILINE)
    assert re.search(r"^fp16 matmul +\d+ TFLOP/s", done.stdout, re.MULTILINE)
    assert re.search(r"^A/A copy +[\d.]+ % between \d processes", done.stdout, re.MULTILINE)
    assert re.search(r"^speed +.*verdicts can", done.stdout, re.MULTILINE)
