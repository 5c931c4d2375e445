"""course doctor on a machine with a GPU: what it makes of samples. The samples here are made up."""

from __future__ import annotations

import contextlib
from dataclasses import asdict

import pytest

from grader.doctor import gpu_probe
from grader.doctor.doctor import judged_here
from grader.doctor.gpu_probe import Ceiling, FoundGpu, describe, examine_gpu, percent, tell, why_ended
from grader.gpu.answers import ANCHOR, COPY, KERNEL, MATMUL, Measurement, Round
from grader.gpu.device import Device
from grader.gpu.models import MODELS
from grader.gpu.pool.replay_process import ReplayEnded
from grader.gpu.pool.replays import Replays

H200 = Device("GPU-0", MODELS["sm_90"])
BYTES, FLOPS = 1 << 30, 2 * 4096**3
QUIET = [1.0005, 0.9995, 1.0, 1.0003, 0.9998]
NOISY = [1.02, 0.98, 1.0, 1.03, 0.99]


def answer(copy: float, matmul: float, invalid: str = "", complaint: str = "") -> dict:
    """Shares of a copy and a product of themselves, at 4266 GB/s and 703 TFLOP/s."""

    def sample(share: float, seconds: float) -> dict:
        rounds = [Round({KERNEL: seconds / share, ANCHOR: seconds}, invalid)] * 7
        return asdict(Measurement(rounds, "", BYTES))

    return {
        "kind": "ceilings", "megahertz": 1980.0, "most_megahertz": 1980.0, "complaint": complaint,
        COPY: {"sample": sample(copy, BYTES / 4266e9), "flops": 0},
        MATMUL: {"sample": sample(matmul, FLOPS / 703e12), "flops": FLOPS},
    }  # fmt: skip


def told(answers: list[dict], device: Device = H200) -> tuple[bool, dict[str, tuple[str, bool]]]:
    lines: dict[str, tuple[str, bool]] = {}
    trusted = tell(answers, device, lambda name, text, good: lines.update({name: (text, good)}))
    return trusted, lines


def test_a_quiet_gpu_can_be_trusted():
    trusted, lines = told([answer(share, share) for share in QUIET])
    assert trusted and all(good for _, good in lines.values())
    assert {name: text for name, (text, _) in lines.items()} == {
        "copy": "4 266 GB/s, 89 % of the datasheet",
        "fp16 matmul": "703 TFLOP/s, 71 % of the datasheet",
        "clock": "1980 of 1980 MHz, not throttled",
        "A/A copy": "0.04 % between 5 processes, at most 0.3 %: timed against itself",
        "A/A matmul": "0.04 % between 5 processes, at most 1.5 %: timed against itself",
        "speed": "verdicts can be trusted here",
    }


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([answer(share, 1.0) for share in NOISY], "the copy's speed differs by 2.1 % between processes"),
        ([answer(1.0, share) for share in NOISY], "the matmul's speed differs by 2.1 % between processes"),
        ([answer(1.01 * share, 1.0) for share in QUIET], "the copy seems 1 % off its own speed"),
        ([answer(1.0, 1.0, invalid="the clock changed")] * 5, "5 of 5 samples were useless: the clock changed"),
        ([answer(1.0, 1.0, complaint="the GPU is throttled")] * 5, "the GPU is throttled"),
    ],
)
def test_what_is_wrong_is_named(answers, why):
    trusted, lines = told(answers)
    assert not trusted and lines["speed"][0].startswith(f"verdicts cannot be trusted now: {why}")
    assert not lines["speed"][1]


def test_noise_that_a_product_may_show_is_too_much_for_a_copy():
    shares = [1.008, 0.992, 1.0, 1.005, 0.995]
    assert told([answer(1.0, share) for share in shares])[0] and not told([answer(share, 1.0) for share in shares])[0]


def test_faster_than_the_datasheet_is_not_believed():
    slow = Device("GPU-0", MODELS["sm_80"])
    assert "faster than its datasheet allows" in told([answer(1.0, 1.0)] * 5, slow)[1]["speed"][0]


def test_a_gpu_without_a_datasheet_here_has_no_share_of_it():
    from dataclasses import replace

    unknown = Device("GPU-0", replace(MODELS["sm_90"], name="NVIDIA GeForce RTX 4050"))
    assert told([answer(1.0, 1.0)] * 5, unknown)[1]["copy"][0] == "4 266 GB/s"


def test_without_nvml_the_clock_is_not_known():
    answers = [{**answer(1.0, 1.0), "megahertz": None, "most_megahertz": None}] * 5
    assert told(answers)[1]["clock"][0].startswith("not known: the driver's NVML does not answer")


def test_one_sample_has_no_spread():
    answers = [answer(1.0, 1.0), *[answer(1.0, 1.0, invalid="the clock changed")] * 4]
    trusted, lines = told(answers)
    assert not trusted and "A/A copy" not in lines and lines["copy"][0] == "4 266 GB/s, 89 % of the datasheet"
    assert lines["speed"][0].endswith("4 of 5 samples were useless: the clock changed")


def test_a_ceiling_is_the_median_of_the_processes():
    ceiling = Ceiling(COPY)
    for share in QUIET:
        ceiling.add(answer(share, 1.0))
    assert ceiling.rate == pytest.approx(4266e9) and ceiling.complaint == "" and percent(0.0123) == "1.2 %"


def test_the_gpu_in_words():
    assert describe(H200, "570.133.20") == "NVIDIA H200, 141 GiB, sm_90, driver 570.133.20"
    assert describe(H200, "") == "NVIDIA H200, 141 GiB, sm_90"


# ---- where it cannot be measured ------------------------------------------------------------------------------------


def examined(monkeypatch, device) -> tuple[FoundGpu, list[tuple[str, str, bool]]]:
    monkeypatch.setattr(gpu_probe, "device_here", lambda: device)
    lines: list[tuple[str, str, bool]] = []
    return examine_gpu(lambda *line: lines.append(line), lambda text: contextlib.nullcontext()), lines


def test_no_gpu_is_no_fault(monkeypatch):
    found, lines = examined(monkeypatch, "no GPU")
    assert found == FoundGpu() and lines == [("GPU", "none found: not needed; a GPU adds large sizes and speed", True)]


def test_a_gpu_that_cannot_be_used_says_why(monkeypatch):
    found, lines = examined(monkeypatch, "the driver says CUDA_ERROR_SYSTEM_NOT_READY")
    assert found == FoundGpu(here=True)
    assert lines == [("GPU", "there is one, and it cannot be used: the driver says CUDA_ERROR_SYSTEM_NOT_READY", False)]


def test_a_process_that_cannot_reach_the_gpu_is_a_sentence(monkeypatch):
    """A real one, that finds no GPU to own."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    replays = Replays(H200)
    try:
        with pytest.raises(ReplayEnded) as ended:
            replays.ceilings(1)
    finally:
        replays.end()
    assert why_ended(ended.value) == "the process that owns the GPU ended: it did not come up"


@pytest.mark.parametrize(
    ("found", "judged"),
    [
        (FoundGpu(), "Not here: speed."),
        (FoundGpu(here=True), "Not here: large sizes in full and speed, since the GPU cannot be used."),
        (FoundGpu(True, True), "large sizes, bf16 and speed, which may come out as inconclusive."),
        (FoundGpu(True, True, True), "On the GPU: large sizes, bf16 and speed."),
    ],
)
def test_the_last_lines_say_what_is_judged_here(found, judged):
    lines = judged_here(found)
    assert lines[-1].endswith(judged) and max(map(len, lines)) <= 120
