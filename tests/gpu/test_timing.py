"""When a measurement may begin: the clock has settled, as far as anyone tells."""

from __future__ import annotations

from collections import deque

import pytest

timing = pytest.importorskip("grader.gpu.inside.timing", exc_type=ImportError)  # wants cuda-bindings


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
