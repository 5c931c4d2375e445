"""Calls drawn from a seed: nothing promised is left out of a run, a seed repeats itself, failures are made smaller."""

from __future__ import annotations

import ast
import json
import math
import random
import zlib
from dataclasses import replace

import pytest
import torch

from grader import (
    any_strides,
    around_fp16_max,
    between,
    contiguous,
    large,
    leading,
    lone,
    normal,
    one_of,
    only,
    optional,
    peaked,
    subnormal,
    target,
    unusual,
    upto,
)
from grader.author.mutants import mutants_of
from grader.course.drawn_calls import GROUP_OF_MOST, MOST_CALLS, drawn_calls
from grader.course.folder import Folder, load_test_file
from grader.course.large_calls import FEW, large_calls
from grader.course.promise import GPUS, Between, DrawnCall, StatedPromise, stated
from grader.course.simpler_calls import simpler, smallest
from grader.explain.verdict import Verdict
from grader.judging import drawn_trials
from grader.judging.drawn_trials import DrawnTrials, drawn_verdict
from grader.judging.judge import Judge
from grader.judging.uses import DrawnUse, uses_asked
from grader.numerics.data_sets import Data, generator_for, some_minus_infinity, whole
from grader.numerics.layouts import (
    ALIGNED_ROWS,
    CONTIGUOUS,
    OVERLAPPING,
    OWN_PLACE,
    Layout,
    every,
    far_apart,
    padded,
    repeated,
    repeated_all,
    reversed_order,
    transposed,
)
from grader.numerics.poison import is_poison
from grader.submission.whole_numbers import whole_numbers
from grader.wire.messages import CAPABILITY
from tests import slow
from tests.conftest import ROOT, folders_with_kernels
from tests.typed_commands import run_pytest

SEEDS = range(25)
FOLDERS = folders_with_kernels()
BLOCKS = dict(BLOCK_M=32, BLOCK_N=32)


def promises_of(folder: Folder) -> list[tuple[StatedPromise, str]]:
    module = load_test_file(folder)
    uses = uses_asked(module, DrawnUse)
    return [(use.promise(module.exercise), use.test) for use in uses]


def promise_of(folder: Folder) -> tuple[StatedPromise, str]:
    """The first that the exercise states, which all of its calls are drawn of."""
    return promises_of(folder)[0]


def a_promise(**changes) -> StatedPromise:
    options = dict(
        sizes={"B": upto(3, block=1), "M": upto(150, BLOCK_M=64), "N": upto(150, least=0, once=4000, BLOCK_N=64)},
        x=any_strides("B", "M", "N", values=(normal, large, unusual)),
        y=any_strides("N", values=(normal, subnormal)),
        z=target("B", "M", "N"),
        blocks=(BLOCKS,),
    )
    return stated(["x", "y", "z"], ("float32", "bfloat16", "int32"), options | changes)


def test_of_few_sizes_each_occurs_and_no_other():
    sizes = {"B": upto(3, least=0, block=1), "M": upto(150, once=4000, limit=2**30, BLOCK_M=64), "N": only(16, 128, 32)}
    promise = a_promise(sizes=sizes)
    for seed in SEEDS:
        calls, large = drawn_calls(promise, seed, "test"), large_calls(promise, seed, "test", 32)
        assert {call.sizes["N"] for call in calls} == {16, 32, 128} and {call.sizes["N"] for call in large} <= {16, 32}
        for call in calls:
            assert all(one.sizes["N"] in (16, 32, 128) for one in simpler(promise, call))
    smaller = {one.sizes["N"] for one in simpler(promise, replace(calls[0], sizes=calls[0].sizes | {"N": 128}))}
    assert smaller == {128, 32, 16}


def test_calls_up_to_a_limit_are_at_it_and_on_the_way_to_it():
    promise = a_promise(sizes={"B": upto(3, block=1), "M": upto(150, limit=2**30, BLOCK_M=64),
                               "N": upto(150, once=4000, limit=2**20, BLOCK_N=64)})  # fmt: skip
    drawn = [large_calls(promise, seed, "test", after=20) for seed in SEEDS]
    assert all(sorted(call.number for call in calls) == [21, 22, 23, 24, 25] for calls in drawn)
    found = [[call for call in calls if not _is_far_apart(promise, call)] for calls in drawn]
    for calls in found:
        assert {(call.sizes["M"], call.sizes["N"]) for call in calls} >= {(2**30, 1), (1, 2**20)}
        assert all(call.sizes["B"] in (1, *FEW) for call in calls)
        (m,) = [call.sizes["M"] for call in calls if call.sizes["M"] not in (1, *FEW, 2**30)]
        (n,) = [call.sizes["N"] for call in calls if call.sizes["N"] not in (1, *FEW, 2**20)]
        assert 150 < m < 2**30 and 4000 < n < 2**20
    between = [call.sizes["M"] for calls in found for call in calls if call.sizes["M"] not in (1, *FEW, 2**30)]
    assert min(between) < 2**16 and max(between) > 2**22  # each power of two is as likely as any other


def _is_far_apart(promise: StatedPromise, call: DrawnCall) -> bool:
    return any(_reach(data) > 2**30 > 100 * data.elements for data in promise.data(call) if data.layout.steps)


def _reach(data: Data) -> int:
    return sum((size - 1) * stride for size, stride in zip(data.shape, data.layout.strides(data.shape)[0]))


@pytest.mark.parametrize("seed", SEEDS)
def test_in_one_call_elements_lie_as_far_apart_as_is_promised(seed):
    promise = a_promise()
    (call,) = large_calls(promise, seed, "test", 20)
    for data in promise.data(call):
        assert 2**29 < _reach(data) < 2**31 and 16 < data.shape[-1] <= 150
    tight = contiguous("B", "M", "N")
    assert large_calls(a_promise(x=tight, y=contiguous("N"), z=tight), 1, "test", 20) == []


@pytest.mark.parametrize("block", [16, 64, 100])
def test_a_size_of_each_class_is_what_its_name_says(block):
    for seed in SEEDS:
        sizes = {name: found[0] for name, found in upto(999, block=block).classes(random.Random(seed), block).items()}
        assert sizes["one"] == 1 and 2 <= sizes["a few"] <= 15 and sizes["a block"] == block
        assert sizes["one past several blocks"] % block == 1 and sizes["one past several blocks"] > 4 * block
        assert sizes["several blocks and a part"] % block not in (0, 1, block - 1)
    assert list(upto(1, block=4).classes(random.Random(1), 4)) == ["one"]


# ---- strata ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.id)
def test_what_an_exercise_promises_occurs_in_every_run(folder):
    for promise, test in promises_of(folder):
        for seed in slow.drawn(SEEDS, 6, folder.test_file.read_text(encoding="utf-8")):
            _occurs(promise, drawn_calls(promise, seed, test))


def _occurs(promise: StatedPromise, calls: list[DrawnCall]) -> None:
    assert len(calls) <= MOST_CALLS + GROUP_OF_MOST
    assert {call.dtype for call in calls} == set(promise.dtypes)
    for name, argument in promise.arguments.items():
        kinds, ranges = {call.values[name] for call in calls}, [k for k in argument.values if isinstance(k, Between)]
        assert kinds >= set(argument.values) - set(ranges)
        drawn = {kind.number for kind in kinds - set(argument.values)}
        assert all(any(one.low <= number <= one.high for one in ranges) for number in drawn)
        assert len(drawn) >= 3 * len(ranges)
        rank = len(argument.shape)
        used = {_kind_of_layout(call.layouts[name], rank) for call in calls}
        expected = {_kind_of_layout(family(_Fixed(), rank), rank) for family in argument.families}
        assert expected <= used, name
    for name, sizes in promise.sizes.items():
        if sizes.only:
            assert {call.sizes[name] for call in calls} == set(sizes.only)
        else:
            assert _classes_met(name, sizes, calls) >= {"one", "below", "block", "past"} | _promised_of(sizes)


class _Fixed:
    """In place of random numbers, for the layouts of a family: which numbers does not matter."""

    @staticmethod
    def choice(options):
        return options[0]

    @staticmethod
    def randint(least, most):
        return least


def _kind_of_layout(layout: Layout, rank: int) -> tuple:
    """What kind of layout it is, whatever its numbers."""
    steps = tuple(min(step, 3) for step in layout.steps)
    offset = 0 if not layout.offset else 16 if layout.offset % 16 == 0 else 1
    pads = tuple(16 if pad == 16 else min(pad, 1) for pad in layout.padding)
    own_orders = {(), transposed(rank).order, reversed_order(rank).order}
    order = layout.order if layout.order in own_orders else "any other"
    columns = layout.columns if layout.columns in (1, OWN_PLACE) else "close"
    return order, steps, pads, offset, layout.repeated, layout.sliding, columns


def _classes_met(name, sizes, calls) -> set[str]:
    met = set()
    for call in calls:
        size, block = call.sizes[name], call.constants.get(sizes.name, sizes.block)
        known = {0: "none", 1: "one", block - 1: "below", block: "block", block + 1: "past"}
        met |= {known[size]} if size in known else set()
        met |= {"sixteen"} if size and size % 16 == 0 and size % block else set()
        met |= {"once"} if sizes.once and 9 * sizes.once // 10 <= size <= sizes.once else set()
    return met


def _promised_of(sizes) -> set[str]:
    return {
        name
        for name, is_promised in (("none", not sizes.least), ("once", sizes.once), ("sixteen", sizes.block > 16))
        if is_promised
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_each_kind_of_value_meets_the_first_dtype_and_sizes_of_several_blocks(seed):
    calls = drawn_calls(a_promise(), seed, "test")
    for kind in (normal, large, unusual):
        chosen = [call for call in calls if call.values["x"] is kind]
        assert any(call.dtype == "float32" for call in chosen)
        assert any(call.sizes["M"] > 64 and call.sizes["N"] > 64 for call in chosen)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_arguments_may_lie_alike_and_each_in_its_own_way(seed):
    promise = stated(
        ["x", "z"], ("float32",), dict(sizes={"M": upto(99, block=32), "N": upto(99, block=32)},
                                       x=any_strides("M", "N"), z=target("M", "N")),
    )  # fmt: skip
    pairs = [(call.layouts["x"], call.layouts["z"]) for call in drawn_calls(promise, seed, "test")]
    assert any(x == z and not x.fits_together for x, z in pairs)
    assert sum(x != z for x, z in pairs) > len(pairs) / 2
    assert not any(z.shares_elements for _, z in pairs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("single", ["M", "N"])
def test_one_row_and_one_column_have_odd_strides(seed, single):
    promise = stated(
        ["x"], ("float32",), dict(sizes={"M": upto(99, block=32), "N": upto(99, block=32)}, x=any_strides("M", "N"))
    )
    calls = [call for call in drawn_calls(promise, seed, "test") if call.sizes[single] == 1]
    strides = [call.layouts["x"].strides(promise.data(call)[0].shape)[0] for call in calls]
    assert any(row > 1 and column > 1 for row, column in strides)


def test_seeds_give_other_calls_and_a_seed_gives_the_same():
    promise = a_promise()
    assert drawn_calls(promise, 3, "test") == drawn_calls(promise, 3, "test") != drawn_calls(promise, 4, "test")
    assert drawn_calls(promise, 3, "test") != drawn_calls(promise, 3, "another test")


@pytest.mark.parametrize("seed", range(4))
def test_five_dimensions_and_vectors_are_drawn_too(seed):
    shape = ("A", "B", "C", "D", "E")
    sizes = dict.fromkeys(shape, upto(6, block=4))
    promise = stated(["x", "s", "z"], ("float32", "int32"), dict(
        sizes=sizes, x=any_strides(*shape), s=any_strides("C"), z=target(*shape)))  # fmt: skip
    for call in drawn_calls(promise, seed, "test"):
        for data in promise.data(call):
            generator = generator_for(seed, call.number)
            tensor = data.tensor(getattr(torch, call.dtype), generator)
            assert tensor.shape == data.shape and (data.is_output or not is_poison(tensor).any())


def test_a_dimension_may_be_a_multiple_of_a_size():
    options = dict(sizes={"N": upto(9, least=0, block=4)}, x=any_strides("2*N"), y=contiguous("N"))
    promise = stated(["x", "y"], ("float32",), options)
    shapes = [[data.shape for data in promise.data(call)] for call in drawn_calls(promise, 1, "test")]
    assert [(0,), (0,)] in shapes and all(x[0] == 2 * y[0] for x, y in shapes)


def test_a_dimension_may_be_a_product_of_sizes():
    sizes = {"G": upto(3, block=2), "N": upto(9, least=0, block=4)}
    promise = stated(["x", "y"], ("float32",), dict(sizes=sizes, x=any_strides("2*G*N"), y=contiguous("N")))
    for call in drawn_calls(promise, 1, "test"):
        x, y = (data.shape[0] for data in promise.data(call))
        assert x == 2 * call.sizes["G"] * y
    with pytest.raises(ValueError, match="G"):
        stated(["x"], ("float32",), dict(sizes={"N": upto(9, block=4)}, x=any_strides("G*N")))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_option_is_left_out_in_some_calls_and_a_range_of_whole_numbers_gives_such(seed):
    options = dict(sizes={"N": upto(99, block=16)}, x=contiguous("N"))
    options |= dict(window=optional(between(1, 150)), cap=optional(one_of(0.5, 4.0)))
    promise = stated(["x", "window", "cap"], ("float32",), options)
    given = [promise.data(call)[1:] for call in drawn_calls(promise, seed, "test")]
    windows, caps = ([one for one in values if one is not None] for values in zip(*given))
    assert len(windows) < len(given) > len(caps) and set(caps) == {0.5, 4.0}
    assert {1, 150} < set(windows) and all(type(one) is int and 1 <= one <= 150 for one in windows)
    call = next(call for call in drawn_calls(promise, seed, "test") if promise.data(call)[1] is not None)
    assert any(promise.data(one)[1] is None for one in simpler(promise, call))


def test_inputs_that_are_alike_are_one_tensor_in_a_call():
    sizes = {"M": upto(99, block=16), "N": upto(80, block=16), "D": only(16, 32)}
    options = dict(
        sizes=sizes, q=any_strides("M", "D"), k=any_strides("N", "D"), z=target("M", "N"), v=any_strides("N", "D")
    )
    promise = stated(["q", "k", "z", "v"], ("float32",), options)
    for seed in SEEDS:
        calls = [call for call in drawn_calls(promise, seed, "test") if call.same]
        assert len(calls) == 4 and all(call.sizes["M"] == call.sizes["N"] for call in calls)  # of all, and each pair
        (of_all,) = [call for call in calls if call.same == {"k": "q", "v": "q"}]
        assert [data.same_as for data in promise.data(of_all)] == ["", "q", "", "q"]
        # Strides of its own: a file that takes the strides of a contiguous tensor where two are one is wrong.
        assert of_all.layouts["q"] not in (CONTIGUOUS, *(CONTIGUOUS.at(offset) for offset in (1, 3, 5, 7)))


def test_two_of_several_inputs_are_one_tensor_also_where_the_others_cannot_be_it():
    sizes = {"G": upto(4, block=3), "M": upto(60, block=16), "N": upto(110, block=16), "D": only(16, 32)}
    heads = dict(q=any_strides("G*M", "D"), k=any_strides("N", "D"), v=any_strides("N", "D"))
    promise = stated(["q", "k", "v"], ("float32",), dict(sizes=sizes) | heads)
    of_eight = dict(a=any_strides("M", "N"), b=any_strides("N", "8*G"))
    squares = stated(["a", "b"], ("float32",), dict(sizes={name: sizes[name] for name in "GMN"}) | of_eight)
    for seed in SEEDS:
        assert [call.same for call in drawn_calls(promise, seed, "test") if call.same] == [{"v": "k"}]
        (square,) = [call for call in drawn_calls(squares, seed, "test") if call.same]
        assert square.same == {"b": "a"} and square.sizes["M"] == square.sizes["N"] == 8 * square.sizes["G"] > 16


def test_where_a_size_is_0_the_others_are_near_the_largest_that_they_usually_are():
    sizes = {"M": upto(20, least=0, block=4), "N": upto(2200, least=0, BLOCK_N=1024)}
    promise = stated(["x"], ("float32",), dict(sizes=sizes, x=any_strides("M", "N")))
    for seed in SEEDS:
        empty = [call.sizes for call in drawn_calls(promise, seed, "test") if 0 in call.sizes.values()]
        assert any(one["N"] > 2000 for one in empty) and any(one["M"] > 16 for one in empty)


def test_one_call_has_larger_sizes_than_usual_in_every_direction():
    sizes = {
        "B": upto(3, limit=2**6, block=1),
        "M": upto(60, limit=999, BLOCK_M=64),
        "N": upto(60, limit=999, BLOCK_N=64),
    }
    promise = a_promise(sizes=sizes)
    for seed in SEEDS:
        calls = drawn_calls(promise, seed, "test")
        assert any(call.sizes["B"] > 3 and min(call.sizes["M"], call.sizes["N"]) > 60 for call in calls)


def test_where_no_block_cuts_a_size_the_files_own_blocks_meet_larger_sizes_too():
    sizes = {"B": upto(3, limit=2**6, block=1), "T": upto(6, limit=999, block=4)}
    options = dict(sizes=sizes, x=any_strides("B", "T"), blocks=(dict(SPLITS=3),))
    for seed in SEEDS:
        calls = drawn_calls(stated(["x"], ("float32",), options), seed, "test")
        beyond = [call.constants for call in calls if call.sizes["B"] > 3 and call.sizes["T"] > 6]
        assert {} in beyond and dict(SPLITS=3) in beyond


def test_the_last_group_of_tiles_has_any_number_of_rows_with_more_tiles_than_multiprocessors():
    sizes = {
        "M": upto(60, limit=999, BLOCK_M=64), "K": upto(60, limit=999, BLOCK_K=64), "N": upto(200, limit=999, block=64)
    }  # fmt: skip
    tiny = dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
    options = dict(sizes=sizes, a=any_strides("M", "K"), b=any_strides("K", "N"), gpus=True)
    for seed in SEEDS:
        promise = stated(
            ["a", "b"], ("float16",), options | dict(blocks=(BLOCKS | dict(GROUP_M=2, MULTIPROCESSORS=3), tiny))
        )
        groups = [call for call in drawn_calls(promise, seed, "test") if call.sizes["N"] > 300]
        assert {-(-call.sizes["M"] // 16) for call in groups} == {9, 10, 11, 12, 13, 14, 15}
        assert {call.constants.get(CAPABILITY) for call in groups} == {None, *GPUS}
        assert all(call.constants.items() >= tiny.items() for call in groups)
        without = stated(["a", "b"], ("float16",), options | dict(blocks=(BLOCKS | dict(GROUP_M=2),)))
        assert all(call.sizes["N"] <= 300 for call in drawn_calls(without, seed, "test"))


def test_some_sizes_are_half_a_block_more_than_whole_blocks():
    promise = stated(["x"], ("float32",), dict(sizes={"N": upto(300, BLOCK_N=64)}, x=any_strides("N")))
    for seed in SEEDS:
        assert any(call.sizes["N"] % 64 == 32 for call in drawn_calls(promise, seed, "test"))


def test_a_range_of_numbers_gives_some_that_are_ints_in_python():
    options = dict(sizes={"N": upto(99, block=16)}, x=contiguous("N"), eps=between(1e-3, 1e4))
    promise = stated(["x", "eps"], ("float32",), options)
    for seed in SEEDS:
        given = [promise.data(call)[1] for call in drawn_calls(promise, seed, "test")]
        assert {type(number) for number in given} == {int, float}
        assert all(1e-3 <= number <= 1e4 for number in given)


@pytest.mark.parametrize(
    ("low", "high"), [(-2.0, 0.0), (-2, 3), (-1e4, -1e-3), (0.0, 1.0), (-5, -1)], ids=lambda end: str(end)
)
def test_a_range_may_have_negative_numbers_and_0_in_it(low, high):
    options = dict(sizes={"N": upto(99, block=16)}, x=contiguous("N"), low=between(low, high))
    promise = stated(["x", "low"], ("float32",), options)
    given = {promise.data(call)[1] for seed in SEEDS for call in drawn_calls(promise, seed, "test")}
    assert {low, high} < given and all(low <= number <= high for number in given)
    assert type(low) is float or all(type(number) is int for number in given)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2.0, 1.0), (float("nan"), 1.0), (0.0, float("inf"))])
def test_a_range_without_numbers_is_a_sentence(low, high):
    with pytest.raises(ValueError, match="two numbers were expected, the smaller one first"):
        between(low, high)


def test_calls_state_a_gpu_only_where_the_promise_says_so():
    for seed in SEEDS:
        told = [call.constants.get(CAPABILITY) for call in drawn_calls(a_promise(gpus=True), seed, "test")]
        assert set(told) > {None} and len(set(told)) > 3 and set(told) <= {None, *GPUS}
        assert not any(CAPABILITY in call.constants for call in drawn_calls(a_promise(), seed, "test"))


def test_inputs_that_cannot_have_one_shape_are_never_one_tensor():
    sizes = {"G": upto(4, block=3), "H": upto(4, block=3)}
    options = dict(sizes=sizes, q=any_strides("G*H"), k=any_strides("H"))
    assert not any(call.same for call in drawn_calls(stated(["q", "k"], ("float32",), options), 1, "test"))


def test_one_call_has_many_blocks_in_all_directions():
    sizes = {"B": upto(3, block=1), "M": upto(150, limit=999, BLOCK_M=64), "N": upto(150, limit=999, BLOCK_N=64)}
    promise = a_promise(sizes=sizes, blocks=(dict(BLOCK_M=32, BLOCK_N=32), dict(BLOCK_M=16, BLOCK_N=16)))
    for seed in SEEDS:
        calls = [call for call in drawn_calls(promise, seed, "test") if call.constants.get("BLOCK_M") == 16]
        assert any(min(call.sizes["M"], call.sizes["N"]) > 13 * 16 for call in calls)


@pytest.mark.parametrize(
    "wrong",
    [dict(z=target("W")), dict(sizes={"N": upto(9, block=4)}), dict(w=contiguous("N"))],
    ids=["an unknown size", "a size without a promise", "another argument"],
)
def test_a_promise_that_does_not_fit_is_refused(wrong):
    with pytest.raises(ValueError, match="drawn"):
        a_promise(**wrong)


# ---- layouts and values ----------------------------------------------------------------------------------------------

LAYOUTS = {
    "every third column": (every(3), (21, 3)),
    "every third column of every second row": (every(3, rows=2), (42, 3)),
    "rows padded by 5": (padded(5), (12, 1)),
    "transposed": (transposed(), (1, 5)),
    "transposed, columns padded by 3": (transposed(padding=3), (1, 8)),
    "transposed, columns aligned to 16 elements": (transposed(padding=7, multiple=16), (1, 16)),
    "one row, expanded": (repeated(0), (0, 1)),
    "one column, expanded": (repeated(1), (1, 0)),
    "overlapping rows": (OVERLAPPING, (1, 1)),
    "3 elements in": (CONTIGUOUS.at(3), (7, 1)),
    "rows padded by 5, 3 elements in": (padded(5).at(3), (12, 1)),
    "dimensions reversed": (reversed_order(2), (1, 5)),
    "one element, expanded": (repeated_all(2), (0, 0)),
    "rows aligned to 8 elements": (ALIGNED_ROWS, (8, 1)),
    "rows padded by 5, up to 8": (padded(5, name="rows padded by 5, up to 8", multiple=8), (16, 1)),
    "far apart along dimension 0": (far_apart((5, 7), 0, 1000), (196, 1)),
    "far apart along dimension 1": (far_apart((5, 7), 1, 1000), (1, 140)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_what_its_name_says_and_holes_hold_poison(name):
    layout, strides = LAYOUTS[name]
    data = replace(normal(5, 7), layout=layout)
    tensor = data.tensor(torch.float32, generator_for(1))
    assert data.label == f"5 x 7 ({name})" and tensor.shape == (5, 7) and tensor.stride() == strides
    assert tensor.storage_offset() == layout.offset
    whole_memory = torch.empty(0).set_(tensor.untyped_storage())
    places = (torch.arange(5)[:, None] * strides[0] + torch.arange(7) * strides[1]).unique().numel()
    assert int((~is_poison(whole_memory)).sum()) == places and not is_poison(tensor).any()
    assert Data.from_json(json.loads(json.dumps(data.to_json()))) == data


def test_overlapping_rows_hold_the_values_of_a_copy_in_order():
    data = replace(normal(4, 6), layout=OVERLAPPING)
    tensor, values = (one.tensor(torch.float64, generator_for(1)) for one in (data, normal(4, 6)))
    assert torch.equal(tensor[0], values[0]) and torch.equal(tensor[1, :-1], tensor[0, 1:])
    assert torch.equal(tensor[:, -1], values[:, -1])


@pytest.mark.parametrize("shape", [(400, 1), (400, 50), (3, 40, 20)])
def test_one_element_of_most_rows_is_infinite_or_no_number(shape):
    rows = lone(*shape).tensor(torch.float32, generator_for(2)).reshape(-1, shape[-1])
    unusual = ~rows.isfinite()
    assert set(unusual.sum(dim=1).tolist()) == {0, 1}
    assert all((rows == value).any() for value in (math.inf, -math.inf)) and bool(rows.isnan().any())
    assert bool(unusual[:, 0].any()) and bool(unusual[:, -1].any()) and 0.6 < float(unusual.sum()) / len(rows) < 0.9
    assert int((~lone(50).tensor(torch.float32, generator_for(3)).isfinite()).sum()) == 1


def test_sums_of_rows_lie_on_both_sides_of_the_largest_number_of_fp16():
    values = around_fp16_max(200, 33).tensor(torch.float16, generator_for(2)).double()
    sums = values.sum(dim=1)
    assert bool(values.isfinite().all()) and bool(((values >= 0).all(dim=1) | (values <= 0).all(dim=1)).all())
    for signed in (sums, -sums):
        assert int((signed > 65520).sum()) > 20 and int(((signed > 8000) & (signed < 65504)).sum()) > 20
    assert bool(around_fp16_max(9, 1).tensor(torch.float16, generator_for(2)).isfinite().all())


@pytest.mark.parametrize("columns", [64, 379, 5000])
def test_some_sums_of_rows_are_just_above_the_largest_number_of_fp16_and_round_to_it(columns):
    sums = around_fp16_max(60, columns).tensor(torch.float16, generator_for(2)).double().sum(dim=1)
    just = sums.abs() == 65512
    assert 15 < int(just.sum()) < 45 and bool((sums[just].half().abs() == 65504).all())
    assert bool((sums[just] > 0).any()) and bool((sums[just] < 0).any())


def test_a_peak_counts_as_much_as_the_floor():
    for N in (1, 40, 5000):
        values = peaked(20, N).tensor(torch.float64, generator_for(2))
        assert bool((values.amax(dim=1) == 0).all()) and bool(((values == 0).sum(dim=1) == 1).all())
        floor = values.exp().sum(dim=1) - 1
        assert N == 1 or bool(((floor > 0.1) & (floor < 2)).all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_values_near_the_limits_of_a_dtype(dtype):
    limits = torch.finfo(dtype)
    big, small = (kind(40, 50).tensor(dtype, generator_for(2)).double() for kind in (large, subnormal))
    assert bool(big.isfinite().all()) and float((big.abs() > 0.1 * limits.max).double().mean()) > 0.2
    assert float((small.abs() < limits.tiny).double().mean()) > 0.9 and float((small != 0).double().mean()) > 0.9


def test_whole_numbers_are_more_than_fp32_holds():
    tensor = whole(40, 50).tensor(torch.int32, generator_for(2))
    assert float((tensor.float().double() != tensor.double()).double().mean()) > 0.5


@pytest.mark.parametrize("seed", range(10))
def test_some_rows_hold_minus_infinity_alone_and_some_do_not(seed):
    rows = (some_minus_infinity(30, 9).tensor(torch.float32, generator_for(seed)) == -math.inf).all(dim=1)
    assert bool(rows[0]) and 0 < int(rows.sum()) < 30


# ---- the simplest call -----------------------------------------------------------------------------------------------


def test_what_a_failure_does_not_need_is_left_out():
    promise = a_promise()
    call = max(drawn_calls(promise, 1, "test"), key=lambda call: call.sizes["M"])
    call = replace(call, layouts=call.layouts | {"x": every(3, 3)}, values=call.values | {"x": unusual})

    def fails(call) -> bool:
        return call.sizes["M"] >= 16 and call.layouts["x"] != CONTIGUOUS

    found = smallest(promise, call, fails, 40)
    assert fails(found) and found.sizes["M"] < 32 and found.sizes["B"] == found.sizes["N"] == 1
    assert found.layouts["x"] == every(3, 3) and found.layouts["z"] == CONTIGUOUS
    assert found.values["x"] is normal and found.dtype == "float32" and not found.constants
    assert smallest(promise, call, fails, 40) == found


def test_no_more_calls_are_tried_than_allowed_and_none_twice():
    promise, tried = a_promise(), []
    call = drawn_calls(promise, 1, "test")[0]
    smallest(promise, call, lambda one: bool(tried.append(one)), 7)
    assert len(tried) == 7 and all(one != call for one in tried)
    assert len({repr(one) for one in tried}) == 7


@pytest.mark.parametrize("seed", range(5))
def test_a_simpler_call_is_one_that_is_promised(seed):
    promise = a_promise()
    for call in drawn_calls(promise, seed, "test"):
        for one in simpler(promise, call):
            assert all(0 < size <= call.sizes[name] or size == call.sizes[name] for name, size in one.sizes.items())
            assert one.number == call.number and one != call


# ---- in the judge ----------------------------------------------------------------------------------------------------

LANES = """
import torch
import triton
import triton.language as tl
BLOCK_N = 1024

@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = {mask}
    z = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, {stored}, mask=mask)

def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
"""
RIGHT = LANES.format(mask="offsets < N", stored="z")
NO_NAN = LANES.format(mask="offsets < N", stored="tl.where(z == z, z, 0.0)")
SIXTEENS = LANES.format(mask="(offsets < N) | (N % 16 == 0)", stored="z")


def verdict_on(judge: Judge, promise: StatedPromise, test: str) -> Verdict:
    return drawn_verdict(judge, DrawnTrials(judge.exercise, judge.run, test, promise))


def drawn(bench, source: str, seed: int):
    folder = FOLDERS[0]
    promise, test = promise_of(folder)
    return verdict_on(bench(source, folder.id, seed).judge, promise, test)


def test_a_right_kernel_passes_whatever_is_drawn(bench):
    """From one seed, as other right kernels from others in every run of `course check`."""
    verdict = drawn(bench, RIGHT, 0)
    assert verdict.outcome == "pass" and verdict.note.endswith("calls")


@pytest.mark.parametrize("seed", range(2))
def test_values_that_a_failure_needs_stay_in_its_call_and_the_rest_goes(bench, seed):
    verdict = drawn(bench, NO_NAN, seed)
    assert verdict.outcome == "fail" and "special values are changed" in verdict.lines[0]
    assert "with inf, NaN and -0.0" in verdict.case and "elements in" not in verdict.case


def test_of_a_promise_that_states_a_share_the_first_calls_are_judged(bench):
    promise, test = promise_of(FOLDERS[0])
    judge = bench(RIGHT, FOLDERS[0].id, 3).judge
    whole, fourth = (DrawnTrials(judge.exercise, judge.run, test, replace(promise, share=n)).calls for n in (1, 0.25))
    assert fourth == whole[: len(fourth)] and len(fourth) == math.ceil(len(whole) / 4)


def test_a_seed_repeats_the_call_that_is_shown(bench):
    first, again = (drawn(bench, SIXTEENS, 5) for _ in range(2))
    assert first.id == again.id == "oob-store"
    assert first.case == again.case and int(first.case.split()[0]) % 16 == 0


def test_a_drawn_call_is_shown_with_its_seed_and_waits_for_named_ones(tmp_path):
    path, result = tmp_path / "masked_add.py", tmp_path / "result.json"
    arguments = ["exercises/01_masked_add", "--submission", path, "--seed", "7", "--result", result]
    path.write_text(NO_NAN)
    shown = run_pytest(*arguments, cwd=ROOT).out
    tests = {test["name"]: test for test in json.loads(result.read_text())["tests"]}
    assert tests["test_any_call_that_the_lesson_promises"]["outcome"] == "fail"
    assert tests["test_any_call_that_the_lesson_promises"]["item"] == "right"
    assert "with inf, NaN and -0.0" in shown and "--seed 7" in shown
    path.write_text(LANES.format(mask="offsets <= N", stored="z"))
    run_pytest(*arguments, cwd=ROOT)
    tests = {test["name"]: test for test in json.loads(result.read_text())["tests"]}
    assert tests["test_any_call_that_the_lesson_promises"]["message"] == "waits for right values"


# ---- mutants that only drawn calls reject ----------------------------------------------------------------------------

ONLY_DRAWN = {
    f"{folder.id}/{mutant.name}": (folder, mutant.text)
    for folder in FOLDERS
    for mutant in mutants_of(folder)
    if "Only a drawn call shows it." in mutant.wrong
}


# Each is proven by `course check`; here a few are, for calls drawn from seeds of their own.
@pytest.mark.parametrize("name", slow.drawn(ONLY_DRAWN, 2, "".join(text for _, text in ONLY_DRAWN.values())))
def test_what_only_drawn_calls_show_is_rejected_in_every_run(bench, monkeypatch, name):
    """No simpler call is looked for: another would only say the same."""
    monkeypatch.setattr(drawn_trials, "MOST_SIMPLER", 0)
    folder, text = ONLY_DRAWN[name]
    promise, test = promise_of(folder)
    judge = bench(text, folder.id).judge
    for seed in range(3) if slow.SLOW else [zlib.crc32(text.encode())]:
        judge.run.seed = seed
        assert verdict_on(judge, promise, test).outcome == "fail", seed


def test_there_are_mutants_that_only_drawn_calls_reject():
    assert {folder.id for folder, _ in ONLY_DRAWN.values()} == {folder.id for folder in FOLDERS}


def test_half_of_very_many_blocks_hold_no_finite_number():
    def hollow(*shape):
        return leading(float("-inf"), normal(*shape))

    sizes = {"N": upto(20_000, limit=2**27, BLOCK_N=8192)}
    options = dict(sizes=sizes, x=any_strides("N", values=(normal, hollow)), blocks=({"BLOCK_N": 128},))
    for seed in range(6):
        calls = drawn_calls(stated(["x"], ("float32",), options), seed, "test")
        (call,) = [call for call in calls if call.sizes["N"] > 20_000]
        assert call.constants == {"BLOCK_N": 128} and call.values["x"] is hollow and not call.layouts["x"].repeated
        assert call.sizes["N"] // 2 > 1024 * 128  # as many as 134 million elements in blocks of 8192 may have
    without = options | {"x": any_strides("N", values=(normal, unusual))}
    assert all(call.sizes["N"] <= 20_000 for call in drawn_calls(stated(["x"], ("float32",), without), 1, "test"))


def test_sizes_are_drawn_around_the_numbers_of_a_file():
    """Whatever the seed, the last calls have a size that is such a number, or one less or more; others stay."""
    sizes = {"B": upto(3, block=1), "M": upto(150, BLOCK_M=64), "N": upto(150, limit=2**30, BLOCK_N=64)}
    promise = a_promise(sizes=sizes)
    for seed in range(6):
        calls, plain = (drawn_calls(promise, seed, "test", numbers) for numbers in ([500, 2000, 1 << 20], []))
        assert calls[: len(plain)] == plain
        around = [call.sizes for call in calls[len(plain) :]]
        assert len(around) == 2 and {abs(sizes["N"] - 500) <= 1 for sizes in around} == {True, False}
        assert all(sizes["N"] <= 2001 and sizes["M"] <= 150 for sizes in around)  # larger ones are for samples


def test_the_numbers_of_a_file_are_found_where_they_stand_and_where_they_are_made():
    text = "BLOCK = 64\nLIMIT = 1 << 17\ndef f(x):\n    return x > 2 * 1024 - 1 or x == 2 ** 20 or x < 3.5 or x == True"
    assert whole_numbers(ast.parse(text)) == [17, 20, 64, 1024, 2047, 2048, 1 << 17, 1 << 20]
    assert whole_numbers(ast.parse("")) == []
    assert whole_numbers(ast.parse("x = 2 ** 5000 + (1 << 5000)")) == [5000]


def test_the_numbers_of_a_file_are_also_those_that_its_names_for_numbers_make():
    text = """
BLOCK_M, BLOCK_N = 64, 2 * 128
LIMIT: tl.constexpr = tl.constexpr(8 * BLOCK_N)
BLOCK_N //= 2
@triton.jit
def f(x, BLOCK_N: tl.constexpr):
    if x > 40 * BLOCK_N or x > LIMIT - 3 or x > unknown * 5 or x > BLOCK_M // 0:
        y = BLOCK_M // 2
"""
    assert whole_numbers(ast.parse(text)) == [3, 5, 8, 32, 40, 64, 128, 256, 2045, 2048, 10240]
