"""What the tables and the page of a class say of medals."""

from __future__ import annotations

import pytest

from grader.classroom.nbgrader.exports import _medals


def result(medal: str) -> dict:
    return {"result": {"medal": medal}}


@pytest.mark.parametrize(
    "facts, shown",
    [
        ([result("gold")], "gold"),
        ([result("")], ""),
        ([{"result": None}], ""),
        ([{"result": {}}], ""),  # of an earlier version
        ([result("gold"), result("bronze"), result("gold"), result("")], "2 gold, 1 bronze"),
        ([result("silver"), {"result": None}], "1 silver"),
    ],
)
def test_grades_hold_the_medals_of_a_hand_in(facts, shown):
    assert _medals(facts) == shown
