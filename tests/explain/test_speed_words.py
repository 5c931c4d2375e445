"""What a measured speed is told as, and what an answer of a replay process says. Without a GPU."""

from __future__ import annotations

import math
import subprocess

import pytest
import torch

from grader.explain import gpu_findings, speed
from grader.explain.speed import MeasuredSpeeds
from grader.explain.verdict import FAIL, PASS, SKIPPED
from grader.gpu import device
from grader.gpu.answers import ANCHOR, KERNEL, TORCH, Measurement, Overrun, Round, Summary
from grader.gpu.device import NO_GPU, Device, device_here
from grader.gpu.models import DEFAULT_MODEL
from grader.gpu.pool.replay_process import ReplayEnded

FAST = MeasuredSpeeds("copy", 0.80, 0.91, 3.921e12, 4.3e12, 2.6e12, samples=2)


def test_a_fast_kernel_is_told_its_rate_its_share_the_gate_and_torch():
    verdict = speed.fast_enough(FAST)
    assert verdict.outcome == PASS
    assert verdict.note == "3 921 GB/s, 91 % of what this GPU can copy; needed 80 %; torch 2 600 GB/s"
    assert verdict.figures["bytes_per_second"] == 3.921e12 and verdict.figures["share"] == 0.91


def test_a_pass_just_below_the_gate_says_so():
    assert "within the measuring grace" in speed.fast_enough(MeasuredSpeeds("copy", 0.8, 0.79, 3e12, 4e12)).note


def test_products_are_told_in_flops():
    note = speed.fast_enough(MeasuredSpeeds("matmul", 0.65, 0.951, 7.27e14, 7.64e14)).note
    assert note == "727 TFLOP/s, 95 % of cuBLAS; needed 65 %"


def test_noise_is_neither_pass_nor_fail():
    verdict = speed.too_noisy(MeasuredSpeeds("copy", 0.8, 0.78, 3e12, 4e12, spread=0.031))
    assert verdict.outcome == SKIPPED and verdict.id == "inconclusive" and "differs by 3.1 %" in verdict.note


def test_faster_than_the_datasheet_is_no_pass():
    h200 = Device("GPU-0", DEFAULT_MODEL)
    assert h200.is_impossible(bytes_per_second=5.2e12) and not h200.is_impossible(bytes_per_second=4.9e12)
    assert h200.is_impossible(flops=1.1e15) and not h200.is_impossible(flops=9e14)
    assert speed.impossible(FAST).outcome == SKIPPED


def _measurement(*ratios: float, invalid: int = 0) -> Measurement:
    rounds = [Round({KERNEL: 1.0, ANCHOR: ratio}) for ratio in ratios]
    return Measurement(rounds + [Round({KERNEL: 9.0, ANCHOR: 1.0}, "the host was late")] * invalid)


def test_a_share_is_the_median_of_the_valid_rounds():
    assert _measurement(0.8, 0.9, 0.85, 0.86, 0.1, invalid=2).share == 0.85


def test_too_few_valid_rounds_are_no_share():
    found = _measurement(0.8, 0.9, 0.85, 0.86, invalid=3)
    assert math.isnan(found.share) and found.why_invalid == "the host was late"
    assert math.isnan(found.seconds(TORCH)) and found.seconds(KERNEL) == 1.0


@pytest.mark.parametrize(
    "detail, sentence",
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS", "memory that belongs to no tensor"),
        ("CUDA error: an illegal memory access was encountered", "memory that belongs to no tensor"),
        ("CUDA_ERROR_MISALIGNED_ADDRESS", "no multiple of the bytes"),
        ("CUDA_ERROR_UNKNOWN", "The GPU stopped the kernel: CUDA_ERROR_UNKNOWN."),
    ],
)
def test_a_fault_of_the_gpu_is_a_sentence(detail, sentence):
    verdict = gpu_findings.fault(ReplayEnded("failed", detail))
    assert verdict.outcome == FAIL and sentence in verdict.lines[0]


def test_a_kernel_that_does_not_end_is_a_sentence():
    assert "does not end" in gpu_findings.fault(ReplayEnded("time", "")).lines[0]


def test_bytes_beside_a_tensor_are_counted_and_placed():
    assert (
        gpu_findings.overrun(Overrun("z", "after", 0, 12)).lines[0]
        == "On the GPU the kernel writes 12 bytes past the end of z."
    )
    assert (
        "before the start of z, the nearest 8 bytes away" in gpu_findings.overrun(Overrun("z", "before", 8, 1)).lines[0]
    )
    assert "changes 4 bytes between the elements of z" in gpu_findings.overrun(Overrun("z", "between", 0, 4)).lines[0]


def test_wrong_elements_of_a_large_result_are_summed_up():
    lines = gpu_findings.wrong_summary("z", Summary([10, 100], 1000, 5, 1e300, [3, 4], "1.5", "nan", unwritten=5)).lines
    assert lines[0] == "5 of 1 000 elements of z are wrong on the GPU; the first is z[3, 4]: nan, expected 1.5."
    assert lines[1] == "5 of them were never written."


def test_the_copy_that_others_are_compared_with_is_sound_ptx(tmp_path):
    pytest.importorskip("cuda.bindings")
    from triton.backends.nvidia.compiler import get_ptxas

    from grader.gpu.inside.anchors import COPY_PTX

    (tmp_path / "copy.ptx").write_bytes(COPY_PTX.rstrip(b"\0"))
    for target in ("sm_80", "sm_90", "sm_100"):
        ptxas = get_ptxas(int(target[3:])).path
        command = [ptxas, f"--gpu-name={target}", tmp_path / "copy.ptx", "-o", tmp_path / "copy.cubin"]
        assert subprocess.run(command, capture_output=True).returncode == 0


def test_where_there_is_no_gpu_none_is_found(monkeypatch, tmp_path):
    found = device_here()
    if isinstance(found, Device):
        pytest.skip("there is a GPU here")
    assert found == NO_GPU


def test_a_torch_without_cuda_is_named(monkeypatch):
    monkeypatch.setattr(device, "driver_device", lambda: Device("GPU-0", DEFAULT_MODEL))
    monkeypatch.setattr(torch.version, "cuda", None)
    assert "is built without CUDA (install torch's CUDA build)" in device_here()
