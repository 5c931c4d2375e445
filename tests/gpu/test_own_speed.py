"""On a GPU: one's own kernel beside torch, torch.compile, and the copy or cuBLAS that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.gpu.device import Device, device_here
from grader.own.judgement import RIGHT, judge

KERNELS = Path(__file__).parents[1] / "own" / "kernels"
HERE = device_here()
pytestmark = pytest.mark.skipif(not isinstance(HERE, Device), reason=f"needs a GPU: {HERE}")


@pytest.mark.parametrize(
    ("name", "dtype", "shapes", "sizes", "anchor", "least"),
    [
        ("vector_add", "fp32", "N N; N=1..3000", "N=100000000", "copy", 0.7),
        ("softmax", "fp32", "M,N; M=1..40 N=1..1000", "M=60000 N=1000", "copy", 0.3),
        ("matmul", "fp16", "M,K K,N; M=1..150 K=1..150 N=1..150", "M=4096 K=4096 N=4096", "matmul", 0.01),
    ],
)
def test_a_right_kernel_is_timed_beside_what_it_is_compared_with(name, dtype, shapes, sizes, anchor, least):
    found = judge(KERNELS / f"{name}.py", KERNELS / f"{name}_ref.py", shapes=shapes, dtypes=[dtype], time=sizes, seed=3)
    assert found.outcome == RIGHT, found.sentences
    speed = found.speed
    assert speed.get("gpu") == HERE.name and set(speed["shares"]) >= {anchor, "torch"}, speed
    assert "torch.compile" in {*speed["shares"], *speed["left_out"]}
    assert least < speed["shares"][anchor] < 1.3 and all(share > 0 for share in speed["shares"].values()), speed
