"""Which GPUs of a machine may be used, as CUDA_VISIBLE_DEVICES allows."""

from __future__ import annotations

import pytest

from grader.classroom.cluster import gpus
from grader.gpu.nvml import NvmlGpu


@pytest.mark.parametrize(
    "visible, found",
    [(None, ["GPU-aaa1", "GPU-bbb2"]), ("1", ["GPU-bbb2"]), ("1,0", ["GPU-bbb2", "GPU-aaa1"]), ("", []),
     ("GPU-aaa", ["GPU-aaa1"]), ("7", [])],
)  # fmt: skip
def test_the_gpus_that_may_be_used(monkeypatch, visible, found):
    here = [NvmlGpu(0, "GPU-aaa1", "NVIDIA T4", (7, 5)), NvmlGpu(1, "GPU-bbb2", "NVIDIA T4", (7, 5))]
    monkeypatch.setattr(gpus, "gpus", lambda: here)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus.identifiers() == found
