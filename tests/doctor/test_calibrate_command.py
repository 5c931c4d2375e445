"""`course doctor --calibrate` where it has nothing to measure on, or is not asked for."""

from __future__ import annotations

import pytest

from grader.gpu import device
from tests.conftest import ROOT
from tests.typed_commands import run_course


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(device, "_told", device.NO_GPU)


def test_without_a_gpu_it_says_so():
    done = run_course("doctor", "--calibrate", "03", cwd=ROOT)
    assert done.status == 1 and done.err == "Error: Gates are measured on a GPU: no GPU.\n"


def test_an_exercise_that_is_not_there_is_told():
    done = run_course("doctor", "--calibrate", "99", cwd=ROOT)
    assert done.status == 1 and "No exercise is called '99'" in done.err


def test_exercises_are_named_for_calibration_alone():
    done = run_course("doctor", "03", cwd=ROOT)
    assert done.status == 2 and "course doctor --calibrate 03" in done.err
