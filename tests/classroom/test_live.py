"""What is said while a class is judged: little in a pipe, and no trouble twice."""

from __future__ import annotations

import re

import pytest

from grader.classroom.cluster import live
from grader.classroom.cluster.live import View


def result(outcome: str = "pass", fault: str | None = None) -> dict:
    return {"outcome": outcome, "fault": fault}


@pytest.fixture
def now(monkeypatch) -> list[float]:
    """The time of the view's clock in seconds, for a test to set."""
    now = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    return now


def test_a_pipe_gets_a_line_a_minute_and_one_at_the_end(now):
    said: list[str] = []
    with View(120, said.append) as view:
        for number in range(100):
            now[0] += 1.5
            view.judged(result("fail" if number % 4 == 0 else "pass", "no room" if number == 99 else None))
    assert len(said) == 3
    assert re.fullmatch(
        r"  41 of 120 judged, 40 a minute, 2 min left, until \d\d:\d\d: 30 right, 11 not right", said[0]
    )
    assert said[2] == "100 judged in 2 min, 40 a minute: 74 right, 25 not right, 1 fault of the machine."


def test_days_that_are_left_are_counted(now):
    said: list[str] = []
    with View(3000, said.append) as view:
        for _ in range(2):
            now[0] += 90
            view.judged(result())
    assert " 75.0 h left, " in said[0]


def test_trouble_is_told_once_until_it_is_over():
    said: list[str] = []
    with View(1, said.append) as view:
        for workers in (0, 0, 0, 1, 0):
            view.tick(workers)
    assert said == ["The scheduler has no worker. Waiting for one: dask worker ADDRESS."] * 2


def test_without_a_worker_no_end_is_foretold(now):
    said: list[str] = []
    with View(9, said.append) as view:
        for workers in (1, 0):
            now[0] += 61
            view.judged(result())
            now[0] += 61
            view.tick(workers)
    told = [line.split(":")[0] for line in said if "judged" in line]
    assert told[-2] == "  2 of 9 judged" and "until" in told[-3]


def test_nothing_is_said_where_nothing_was_judged():
    said: list[str] = []
    with View(3, said.append):
        pass
    assert said == []
