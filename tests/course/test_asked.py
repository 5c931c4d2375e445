"""What tests hand to a fixture, read without pytest."""

from __future__ import annotations

from types import ModuleType

import pytest

from grader.course.stated_calls import FIXTURES, asked
from grader.numerics.data_sets import normal
from grader.session.rubric_items import ITEMS


@pytest.fixture
def module() -> ModuleType:
    made = ModuleType("test_it")

    def test_one(check):
        check(normal(3), BLOCK=64, bound="exact")
        check(normal(4))

    def test_two(traffic):
        traffic(normal(5), reads=1)

    def test_of_pytest_alone(check, size):
        check(normal(size))

    def helper(check):
        raise AssertionError

    for function in (test_one, test_two, test_of_pytest_alone, helper):
        setattr(made, function.__name__, function)
    return made


def test_each_use_is_told_in_the_order_of_the_file(module):
    found = asked(module, "traffic", "check")
    assert [(use.test, use.fixture, use.data[0].shape) for use in found] == [
        ("test_one", "check", (3,)), ("test_one", "check", (4,)), ("test_two", "traffic", (5,)),
    ]  # fmt: skip
    assert found[0].constants == {"BLOCK": 64} and found[0].options["bound"] == "exact"


def test_other_fixtures_are_left_out(module):
    assert [use.test for use in asked(module, "traffic")] == ["test_two"]


@pytest.mark.parametrize("name", FIXTURES)
def test_the_plugin_has_each_fixture_and_it_counts_for_an_item(request, name):
    assert request.getfixturevalue(name).__name__ == name in ITEMS
