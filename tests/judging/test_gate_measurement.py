"""Measuring a gate where it cannot be measured: it says so before a GPU is asked."""

from __future__ import annotations

import shutil
from unittest import mock

import pytest

from grader.course.folder import Folder
from grader.gpu.device import Device
from grader.gpu.models import DEFAULT_MODEL
from grader.judging.gate_measurement import NotMeasured, measure
from tests.conftest import ROOT

ID = "01_masked_add"


@pytest.fixture
def folder(tmp_path) -> Folder:
    """An exercise in a course that holds no tests of its own."""
    for name in ("exercises", "solutions"):
        shutil.copytree(ROOT / name / ID, tmp_path / name / ID)
    return Folder(tmp_path / "exercises" / ID)


def not_measured(folder: Folder) -> str:
    nobody = mock.Mock(spec=[])  # asking anything of it fails
    with pytest.raises(NotMeasured) as why:
        measure(folder, Device("GPU-aaa1", DEFAULT_MODEL), nobody, print)
    return str(why.value)


def test_a_solution_that_launches_nothing_is_named(folder):
    folder.solution_file.write_text("import torch\n\n\ndef masked_add(x, y):\n    return torch.empty_like(x)\n")
    assert not_measured(folder) == f"{folder.solution_file} launches no kernel here"


def test_a_solution_that_computes_on_the_host_is_told_as_a_learner_is(folder):
    folder.solution_file.write_text("def masked_add(x, y):\n    return x + y\n")
    assert not_measured(folder).startswith(f"{folder.solution_file}: ") and "line 2" in not_measured(folder)


def test_a_missing_file_is_named(folder):
    folder.solution_file.unlink()
    assert not_measured(folder).startswith(f"{folder.solution_file} is missing: a gate lies between")
