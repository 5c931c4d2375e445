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
        ("matmul", "fp32", "M,K K,N; M=1..150 K=1..150 N=1..150", "M=4096 K=4096 N=4096", "matmul", 0.01),
    ],
)
def test_a_right_kernel_is_timed_beside_what_it_is_compared_with(name, dtype, shapes, sizes, anchor, least):
    found = judge(KERNELS / f"{name}.py", KERNELS / f"{name}_ref.py", shapes=shapes, dtypes=[dtype], time=sizes, seed=3)
    assert found.outcome == RIGHT, found.sentences
    speed = found.speed
    assert speed.get("gpu") == HERE.name and set(speed["shares"]) >= {anchor, "torch"}, speed
    assert "torch.compile" in {*speed["shares"], *speed["left_out"]}
    assert least < speed["shares"][anchor] < 1.3 and all(share > 0 for share in speed["shares"].values()), speed


def test_a_product_in_tf32_at_the_timed_size_alone_is_not_timed(tmp_path):
    """No call that the interpreter gets through shows it: the file chooses by the size."""
    text = (KERNELS / "matmul.py").read_text()
    for old, new in (
        ('input_precision="ieee"', "input_precision=PRECISION"),
        ("GROUP_M: tl.constexpr,\n", "GROUP_M: tl.constexpr, PRECISION: tl.constexpr,\n"),
        ("GROUP_M=4,\n", 'GROUP_M=4, PRECISION="tf32" if K > 1000 else "ieee",\n'),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "matmul.py").write_text(text)
    found = judge(tmp_path / "matmul.py", KERNELS / "matmul_ref.py", time="M=512 K=4096 N=512", seed=3)
    assert found.outcome == RIGHT, found.sentences
    assert "times what rounding may do" in found.speed["why"] and "cuts fp32 to tf32" in found.speed["why"], found.speed
    assert "ieee" in found.speed["next"]
