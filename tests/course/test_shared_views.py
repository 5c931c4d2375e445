"""Calls in which an input is a part of another one: what a host function does where two addresses are equal shows."""

from __future__ import annotations

import random

import pytest
import torch

from grader import any_strides, contiguous, into, only, target, upto
from grader.course.drawn_calls import drawn_calls
from grader.course.exercise import Exercise
from grader.course.folder import all_folders
from grader.course.promise import stated
from grader.course.shared_views import MOST_VIEWS, shared_views
from grader.course.simpler_calls import simpler
from grader.course.trial import Trial
from grader.explain.verdict import FAIL, PASS
from tests import slow
from tests.conftest import ROOT, folders_with_kernels
from tests.course.test_drawn import promise_of, verdict_on

SEEDS = range(10)
MATRICES = dict(
    sizes={"M": upto(90, BLOCK_M=64), "K": upto(90, BLOCK_K=64), "N": upto(90, BLOCK_N=64)},
    a=any_strides("M", "K"), b=any_strides("K", "N"),
)  # fmt: skip


def of_x_and_y(data) -> Trial:
    exercise = Exercise("shared", reference=lambda x, y: x, bound="exact", minutes=1)
    return Trial(exercise, "test", data, torch.float32, "exact")


def parts_of(names, options, seed=1):
    promise = stated(names, ("float32",), options)
    return promise, [call for call in drawn_calls(promise, seed, "test") if call.parts]


@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_matrices_one_is_the_other_itself_and_its_transpose(seed):
    _, calls = parts_of(["a", "b"], MATRICES, seed)
    assert len(calls) == 2 and {call.layouts["b"].name for call in calls} == {"", "transposed"}
    for call in calls:
        assert call.parts == {"b": "a"} and len(set(call.sizes.values())) == 1


def test_matrices_whose_sizes_are_all_stated_have_such_calls_where_they_are_alike():
    both = dict(a=any_strides("M", "K"), b=any_strides("K", "N"))
    _, calls = parts_of(["a", "b"], dict(sizes={"M": only(64), "K": only(64), "N": only(64)}) | both)
    assert calls
    _, calls = parts_of(["a", "b"], dict(sizes={"M": only(64), "K": only(96), "N": only(32)}) | both)
    assert not calls


@pytest.mark.parametrize("seed", SEEDS)
def test_of_three_matrices_each_two_are_once_the_transpose_of_each_other(seed):
    options = dict(
        sizes={"M": upto(90, block=32), "N": upto(90, block=32)}, **dict.fromkeys("abc", any_strides("M", "N"))
    )
    _, calls = parts_of(["a", "b", "c"], options, seed)
    turned = [call.parts for call in calls if any(call.layouts[part].name == "transposed" for part in call.parts)]
    assert len(calls) == MOST_VIEWS and sorted(map(str, turned)) == sorted(
        map(str, ({"b": "a"}, {"c": "a"}, {"c": "b"}))
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_vectors_one_is_every_second_element_of_the_other(seed):
    options = dict(sizes={"M": upto(90, block=32), "N": upto(90, block=32)}, x=any_strides("M"), y=any_strides("N"))
    promise, (call,) = parts_of(["x", "y"], options, seed)
    x, y = of_x_and_y(promise.data(call)).inputs(seed)
    assert call.parts == {"y": "x"} and y.stride() == (2,) and torch.equal(y, x[::2][: len(y)])


def test_a_vector_is_the_first_row_of_a_matrix():
    sizes = {"M": upto(90, block=32), "K": upto(90, block=32)}
    options = dict(sizes=sizes, x=any_strides("M", "K"), y=contiguous("K"))
    promise, (call,) = parts_of(["x", "y"], options)
    x, y = of_x_and_y(promise.data(call)).inputs(1)
    assert torch.equal(y, x[0]) and promise.data(call)[1].label.endswith("(from the first element of x on)")


def test_a_vector_of_any_stride_is_also_a_row_of_a_matrix_that_lies_transposed():
    sizes = {"M": upto(90, block=32), "K": upto(90, block=32)}
    options = dict(sizes=sizes, x=any_strides("M", "K"), y=any_strides("K"))
    for seed in SEEDS:
        promise, calls = parts_of(["x", "y"], options, seed)
        given = [of_x_and_y(promise.data(call)).inputs(1) for call in calls]
        rows = [call.places["y"] // x.stride(0) for call, (x, _) in zip(calls, given)]
        assert all(torch.equal(y, x[row]) for row, (x, y) in zip(rows, given)), rows
        assert {y.stride(0) > 1 for _, y in given} == {False, True}


def test_tensors_of_four_dimensions_are_one_memory_with_their_first_two_exchanged():
    sizes = {name: upto(4, block=3) for name in "GBH"} | {"N": upto(50, block=16), "D": only(16, 32)}
    heads = dict(
        q=any_strides("B", "G*H", "N", "D"), k=any_strides("B", "H", "N", "D"), v=any_strides("B", "H", "N", "D")
    )
    for seed in SEEDS:
        promise, (call,) = parts_of(["q", "k", "v"], dict(sizes=sizes) | heads, seed)
        assert call.parts == {"v": "k"} and call.sizes["B"] == call.sizes["H"] > 1
        assert promise.data(call)[2].layout.order == (1, 0, 2, 3)


def test_what_is_stored_in_and_indices_are_no_part_of_anything():
    sizes = {"M": upto(90, block=32), "N": upto(90, block=32)}
    options = dict(sizes=sizes, x=any_strides("M", "N"), z=target("M", "N"), i=contiguous("N", values=(into("M"),)))
    assert parts_of(["x", "z", "i"], options)[1] == []


@pytest.mark.parametrize("folder", folders_with_kernels(), ids=lambda folder: folder.id)
def test_a_part_lies_within_the_other_argument_in_every_exercise(folder):
    promise, test = promise_of(folder)
    for seed in slow.drawn(SEEDS, 3, folder.test_file.read_text(encoding="utf-8")):
        for call in drawn_calls(promise, seed, test):
            data = dict(zip(promise.arguments, promise.data(call)))
            for part, whole in call.parts.items():
                strides, _ = data[part].layout.strides(data[part].shape)
                reach = sum((size - 1) * stride for size, stride in zip(data[part].shape, strides))
                assert reach < data[whole].elements and data[whole].layout.name in ("", "transposed")


def test_a_simpler_call_has_no_part_or_the_same_one():
    promise, (call, _) = parts_of(["a", "b"], MATRICES)
    found = list(simpler(promise, call))
    assert found[0].parts == {} and all(one.parts == call.parts and one.sizes == call.sizes for one in found[1:])


def test_the_same_numbers_give_the_same_views():
    promise = stated(["a", "b"], ("float32",), MATRICES)
    assert shared_views(promise, random.Random(3)) == shared_views(promise, random.Random(3))


# ---- in the judge ----------------------------------------------------------------------------------------------------

OUTER = (ROOT / "solutions/06_fused_outer/fused_outer.py").read_text()
BY_ADDRESS = ("y.stride(0), z.stride(0)", "x.stride(0) if x.data_ptr() == y.data_ptr() else y.stride(0), z.stride(0)")


@pytest.mark.parametrize(("change", "outcome"), [(BY_ADDRESS, FAIL), (("", ""), PASS)])
def test_a_stride_that_is_taken_from_another_view_of_the_memory_is_found(bench, change, outcome):
    folder = next(folder for folder in all_folders(ROOT) if folder.id == "06_fused_outer")
    promise, test = promise_of(folder)
    judged = bench(OUTER.replace(*change), folder.id)
    verdict = verdict_on(judged.judge, promise, test)
    assert verdict.outcome == outcome
    if outcome == FAIL:
        assert "from the first element of x on" in verdict.case


NORM = (ROOT / "solutions/10_rms_norm/rms_norm.py").read_text()


def test_where_one_address_alone_is_the_reason_it_is_told(bench):
    taken = "sx = (0, weight.stride(0)) if x.data_ptr() == weight.data_ptr() else x.stride()"
    text = NORM.replace("    M, N = x.shape", f"    M, N = x.shape\n    {taken}").replace("*x.stride(), ", "*sx, ")
    assert text.count("sx") == 2
    folder = next(folder for folder in all_folders(ROOT) if folder.id == "10_rms_norm")
    promise, test = promise_of(folder)
    verdict = verdict_on(bench(text, folder.id).judge, promise, test)
    assert verdict.outcome == FAIL
    assert verdict.lines[0].startswith("Right for tensors of their own, wrong where weight begins at the address of x")
