"""What lesson 42 says of `triton.testing.do_bench`: what it does around a launch, and what it leaves to its caller."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
import triton.testing


class Device:
    """A driver that notes what it is asked for. Each launch takes 10 ms of it."""

    def __init__(self):
        self.asked: list[str] = []

    def Event(self, enable_timing):
        return SimpleNamespace(record=lambda: self.asked.append("record"), elapsed_time=lambda end: 10.0)

    def synchronize(self):
        self.asked.append("synchronize")

    def get_device_interface(self):
        return self

    def get_empty_cache_for_benchmark(self):
        return self

    def clear_cache(self, cache):
        self.asked.append("flush")


@pytest.fixture
def asked(monkeypatch):
    device = Device()
    monkeypatch.setattr(triton.testing.runtime.driver, "_active", device, raising=False)
    triton.testing.do_bench(lambda: device.asked.append("launch"))
    return device.asked


def test_it_flushes_the_cache_before_each_launch_and_has_an_event_on_both_sides(asked):
    rounds = [asked[at - 2 : at + 2] for at, one in enumerate(asked) if one == "launch"]
    timed = [around for around in rounds if around == ["flush", "record", "launch", "record"]]
    assert len(timed) >= 2 and asked[-1] == "synchronize"


def test_it_warms_up_for_25_ms_and_returns_a_mean():
    options = inspect.signature(triton.testing.do_bench).parameters
    assert (options["warmup"].default, options["return_mode"].default) == (25, "mean")
