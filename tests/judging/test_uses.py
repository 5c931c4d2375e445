"""The judge reads what tests hand to a fixture, without pytest."""

from __future__ import annotations

from types import ModuleType

import pytest

from grader.judging.uses import COST, RIGHT, SPEED, USES, CheckUse, DrawnUse, ThroughputUse, TrafficUse, uses_asked
from grader.numerics.data_sets import normal
from grader.session import plugin


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


def test_a_test_that_states_its_use_wrongly_stops_no_other(module):
    """It raises where it is run."""

    def test_with_a_slip(traffic):
        traffic(normal(5), raeds=1)

    module.test_with_a_slip = test_with_a_slip
    assert [use.test for use in uses_asked(module, TrafficUse, CheckUse)] == ["test_one", "test_one", "test_two"]


def test_each_use_is_told_in_the_order_of_the_file(module):
    found = uses_asked(module, TrafficUse, CheckUse)
    assert [(use.test, use.fixture, use.data[0].shape) for use in found] == [
        ("test_one", "check", (3,)), ("test_one", "check", (4,)), ("test_two", "traffic", (5,)),
    ]  # fmt: skip
    assert found[0] == CheckUse("test_one", (normal(3),), constants={"BLOCK": 64}, bound="exact")


def test_other_fixtures_are_left_out(module):
    assert [use.test for use in uses_asked(module, TrafficUse)] == ["test_two"]


@pytest.mark.parametrize("kind", USES.values())
def test_the_plugin_has_each_fixture_and_it_counts_for_an_item(kind):
    fixture = getattr(plugin._fixtures(), kind.fixture)
    assert fixture.__doc__ == kind.__doc__ and kind.__doc__.startswith(f"{kind.fixture}(")
    assert kind.item in (RIGHT, COST, SPEED)


@pytest.mark.parametrize(
    ("kind", "data", "options"),
    [(CheckUse, [normal(3)], {"bounds": "exact"}), (ThroughputUse, [normal(3)], {"at_least": 0.5, "BLOCK": 64}),
     (ThroughputUse, [normal(3)], {}), (DrawnUse, [normal(3)], {})],
)  # fmt: skip
def test_what_a_fixture_does_not_take_is_refused(kind, data, options):
    with pytest.raises(TypeError):
        kind.of("test_it", *data, **options)
