"""When a measurement may begin: the clock has settled, as far as anyone tells."""

from __future__ import annotations

from collections import deque

import pytest

timing = pytest.importorskip("grader.gpu.inside.timing", exc_type=ImportError)  # wants cuda-bindings
measuring = pytest.importorskip("grader.gpu.inside.measuring", exc_type=ImportError)


@pytest.mark.parametrize(
    ("megahertz", "settled"),
    [
        ([1980.0] * 5, True),
        ([1980.0, 1965.0, 1980.0, 1965.0, 1980.0], True),
        ([345.0, 1980.0, 1980.0, 1980.0, 1980.0], False),
        ([345.0, 1200.0, 1980.0, 1980.0, 1980.0, 1980.0, 1980.0], True),  # only the last five count
        ([1980.0] * 4, False),
        ([None] * 5, False),  # without NVML it warms up for the longest time
    ],
)
def test_five_readings_alike_are_a_settled_clock(megahertz, settled):
    assert timing._settled(deque(megahertz, maxlen=timing.ALIKE)) == settled


@pytest.mark.parametrize(
    ("seconds", "calls", "rounds"),
    [
        (1e-6, 20, 7),
        (0.01, 20, 7),
        (0.1, 5, 7),
        (0.7, 1, 5),
        (1.5, 1, 1),
        (60.0, 1, 1),  # less cannot be measured
    ],
)
def test_a_slow_kernel_gets_fewer_calls_and_then_fewer_rounds(seconds, calls, rounds):
    assert measuring.within(5.0, seconds, 20) == (calls, rounds)
    assert calls == rounds == 1 or (rounds + 2) * calls * seconds <= 5.0
