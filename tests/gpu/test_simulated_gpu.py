"""The simulated GPU has the parts that its docstring states, and each of them can be left out."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace

import pytest

from grader.gpu.simulated_gpu import (
    MOST_CALLS,
    MOST_LOOKS,
    MOST_SECONDS,
    EndlessMeasurement,
    GpuPart,
    NoCall,
    SimulatedGpu,
    drawn_traits,
)
from grader.wire.device_calls import DeviceCall

TRAITS = drawn_traits(random.Random(61))
KERNEL = 30e-6
EVERY = tuple(GpuPart)


def done(gpu: SimulatedGpu, *names: str) -> tuple[float | None, list[float]]:
    return gpu.answer([DeviceCall(name) for name in names])


def clock(gpu: SimulatedGpu, *names: str) -> float:
    """Returns how long these calls take on the host's clock."""
    began = done(gpu, "now")[0]
    return done(gpu, *names, "now")[0] - began


def all_but(*parts: GpuPart) -> set[GpuPart]:
    return set(GpuPart) - set(parts)


@pytest.mark.parametrize("seconds", [3e-6, 30e-3])
def test_without_all_parts_a_launch_takes_its_time(seconds):
    gpu = SimulatedGpu(TRAITS, seconds, 1, EVERY)
    times = done(gpu, "record", "run", "record", "synchronize", "now")[1]
    assert times[1] - times[0] == pytest.approx(seconds, rel=1e-4)
    assert clock(gpu, "run") == pytest.approx(seconds, rel=0.01)


def test_a_launch_returns_at_once_and_synchronize_waits():
    gpu = SimulatedGpu(TRAITS, 30e-3, 1, all_but(GpuPart.QUEUE))
    assert clock(gpu, "run") < 1e-6
    assert gpu.log.timed[-1].unfinished
    assert clock(gpu, "run", "synchronize") == pytest.approx(2 * 30e-3, rel=0.01)
    assert not gpu.log.timed[-1].unfinished


def test_the_first_launch_compiles():
    gpu = SimulatedGpu(TRAITS, KERNEL, 1, all_but(GpuPart.COMPILING))
    assert clock(gpu, "run") == pytest.approx(TRAITS.compilation, rel=0.01)
    assert clock(gpu, "run") == pytest.approx(KERNEL, rel=0.01)


def test_the_host_needs_time_for_a_launch_and_to_synchronize():
    gpu = SimulatedGpu(TRAITS, KERNEL, 1, all_but(GpuPart.HOST))
    least = TRAITS.launch + TRAITS.synchronization + KERNEL
    assert least * 0.9 < clock(gpu, "run", "synchronize") < least * 1.2


def test_a_warm_cache_saves_time_until_it_is_flushed():
    gpu = SimulatedGpu(TRAITS, KERNEL, 1, all_but(GpuPart.CACHE))
    cold, warm = clock(gpu, "run"), clock(gpu, "run")
    done(gpu, "flush_cache")
    assert cold == pytest.approx(KERNEL, rel=0.01) == clock(gpu, "run")
    saved = TRAITS.saved_share * min(KERNEL, TRAITS.saved)
    assert warm == pytest.approx(KERNEL - saved, rel=0.01)


def test_zeros_take_less_time_until_inputs_are_drawn():
    gpu = SimulatedGpu(TRAITS, KERNEL, 1, all_but(GpuPart.ZEROS))
    assert clock(gpu, "run") == pytest.approx(KERNEL * TRAITS.of_zeros, rel=0.01)
    done(gpu, "draw_inputs")
    assert clock(gpu, "run") == pytest.approx(KERNEL, rel=0.01)


def test_the_clock_rises_with_work_and_falls_in_a_rest():
    gpu = SimulatedGpu(TRAITS, 1e-3, 1, all_but(GpuPart.RAMP, GpuPart.COMPILING))
    first = clock(gpu, "run") - TRAITS.compilation
    assert first == pytest.approx(1e-3 / TRAITS.lowest_clock, rel=0.02)
    times = [clock(gpu, "run") for _ in range(1000)]
    assert times == sorted(times, reverse=True)
    assert times[-1] == pytest.approx(1e-3, rel=0.001)


def test_launches_scatter_around_the_true_time_and_some_are_disturbed():
    for part, middle, largest in ((GpuPart.SCATTER, 0.005, 1.3), (GpuPart.DISTURBANCE, 1e-4, 6.1)):
        gpu = SimulatedGpu(TRAITS, KERNEL, 1, all_but(part))
        shares = [clock(gpu, "run") / KERNEL for _ in range(2000)]
        assert statistics.median(shares) == pytest.approx(1, abs=middle + 0.001)
        assert 1.05 < max(shares) < largest


def test_other_work_takes_the_gpu_time_and_events_count_it():
    gpu = SimulatedGpu(TRAITS, KERNEL, 1, all_but(GpuPart.OTHER_WORK, GpuPart.QUEUE))
    assert clock(gpu, "flush_cache", "synchronize") == pytest.approx(TRAITS.flush, rel=0.01)
    gpu.answer([DeviceCall("sleep", 1_000_000)])
    assert clock(gpu, "synchronize") == pytest.approx(1e6 / TRAITS.cycles_a_second, rel=0.01)
    for part, counted in ((GpuPart.OTHER_WORK, TRAITS.flush), (GpuPart.RAMP, 0.0)):
        gpu = SimulatedGpu(replace(TRAITS, ramp=1e-9), KERNEL, 1, all_but(part))
        one, other = done(gpu, "record", "flush_cache", "run", "record", "synchronize", "now")[1]
        assert other - one == pytest.approx(counted + KERNEL, rel=0.01)


def test_events_count_how_long_the_gpu_waits_for_the_host():
    for part, least in ((GpuPart.GAP, TRAITS.launch), (GpuPart.ZEROS, 0.0)):
        gpu = SimulatedGpu(replace(TRAITS, of_zeros=1.0), KERNEL, 1, all_but(part, GpuPart.HOST))
        one, other = done(gpu, "record", "run", "record", "synchronize", "now")[1]
        assert other - one == pytest.approx(least + KERNEL, abs=0.2 * least + 1e-9)


def test_what_happens_depends_on_the_seed_and_no_part_changes_what_another_draws():
    def shares(seed: object, without: set[GpuPart]) -> list[float]:
        gpu = SimulatedGpu(TRAITS, KERNEL, seed, without)
        return [clock(gpu, "run") for _ in range(50)]

    disturbed = shares(1, all_but(GpuPart.DISTURBANCE))
    assert disturbed == shares(1, all_but(GpuPart.DISTURBANCE)) != shares(2, all_but(GpuPart.DISTURBANCE))
    both = shares(1, all_but(GpuPart.DISTURBANCE, GpuPart.SCATTER))
    assert [one > 1.4 * KERNEL for one in both] == [one > 1.4 * KERNEL for one in disturbed]


def test_an_event_is_told_when_the_gpu_has_come_to_it():
    gpu = SimulatedGpu(TRAITS, 30e-3, 1, all_but(GpuPart.QUEUE))
    assert len(done(gpu, "record", "run", "record", "now")[1]) == 1
    assert len(done(gpu, "synchronize", "now")[1]) == 1
    with pytest.raises(NoCall):
        gpu.answer([DeviceCall("elapsed", 0, 2)])


def test_the_log_has_how_long_the_gpu_waited_between_events():
    gpu = SimulatedGpu(TRAITS, KERNEL, 1, all_but(GpuPart.QUEUE, GpuPart.HOST))
    done(gpu, "record", "run", "record", "synchronize", "now")
    gpu.answer([DeviceCall("elapsed", 0, 1)])
    (timed,) = gpu.log.timed_by_events
    assert timed.launches == 1 and timed.idle == pytest.approx(timed.seconds - KERNEL)


@pytest.mark.parametrize("names", [["run"] * 1000, ["synchronize"] * 4000, []])
def test_a_measurement_ends(names):
    gpu = SimulatedGpu(replace(TRAITS, launch=5e-6), 30e-3 if "run" in names else 3e-6, 1)
    with pytest.raises(EndlessMeasurement) as limit:
        while True:
            done(gpu, *names)
    assert limit.value.seconds < MOST_SECONDS + 1 and gpu.log.calls <= MOST_CALLS + 1
    assert limit.value.looks == (0 if names else MOST_LOOKS + 1)
