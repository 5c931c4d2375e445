"""Calls up to a promise's limits: around numbers of the file, with one row seen in all, with rows far apart."""

from __future__ import annotations

import pytest

from grader import any_strides, between, contiguous, into, large, normal, only, optional, subnormal, unusual, upto
from grader.course.drawn_calls import drawn_calls
from grader.course.large_calls import ALIGNMENT, FEW, FEW_BLOCKS, MOST_KINDS, is_sampled, large_calls
from grader.course.promise import REACH, stated

SEEDS = range(20)
SIZES = {"M": upto(12, limit=2**30, block=4), "N": upto(150, limit=2**20, BLOCK_N=64)}


def is_far_apart(call):
    return call.layouts["x"].name.startswith("far apart")


def is_of_many(call):
    """True if several sizes are large in the call at once."""
    return sum(size > 16 for size in call.sizes.values()) > 1


def a_promise(sizes=SIZES, **options):
    return stated(["x"], ("float32", "float16"), dict(sizes=sizes, x=any_strides("M", "N", **options)))


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_of_a_file_that_are_too_large_for_calls_in_full_bring_large_ones(seed):
    plain, calls = (large_calls(a_promise(), seed, "test", 32, numbers) for numbers in ([], [8, 200, 1 << 19]))
    assert calls[: len(plain)] == plain and [call.number for call in calls] == list(range(33, 33 + len(calls)))
    around = [call.sizes for call in calls[len(plain) :]]
    assert all(min(sizes.values()) <= 2 for sizes in around) and len(around) == 4
    near = [size - (1 << 19) for sizes in around for size in [max(sizes.values())]]
    assert sum(abs(past) <= 1 for past in near) == 2 and all(-1 <= past <= FEW_BLOCKS * 64 for past in near)
    assert all(call.dtype == "float32" for call in calls[len(plain) :])


@pytest.mark.parametrize("seed", SEEDS)
def test_on_the_way_to_a_limit_at_which_a_sample_is_run_all_rows_are_one_row(seed):
    promise = a_promise()
    calls = [call for call in large_calls(promise, seed, "test", 32) if call.sizes["M"] > 4096]
    (at_limit,) = [call for call in calls if call.sizes["M"] == 2**30]
    (between,) = [call for call in calls if call.sizes["M"] < 2**30]
    assert is_sampled(promise, at_limit) and not at_limit.layouts["x"].repeated
    assert between.layouts["x"].repeated


@pytest.mark.parametrize("seed", SEEDS)
def test_calls_that_are_judged_in_full_have_a_kind_of_values_each(seed):
    kinds = (normal, subnormal, unusual, large)
    sizes = {"M": upto(6, limit=2**10, block=4), "N": upto(40, limit=2**12, block=16)}
    promise = a_promise(sizes=sizes, values=kinds)
    calls = [call for call in large_calls(promise, seed, "test", 32) if not is_far_apart(call) and not is_of_many(call)]
    assert not any(is_sampled(promise, call) for call in calls)
    assert all(other in FEW for call in calls for other in [min(call.sizes.values())])  # one row would show little
    for name, size in sizes.items():
        on_the_way = [call for call in calls if size.most < call.sizes[name] < size.limit]
        assert len({call.values["x"] for call in on_the_way}) == len(on_the_way) == MOST_KINDS
        aligned = [call.sizes[name] for call in on_the_way if call.sizes[name] % ALIGNMENT == 0]
        assert any(size & (size - 1) for size in aligned)
        assert any(call.sizes[name] % size.block == 1 for call in on_the_way)  # the last block holds one element
        assert [call.values["x"] for call in calls if call.sizes[name] == size.limit] == [normal]


def test_a_tile_that_no_constant_names_counts_as_one_and_a_block_of_heads_does_not():
    for block, wide in ((128, True), (16, False)):
        sizes = {"M": upto(40, limit=2**16, block=block), "N": upto(40, limit=2**16, block=block)}
        calls = large_calls(a_promise(sizes=sizes), 1, "test", 32)
        at_limit = [call for call in calls if max(call.sizes.values()) == 2**16]
        assert [is_sampled(a_promise(sizes=sizes), call) for call in at_limit] == [wide, wide]


def test_where_a_size_has_few_values_large_ones_are_judged_in_full_too():
    sizes = {"N": upto(150, limit=2**16, BLOCK_N=64), "D": only(16, 128)}
    promise = stated(["k"], ("float32",), dict(sizes=sizes, k=any_strides("N", "D")))
    for seed in SEEDS:
        calls = large_calls(promise, seed, "test", 32)
        assert any(2**13 < call.sizes["N"] <= 2**14 and not is_sampled(promise, call) for call in calls)


def test_a_size_that_indices_point_into_has_several_and_many_indices_have_as_much_to_point_to():
    sizes = {"K": upto(20, limit=2**16, block=4), "P": upto(9, limit=2**20, block=4)}
    given = dict(x=contiguous("P"), at=any_strides("K", values=(into("P"),)))
    promise = stated(["x", "at"], ("float32",), dict(sizes=sizes) | given)
    calls = [call for call in large_calls(promise, 1, "test", 32) if max(call.sizes.values()) > 2**12]
    assert {call.sizes["K"] for call in calls if call.sizes["P"] == 2**20} <= set(FEW)
    assert {call.sizes["P"] for call in calls if call.sizes["K"] == 2**16} == {2**16}


def test_many_indices_into_rows_of_their_own_have_few_columns_each():
    """Else a matrix would have as many rows as there may be, and as many columns."""
    sizes = {"M": upto(20, limit=2**20, block=4), "V": upto(9, limit=2**18, block=4)}
    given = dict(x=any_strides("M", "V"), at=contiguous("M", values=(into("V"),)))
    promise = stated(["x", "at"], ("float32",), dict(sizes=sizes) | given)
    calls = [call for call in large_calls(promise, 1, "test", 32) if not is_of_many(call)]
    assert {call.sizes["V"] for call in calls if call.sizes["M"] == 2**20} <= set(FEW)
    assert {call.sizes["M"] for call in calls if call.sizes["V"] == 2**18} <= set(FEW)


def test_sizes_that_are_multiplied_with_each_other_are_never_both_1_in_a_large_call():
    sizes = {"G": upto(4, limit=2**10, block=3), "N": upto(4, limit=2**10, block=3)}
    promise = stated(["x"], ("float32",), dict(sizes=sizes, x=contiguous("G*N")))
    calls = [
        call for call in large_calls(promise, 1, "test", 32) if max(call.sizes.values()) > 4 and not is_of_many(call)
    ]
    for name in sizes:
        others = [min(call.sizes.values()) for call in calls if call.sizes[name] == max(call.sizes.values())]
        assert set(others) <= set(FEW) and len(set(others)) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_large_size_comes_with_each_of_a_few_values_of_its_factor_and_values_that_show_it(seed):
    """With values below the smallest normal number a softmax's weights are all alike, whatever q is read."""
    sizes = {"G": upto(4, limit=512, block=3), "N": upto(4, limit=512, block=3)}
    promise = stated(["x"], ("float32",), dict(sizes=sizes, x=contiguous("G*N", values=(normal, subnormal, unusual))))
    calls = [call for call in large_calls(promise, seed, "test", 32) if call.values["x"] is not subnormal]
    for name, other in (("G", "N"), ("N", "G")):
        assert {call.sizes[other] for call in calls if call.sizes[name] > 4} >= set(FEW)


def test_a_vector_is_never_one_element_in_all():
    options = dict(sizes={"N": upto(150, limit=2**20, BLOCK_N=64)}, x=any_strides("N"))
    for seed in SEEDS:
        calls = large_calls(stated(["x"], ("float32",), options), seed, "test", 32)
        assert not any(call.layouts["x"].repeated for call in calls)


@pytest.mark.parametrize("seed", SEEDS)
def test_where_more_is_promised_rows_lie_further_apart_also_with_one_column_expanded(seed):
    promise = a_promise(reach=2**33)
    layouts = [call.layouts["x"] for call in large_calls(promise, seed, "test", 32) if is_far_apart(call)]
    assert [layout.repeated for layout in layouts].count((1,)) == 1 and len(layouts) == 2
    for call in large_calls(promise, seed, "test", 32):
        (data,) = promise.data(call)
        strides, _ = data.layout.strides(data.shape)
        if data.layout.name.startswith("far apart"):
            assert (data.shape[0] - 1) * strides[0] > 2 * REACH and data.shape[1] * strides[1] < REACH


@pytest.mark.parametrize("seed", SEEDS)
def test_elements_of_a_vector_lie_far_apart_in_the_blocks_of_the_file_too(seed):
    options = dict(sizes={"N": upto(150, BLOCK_N=64)}, x=any_strides("N"), blocks=({"BLOCK_N": 8},))
    calls = large_calls(stated(["x"], ("float32",), options), seed, "test", 32)
    assert all(call.layouts["x"].name.startswith("far apart") for call in calls)
    assert sorted(call.constants.get("BLOCK_N", 0) for call in calls) == [0, 8]
    assert all(64 < call.sizes["N"] < 2 * 64 for call in calls if not call.constants)


def test_an_option_is_at_its_largest_where_a_size_is():
    sizes = {"N": upto(150, limit=2**20, BLOCK_N=64)}
    options = dict(x=any_strides("N"), window=optional(between(1, 2**30)), eps=between(1e-6, 10.0))
    promise = stated(["x", "window", "eps"], ("float32",), dict(sizes=sizes) | options)
    for seed in SEEDS:
        (call,) = [call for call in large_calls(promise, seed, "test", 32) if call.sizes["N"] == 2**20]
        assert promise.data(call)[1] == 2**30 and promise.data(call)[2] < 10.0


def test_without_a_limit_there_is_none():
    options = dict(sizes={"N": upto(150, BLOCK_N=64)}, x=contiguous("N"))
    assert large_calls(stated(["x"], ("float32",), options), 1, "test", 32, [1 << 19]) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_many_rows_of_wide_blocks_are_run_in_full_with_narrow_ones_and_else_in_a_sample(seed):
    sizes = {"M": upto(12, limit=2**30, block=4), "N": upto(9000, BLOCK_N=4096)}
    wide = stated(["x"], ("float32",), dict(sizes=sizes, x=any_strides("M", "N"), blocks=({"BLOCK_N": 256},)))
    in_full = drawn_calls(wide, seed, "test", [4096])[len(drawn_calls(wide, seed, "test")) :]
    of_rows = [call for call in in_full if call.sizes["M"] > 12]
    assert of_rows and all(call.constants == {"BLOCK_N": 256} for call in of_rows)
    assert all(call.constants == {} for call in in_full if call.sizes["M"] <= 12)
    plain, calls = (large_calls(wide, seed, "test", 32, numbers) for numbers in ([], [4096]))
    in_samples = calls[len(plain) :]
    assert [(call.sizes["M"] >= 4095, call.constants) for call in in_samples] == [(True, {})] * 2


@pytest.mark.parametrize("seed", SEEDS)
def test_sizes_that_no_block_cuts_are_large_at_once_with_as_many_programs_as_are_all_run(seed):
    heads = {"B": upto(4, limit=65535, block=3), "H": upto(4, limit=65535, block=3)}
    sizes = heads | {"M": upto(80, limit=2**16, BLOCK_M=128), "D": only(16, 64)}
    options = dict(sizes=sizes, q=any_strides("B", "H", "M", "D"), blocks=({"BLOCK_M": 32}, {"BLOCK_M": 16}))
    promise = stated(["q"], ("float16",), options)
    (call,) = [call for call in large_calls(promise, seed, "test", 32) if is_of_many(call)]
    assert call.constants == {"BLOCK_M": 16} and not is_sampled(promise, call)
    assert 1024 < call.sizes["B"] * call.sizes["H"] <= 2048 and call.sizes["M"] in FEW and call.sizes["D"] == 16
