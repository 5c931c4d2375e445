"""Values of two axes meet in some row: all of them where rows suffice, and what matters most before the rest."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest

from grader.course.covering import Cell, Covering, Row
from grader.course.drawn_calls import GROUP_OF_MOST, MOST_CALLS, drawn_calls
from grader.course.folder import all_folders, load_test_file
from grader.course.promise import Between, FixedNumber, Kind, Promised, contiguous, stated, upto
from grader.judging.uses import DrawnUse, uses_asked
from grader.numerics.data_sets import normal, subnormal, unusual
from tests import slow
from tests.conftest import ROOT

AXES = {"dtype": ("fp32", "fp16", "bf16"), "N": range(5), "layout": range(4), "kind": range(4)}
SEEDS = range(10)


def alike(one: Cell, other: Cell) -> int:
    return 1


def dtype_and_kind(one: Cell, other: Cell) -> int:
    return 3 if {one[0], other[0]} == {"dtype", "kind"} else 1


def rows_of(table: Covering, most: int) -> list[Row]:
    rows: list[Row] = []
    while table.open_pairs and len(rows) < most:
        rows.append(table.complete({}))
    return rows


def met(rows: list[Row], one: str, other: str) -> set[tuple]:
    return {(row[one], row[other]) for row in rows if row[one] is not None and row[other] is not None}


@pytest.mark.parametrize("seed", SEEDS)
def test_all_pairs_meet_in_few_rows(seed):
    rows = rows_of(Covering(AXES, alike, random.Random(seed)), 100)
    for one, other in combinations(AXES, 2):
        assert met(rows, one, other) == set(product(AXES[one], AXES[other]))
    assert len(rows) <= 28  # 20 are the least: N and the layout have as many pairs


@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_that_matter_more_meet_first(seed):
    table = Covering(AXES, dtype_and_kind, random.Random(seed))
    assert met(rows_of(table, 14), "dtype", "kind") == set(product(AXES["dtype"], AXES["kind"]))


def test_pairs_without_weight_need_not_meet():
    table = Covering(AXES, lambda one, other: int({one[0], other[0]} == {"dtype", "kind"}), random.Random(1))
    assert table.open_pairs == 12 and len(rows_of(table, 100)) == 12


def test_a_row_keeps_what_it_begins_with_and_what_has_no_value_meets_nothing():
    table = Covering(AXES, alike, random.Random(1))
    before = table.open_pairs
    row = table.complete({"dtype": "bf16", "N": None})
    assert row["dtype"] == "bf16" and row["N"] is None and row["layout"] is not None
    assert before - table.open_pairs == 3


def test_a_seed_repeats_its_rows():
    first, again, other = (rows_of(Covering(AXES, alike, random.Random(seed)), 30) for seed in (1, 1, 2))
    assert first == again != other


# ---- of promises -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_all_pairs_of_a_small_promise_meet_in_a_run(seed):
    kinds, sizes = (normal, subnormal, unusual), {"N": upto(300, BLOCK_N=64)}
    options = dict(sizes=sizes, x=contiguous("N", values=kinds), y=contiguous("N", values=kinds))
    promise = stated(["x", "y"], ("float32", "float16"), options)
    calls = drawn_calls(promise, seed, "test")
    assert len(calls) <= MOST_CALLS
    for kind, dtype in product(kinds, promise.dtypes):
        assert any(call.values["x"] is kind and call.dtype == dtype for call in calls)
    for kind, other in product(kinds, kinds):
        assert any(call.values["x"] is kind and call.values["y"] is other for call in calls)
    for later, size in product((False, True), (63, 64, 65)):
        assert any(bool(call.layouts["x"].offset) == later and call.sizes["N"] == size for call in calls)


@pytest.mark.parametrize("folder", all_folders(ROOT), ids=lambda folder: folder.id)
def test_every_kind_of_value_meets_every_dtype_in_every_exercise(folder):
    module = load_test_file(folder)
    uses = uses_asked(module, DrawnUse)
    promises = [use.promise(module.exercise) for use in uses]
    seeds = slow.drawn(SEEDS, 3, folder.test_file.read_text(encoding="utf-8"))
    for seed, (use, promise) in product(seeds, zip(uses, promises)):
        calls = drawn_calls(promise, seed, use.test)
        assert len(calls) <= MOST_CALLS + GROUP_OF_MOST
        for name, one in promise.arguments.items():
            found = {(kind, call.dtype) for call in calls for kind in _kinds_of(call.values[name], one)}
            floats = [dtype for dtype in promise.dtypes if "float" in dtype]  # whole numbers are of one kind
            assert found >= set(product(one.values, floats)), name


def _kinds_of(value: Kind, promised: Promised) -> list[Kind]:
    """The value itself, if it is promised as it is, and the ranges that a number lies in."""
    ranges = [kind for kind in promised.values if isinstance(kind, Between)]
    number = value.number if isinstance(value, FixedNumber) else None
    within = [one for one in ranges if isinstance(number, int | float) and one.low <= number <= one.high]
    return [value] * (value in promised.values) + within
