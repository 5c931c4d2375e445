"""The rubric item of a test, its points, its graded step, and its membership in the core of its exercise."""

from __future__ import annotations

import pytest

from grader.judging.uses import USES

HIDDEN = "hidden"  # the rubric item of an instructor's hidden cases


def rubric_item(item: pytest.Function) -> str:
    """Returns the rubric item that a test's points count for: right, cost, speed, hidden, or other."""
    if item.get_closest_marker("hidden"):
        return HIDDEN
    return next((kind.item for name, kind in USES.items() if name in item.fixturenames), "other")


def is_core(item: pytest.Function) -> bool:
    return item.get_closest_marker("core") is not None


def step_of(item: pytest.Function) -> int:
    """Returns the graded step of the exercise that a test belongs to, from 1."""
    marker = item.get_closest_marker("step")
    return marker.args[0] if marker else 1


def points_of(item: pytest.Function) -> float:
    marker = item.get_closest_marker("points")
    return marker.args[0] if marker else 1
