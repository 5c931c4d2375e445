"""Which GPUs a machine has, as nvidia-smi tells and CUDA_VISIBLE_DEVICES allows."""

from __future__ import annotations

import os

import pytest

from grader.classroom.cluster import gpus

SMI = """#!/bin/sh
case "$1" in
  *uuid,index) printf 'GPU-aaa1, 0\\nGPU-bbb2, 1\\n' ;;
  *utilization.gpu) printf '97\\n[N/A]\\n' ;;
esac
"""


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    (tmp_path / "nvidia-smi").write_text(SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    "visible, found",
    [(None, ["GPU-aaa1", "GPU-bbb2"]), ("1", ["GPU-bbb2"]), ("1,0", ["GPU-bbb2", "GPU-aaa1"]), ("", []),
     ("GPU-aaa", ["GPU-aaa1"]), ("7", [])],
)  # fmt: skip
def test_the_gpus_that_may_be_used(two_gpus, monkeypatch, visible, found):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus.identifiers() == found


def test_how_busy_they_are_as_far_as_it_is_told(two_gpus):
    assert gpus.busy() == [97]


def test_a_machine_without_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.identifiers() == gpus.busy() == []
