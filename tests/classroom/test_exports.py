"""How many exercises of a hand-in a table counts as passed, in their core and in full."""

from __future__ import annotations

import pytest

from grader.classroom.nbgrader.exports import _levels


def judged(*outcomes: str, core: bool = False, fault: str | None = None) -> dict:
    tests = [{"outcome": outcome, "id": ""} for outcome in outcomes]
    return {"result": {"tests": tests, "core": core, "fault": fault}}


@pytest.mark.parametrize(
    "facts, levels",
    [
        ([judged("pass", "pass")], ["1 of 1", "1 of 1"]),
        ([judged("pass", "fail", core=True)], ["1 of 1", "0 of 1"]),
        ([judged("pass", "skipped")], ["1 of 1", "1 of 1"]),  # the test that is open lowers nothing
        ([judged("skipped")], ["0 of 1", "0 of 1"]),
        ([judged()], ["0 of 1", "0 of 1"]),
        ([judged("pass"), {"result": None}], ["1 of 2", "1 of 2"]),
        ([judged(fault="no room")], ["", ""]),
        ([{"result": None}], ["", ""]),
    ],
)
def test_a_hand_in_passes_a_level_by_tests_that_are_decided(facts, levels):
    assert _levels(facts, len(facts)) == levels
