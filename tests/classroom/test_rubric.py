"""Points from a result: partial credit, and never a number where nothing is decided."""

from __future__ import annotations

import pytest

from grader.classroom.nbgrader.cell_outputs import item_outputs
from grader.classroom.rubric import as_on_gpu, items_of


def case(name, item="right", outcome="pass", points=1, id="", message=""):
    hidden = item == "hidden"
    return {"name": name, "item": item, "outcome": outcome, "points": points, "id": id, "message": message,
            "hidden": hidden}  # fmt: skip


def result(*tests, fault=None):
    return {"exercise": "03_softmax", "tests": list(tests), "fault": fault}


def test_points_of_an_item_are_those_of_its_passed_tests():
    items = items_of(result(case("a", points=2), case("b", outcome="fail"), case("c", outcome="not attempted")))
    assert (items["right"].score, items["right"].possible) == (2, 4)


def test_cost_that_waited_for_right_values_is_lost():
    items = items_of(result(case("a", "cost", "skipped", id="waited", message="waits for right values")))
    assert items["cost"].score == 0


def test_speed_that_would_wait_for_right_values_on_a_gpu_is_lost():
    speed = case("speed", "speed", "skipped", id="not-run", message="needs a GPU")
    traffic = case("traffic", "cost", "skipped", id="waited", message="waits for right values")
    wrong = as_on_gpu(result(case("a", outcome="fail"), traffic, speed))
    assert [item.score for item in items_of(wrong).values()] == [0, 0, 0]
    assert wrong["tests"][2]["message"] == "waits for right values"


@pytest.mark.parametrize("item, id", [("speed", "not-run"), ("right", "unjudged")])
def test_what_may_count_on_a_gpu_stays_open(item, id):
    for before in ([case("a")], [case("a", "cost", outcome="fail")]):
        judged = result(*before, case("b", item, "skipped", id=id, message="needs a GPU"))
        assert as_on_gpu(judged) == judged


@pytest.mark.parametrize("outcome", ["skipped", "inconclusive", "a word of the future"])
def test_what_was_not_run_is_open_neither_nothing_nor_full(outcome):
    items = items_of(result(case("a"), case("b", "speed", outcome, id="not-run", message="needs a GPU")))
    assert items["right"].score == 1
    assert items["speed"].score is None
    assert items["speed"].open == ["needs a GPU"]


def test_a_fault_of_the_machine_leaves_everything_open():
    items = items_of(result(case("a"), case("b", "cost"), fault="the disk is full"))
    assert [item.score for item in items.values()] == [None, None]


@pytest.mark.parametrize("points", [float("nan"), float("inf"), -1])
def test_points_that_are_no_points_are_refused(points):
    with pytest.raises(ValueError, match="points"):
        items_of(result(case("a", points=points)))


def test_an_open_item_has_no_score_among_its_outputs():
    items = items_of(result(case("a", "speed", "skipped", id="not-run", message="needs a GPU")))
    outputs = item_outputs(items["speed"], "needs a GPU")
    assert [output["output_type"] for output in outputs] == ["stream"]
    assert "open, not lost" in outputs[0]["text"]


def test_a_hidden_case_shows_its_name_alone():
    items = items_of(result(case("a narrow matrix", "hidden", "fail", message="z[0, 0] of (409, 3) is 1")))
    assert items["hidden"].lines == ["FAIL    a narrow matrix  (1)"]
