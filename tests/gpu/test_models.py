"""Which GPU kernels are compiled for."""

from __future__ import annotations

import pytest

from grader.gpu.models import MODELS, driver_here, gpu_here, target_here


@pytest.mark.parametrize(
    "said, target",
    [
        ("8.0\n", "sm_80"),
        ("9.0\n9.0\n", "sm_90"),
        ("10.0\n", "sm_100"),
        ("7.5\n", "sm_75"),
        ("6.1\n", "sm_90"),
        ("", "sm_90"),
    ],
)
def test_the_target_is_that_of_the_gpu_here(tmp_path, monkeypatch, said, target):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\ncat <<'END'\n" + said + "END\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert target_here() == target


def test_what_a_failing_tool_prints_is_no_gpu(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho No devices were found\nexit 6\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert gpu_here() == driver_here() == ""


def test_without_a_gpu_there_is_a_default(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert target_here() == "sm_90"


def test_models_are_named_by_their_architecture():
    assert all(model.target == name for name, model in MODELS.items())
