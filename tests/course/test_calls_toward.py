"""Calls toward branches: where a file's condition holds in no drawn call, three more calls meet it, and stay small."""

from __future__ import annotations

import ast
import math

import pytest

from grader import any_strides, between, normal, unusual, upto
from grader.course.calls_toward import EACH, MOST_CALLS, MOST_ELEMENTS, MOST_WITHIN, calls_toward, calls_within
from grader.course.drawn_calls import drawn_calls
from grader.course.folder import load_test_file
from grader.course.promise import StatedPromise, stated
from grader.judging.uses import DrawnUse, uses_asked
from grader.submission.branches import branches_of
from tests.conftest import folders_with_kernels

FILE = """
def f(x, y, slope):
    M, N = x.shape
    if {condition}:
        x = y
"""


def a_promise() -> StatedPromise:
    options = dict(
        sizes={"M": upto(40, least=0, limit=2**30, block=8), "N": upto(1500, once=16384, BLOCK_N=256)},
        x=any_strides("M", "N", values=(normal, unusual)),
        y=any_strides("M", "N", values=(normal, unusual)),
        slope=between(0.01, 100.0),
        blocks=({"BLOCK_N": 32},),
    )
    return stated(["x", "y", "slope"], ("float32", "float16", "bfloat16"), options)


def toward(condition: str, seed: int):
    branches = branches_of(ast.parse(FILE.format(condition=condition)), "f", ["x", "y", "slope"])
    promise = a_promise()
    calls = drawn_calls(promise, seed, "test")
    return calls, calls_toward(promise, seed, "test", calls, branches)


HOLDS = {
    "N % 1009 == 77": lambda call: call.sizes["N"] % 1009 == 77,
    "M == N and M > 3": lambda call: call.sizes["M"] == call.sizes["N"] > 3,
    "M * N == 5040": lambda call: math.prod(call.sizes.values()) == 5040,
    "x.dtype == torch.bfloat16 and x.stride(1) == 3 and y.stride(1) == 2 and N > 1600": lambda call: (
        call.dtype == "bfloat16" and call.sizes["N"] > 1600 and call.layouts["x"].name.startswith("every third")
    ),
    "N == 4321 and x.stride(0) == 0": lambda call: call.sizes["N"] == 4321 and 0 in call.layouts["x"].repeated,
    "y.data_ptr() % 16 == 6": lambda call: call.dtype != "float32" and call.layouts["y"].offset % 8 == 3,
    "slope > 99.5 and N > 9000": lambda call: call.values["slope"].number > 99.5 and call.sizes["N"] > 9000,
}


@pytest.mark.parametrize("condition", HOLDS)
def test_calls_meet_a_condition_that_no_drawn_call_meets(condition):
    for seed in range(3):
        calls, found = toward(condition, seed)
        assert len(found) <= MOST_CALLS and any(HOLDS[condition](call) for call in (*calls, *found)), seed
        assert [call.number for call in found] == [len(calls) + number for number in range(1, len(found) + 1)]
        assert all(math.prod(call.sizes.values()) <= MOST_ELEMENTS for call in found)


@pytest.mark.parametrize(
    "condition", ["N > 3", "N > 20000", "M < 0", "1 > 2", "x.dtype == torch.float64", "x[0, 0] > 5"]
)
def test_a_condition_that_is_met_or_that_the_promise_leaves_out_adds_no_call(condition):
    assert toward(condition, 1)[1] == []


def strides_and_N(call):
    shape = call.sizes["M"], call.sizes["N"]
    return *(call.layouts[name].strides(shape)[0] for name in "xy"), shape[1]


OF_LAYOUTS = {
    "x.stride(0) == N": lambda x, y, N: x[0] == N,
    "y.stride(1) == 1 and N > 8": lambda x, y, N: y[1] == 1 and N > 8,
    "x.stride() == y.stride()": lambda x, y, N: x == y,
    "y.is_contiguous()": lambda x, y, N: y == (N, 1),
}


@pytest.mark.parametrize("condition", OF_LAYOUTS)
def test_within_a_branch_that_asks_for_a_layout_the_other_layouts_change(condition):
    for seed in range(5):
        branches = branches_of(ast.parse(FILE.format(condition=condition)), "f", ["x", "y", "slope"])
        calls = drawn_calls(a_promise(), seed, "test")
        found = calls_within(a_promise(), seed, "test", calls, branches)
        assert [call.number for call in found] == [len(calls) + number for number in range(1, len(found) + 1)]
        inside = [call for call in found if OF_LAYOUTS[condition](*strides_and_N(call))]
        assert EACH <= len(inside) <= len(found) <= MOST_WITHIN, seed
        assert all({layout.name for layout in call.layouts.values()} > {""} for call in inside), seed


@pytest.mark.parametrize("condition", ["N > 3", "N > 20000", "M < 0", "x[0, 0] > 5"])
def test_within_a_branch_that_asks_for_no_layout_nothing_is_added(condition):
    branches = branches_of(ast.parse(FILE.format(condition=condition)), "f", ["x", "y", "slope"])
    assert calls_within(a_promise(), 1, "test", drawn_calls(a_promise(), 1, "test"), branches) == []


def test_the_first_call_has_ordinary_values_and_elements_of_their_own_and_a_seed_repeats_itself():
    for seed in range(5):
        calls, (first, *others) = toward("N == 4321", seed)
        assert first.values["x"] is normal and not first.layouts["x"].shares_elements
        assert toward("N == 4321", seed) == (calls, [first, *others])


def test_the_first_call_has_several_blocks_of_the_other_sizes_where_there_is_room():
    for seed in range(5):
        _, (first, *_) = toward("N == 4321", seed)
        assert first.sizes["N"] == 4321 and first.sizes["M"] > 2 * 8


@pytest.mark.parametrize("folder", folders_with_kernels(), ids=lambda folder: folder.id)
def test_a_solution_is_judged_in_no_more_calls(folder):
    module = load_test_file(folder)
    exercise, use = module.exercise, uses_asked(module, DrawnUse)[0]
    promise = use.promise(exercise)
    branches = branches_of(ast.parse(folder.solution_file.read_text()), exercise.entry, exercise.arguments)
    calls = drawn_calls(promise, 5, use.test)
    assert calls_toward(promise, 5, use.test, calls, branches) == []
