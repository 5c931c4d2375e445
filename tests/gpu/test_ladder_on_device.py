"""On a GPU: course ladder, measured for once. What it makes of samples is tested without one."""

from __future__ import annotations

import json
import re

import pytest

from grader.gpu.device import Device, device_here
from tests.learn.conftest import Course

HERE = device_here()
pytestmark = pytest.mark.skipif(not isinstance(HERE, Device), reason=f"needs a GPU: {HERE}")


def test_the_way_up_is_measured_and_a_rung_that_is_missing_says_so(tmp_path):
    course = Course(tmp_path)
    course.write("04_transpose")
    (tmp_path / "solutions/04_transpose/unwanted.py").unlink()  # the rung "a few rows"
    done = course.course("ladder", "04", "--keep", "--svg", "a.svg")
    assert done.status == 0, done.out + done.err
    figures = json.loads((tmp_path / "solutions/04_transpose/ladder.json").read_text())
    rungs = figures["rungs"]
    assert figures["gpu"] == HERE.name and "cannot be run" in rungs["a few rows"]["why"]
    assert rungs["one element per program"]["share"] < rungs["small squares"]["share"] < rungs["the solution"]["share"]
    assert 0.5 < rungs["the solution"]["share"] < 1.3
    assert re.search(r"^ *yours +\d", done.out, re.MULTILINE) and (tmp_path / "a.svg").exists()


def test_a_kernel_that_takes_a_second_is_measured_within_its_budget(tmp_path):
    course = Course(tmp_path)
    path = tmp_path / "solutions/05_grouped_matmul/ladder.toml"
    path.write_text(path.read_text().partition("[tiles_with_multiply_adds]")[0])
    done = course.course("ladder", "05", "--keep")
    assert done.status == 0, done.out + done.err
    (naive,) = json.loads(path.with_suffix(".json").read_text())["rungs"].values()
    assert naive["why"] == "" and 0 < naive["share"] < 0.01
