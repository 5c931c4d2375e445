"""On a GPU: gates that are measured here are what `pytest exercises/NN` asks for."""

from __future__ import annotations

import json

import pytest

from grader.gpu.device import Device, device_here
from tests.conftest import ROOT
from tests.learn.conftest import Course
from tests.typed_commands import run_course

HERE = device_here()
pytestmark = pytest.mark.skipif(not isinstance(HERE, Device), reason=f"needs a GPU: {HERE}")
ID = "04_transpose"


@pytest.fixture
def course(tmp_path) -> Course:
    """A learner's own folder."""
    done = run_course("init", str(tmp_path / "course"), cwd=tmp_path)
    assert done.status == 0, done.err
    return Course(tmp_path / "course", made=True)


def test_a_measured_gate_keeps_out_what_is_too_slow_here(course):
    done = course.course("doctor", "--calibrate", "04")
    print(done.out, done.err)
    assert done.status == 0 and f".course/calibration.json has 1 gates of {HERE.name}" in done.out
    assert "1 measured on this GPU" in course.course("doctor").out

    course.write(ID)
    right = course.pytest(f"exercises/{ID}", "-k", "it_reaches_the_gate")
    print(right.out)
    assert right.status == 0
    course.file(ID).write_text((ROOT / "solutions" / ID / "unwanted.py").read_text())
    slow = course.pytest(f"exercises/{ID}", "-k", "it_reaches_the_gate")
    print(slow.out)
    assert slow.status == 1 and "needed" in slow.out


def test_a_calibration_of_another_card_is_not_used(course):
    course.course("doctor", "--calibrate", "04")
    file = course.path / ".course/calibration.json"
    file.write_text(file.read_text().replace(json.dumps(HERE.name), '"NVIDIA T4"'))
    assert "is of NVIDIA T4 and not used here. Next: course doctor --calibrate" in course.course("doctor").out
