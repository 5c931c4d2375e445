"""The comparison, the bounds and the data sets: just inside passes, just outside fails, every special value counts."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
import torch

from grader.course.cut import Cut
from grader.judging.in_interpreter import _order_matters, _same_bits
from grader.numerics.bounds import tolerance
from grader.numerics.comparison import compare, is_right, quick_error
from grader.numerics.data_sets import (
    falling_down,
    first_row,
    generator_for,
    indices,
    integers,
    last_row,
    normal,
    one_hot,
    output,
    slots,
    whole,
    with_some,
)
from grader.numerics.exact_data import a_code_each, cancelling, cancelling_down, cancelling_rows, codes
from grader.numerics.layouts import OWN_PLACE, Layout, as_if_contiguous
from grader.numerics.poison import is_poison
from grader.numerics.rounding_models import PRODUCT, SOFTMAX
from grader.wire.reply import Reply

SOFTMAX_IN = torch.randn(8, 100, generator=torch.Generator().manual_seed(1), dtype=torch.float64).float().double()


def softmax_ref() -> torch.Tensor:
    return torch.softmax(SOFTMAX_IN, dim=-1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize(("share", "right"), [(0.9, True), (1.1, False)])
def test_one_element_just_inside_and_just_outside_of_the_bound(dtype, share, right):
    ref = softmax_ref().to(dtype).double()
    out = ref.clone()
    out[3, 7] += share * tolerance(SOFTMAX, [SOFTMAX_IN], ref, torch.float32)[3, 7]
    comparison = compare(out.float().double().float(), ref, SOFTMAX, [SOFTMAX_IN])
    rounding = 2.0**-24 * float(ref[3, 7])  # storing the result as fp32 moves it a little
    allowed = float(tolerance(SOFTMAX, [SOFTMAX_IN], ref, torch.float32)[3, 7])
    assert rounding < 0.1 * allowed
    assert comparison.right == right == is_right(comparison.out, ref, SOFTMAX, [SOFTMAX_IN])
    if not right:
        assert comparison.first_wrong == (3, 7) and comparison.wrong_count == 1


def test_the_tolerance_for_small_probabilities_is_small():
    """Zeros must fail even where the exact result is tiny: the bound is relative."""
    x = torch.linspace(0, -80, 100, dtype=torch.float64).expand(2, 100)
    ref = torch.softmax(x, dim=-1)
    assert compare(torch.zeros_like(ref).float(), ref, SOFTMAX, [x]).wrong_count == ref.numel()


SPECIAL = [torch.nan, torch.inf, -torch.inf, 1.0]


def test_a_probability_that_a_gpu_flushes_to_zero_is_no_further_off_than_a_right_rounding():
    """Just below fp32's smallest normal number; a solution was once at 0.985 of its bound there."""
    ref = torch.softmax(torch.tensor([[0.0, -87.34]], dtype=torch.float64), dim=-1)
    out = torch.tensor([[1.0, 0.0]])
    assert 0.98 * 2.0**-126 < float(ref[0, 1]) < 2.0**-126
    assert 0.7 < compare(out, ref, SOFTMAX, [torch.tensor([[0.0, -87.34]], dtype=torch.float64)]).largest_error <= 0.8


@pytest.mark.parametrize("bound", ["exact", "bits", SOFTMAX])
@pytest.mark.parametrize("yours", SPECIAL)
@pytest.mark.parametrize("expected", SPECIAL)
def test_nan_and_infinity_must_stand_where_they_belong(bound, yours, expected):
    ref = torch.full((1, 3), 1.0, dtype=torch.float64)
    out = ref.float().clone()
    ref[0, 1], out[0, 1] = expected, yours
    same = yours == expected or (yours != yours and expected != expected)
    given = out, ref, bound, [torch.zeros(1, 3, dtype=torch.float64)]
    assert compare(*given).right == is_right(*given) == same


def test_minus_zero_differs_in_bits_only():
    ref, out = torch.tensor([-0.0], dtype=torch.float64), torch.tensor([0.0])
    assert compare(out, ref, "exact", []).right and is_right(out, ref, "exact", [])
    assert not compare(out, ref, "bits", []).right and not is_right(out, ref, "bits", [])
    assert not is_right(out, ref.float(), "bits", []) and is_right(-out, ref.float(), "bits", [])


@pytest.mark.parametrize("bound", ["exact", "bits"])
@pytest.mark.parametrize("change", [0.0, 1e-9, 1.0, torch.nan])
def test_the_quick_answer_about_a_copy_is_that_of_the_comparison(bound, change):
    x = SOFTMAX_IN.float()
    out = x.t().clone()
    out[5, 2] += change
    right = compare(out, x.t().double(), bound, [x.double()]).right
    assert right == (change < 1e-6) == is_right(out, x.t().double(), bound, []) == is_right(out, x.t(), bound, [])


def test_a_result_past_the_largest_fp16_number_is_infinite():
    ref = torch.tensor([[1e5, 1.0]], dtype=torch.float64)
    out = torch.tensor([[torch.inf, 1.0]], dtype=torch.float16)
    factors = [torch.ones(1, 1, dtype=torch.float64), torch.tensor([[1e5, 1.0]], dtype=torch.float64)]
    assert compare(out, ref, PRODUCT, factors).right and is_right(out, ref, PRODUCT, factors)


@pytest.mark.parametrize(
    ("exact", "given", "right"),
    [(65504.0, torch.inf, False), (65512.0, torch.inf, False), (65519.999, torch.inf, True), (65530.0, torch.inf, True),
     (-65530.0, -torch.inf, True), (65530.0, 65504.0, True), (65000.0, torch.inf, False), (0.0, torch.inf, False),
     (65530.0, -torch.inf, False), (1e5, 65504.0, False)],
)  # fmt: skip
def test_infinity_is_right_where_arithmetic_may_lead_to_what_rounds_to_it(exact, given, right):
    ref, out = torch.tensor([[exact]], dtype=torch.float64), torch.tensor([[given]], dtype=torch.float16)
    factors = [torch.ones(1, 1, dtype=torch.float64), ref]
    assert compare(out, ref, PRODUCT, factors).right == is_right(out, ref, PRODUCT, factors) == right


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("change", [0.0, 1e-9, 1e-3, 1.0, -1.0, torch.nan, torch.inf])
def test_the_quick_answer_is_that_of_the_comparison_and_changes_nothing(dtype, change):
    ref = softmax_ref()
    out = ref.to(dtype)
    out[2, 3] += change
    given = out.clone()
    comparison = compare(given, ref, SOFTMAX, [SOFTMAX_IN])
    assert is_right(out, ref, SOFTMAX, [SOFTMAX_IN]) == comparison.right
    if (error := float(quick_error(out, ref, SOFTMAX, [SOFTMAX_IN]))) <= 1:
        assert error == pytest.approx(comparison.largest_error)
    assert torch.equal(out.view(torch.uint8), given.view(torch.uint8))


def test_a_tolerance_that_overflows_tells_nothing():
    a, b = torch.tensor([[1.5e19, -1.5e19]]), torch.tensor([[1.5e19], [1.5e19]])
    assert bool(tolerance(PRODUCT, [a, b], a @ b, torch.float32).isinf().all())
    assert not float(quick_error(torch.full((1, 1), 1e36), a @ b, PRODUCT, [a, b])) <= 1


@pytest.mark.parametrize("value", [65504.0, 65519.0, 65530.0, 7e4, torch.inf])
def test_the_quick_answer_at_the_end_of_fp16(value):
    ref, out = torch.tensor([[value]], dtype=torch.float64), torch.tensor([[65504.0]], dtype=torch.float16)
    factors = [torch.full((1, 1), 1e4, dtype=torch.float64), torch.full((1, 1), 1e4, dtype=torch.float64)]
    assert is_right(out, ref, PRODUCT, factors) == compare(out, ref, PRODUCT, factors).right


OF_ROWS, OF_PRODUCT = "x[m, :] -> z[m, :]", "a[m, :], b[:, n] -> z[m, n]"


@pytest.mark.parametrize(
    "cut, inputs, shape, bound, rows",
    [
        ("", {"x": (10,)}, (10,), "exact", 4),
        ("", {"x": (5, 2)}, (5, 2), "bits", 2),
        ("", {"x": (3, 0)}, (3, 0), "exact", 4),
        ("", {"x": (10,)}, (10,), SOFTMAX, 10),  # nobody has said what a part is made of
        (OF_ROWS, {"x": (5, 2)}, (5, 2), SOFTMAX, 2),
        (OF_ROWS, {"x": (5, 9)}, (5, 9), SOFTMAX, 1),
        (OF_PRODUCT, {"a": (5, 4), "b": (4, 2)}, (5, 2), PRODUCT, 1),  # a row of the result is made of 4 elements of a
        (OF_PRODUCT, {"a": (5, 2), "b": (2, 2)}, (5, 2), PRODUCT, 2),
    ],
)
def test_how_many_rows_of_a_result_are_compared_at_a_time(cut, inputs, shape, bound, rows):
    assert Cut.of(cut).rows_at_once("z", shape, bound, inputs, 4) == rows


@pytest.mark.parametrize("bound", ["exact", SOFTMAX])
def test_a_number_is_one_row(bound):
    assert Cut().rows_at_once("z", (), bound, {}, 4) > 0


@pytest.mark.parametrize(
    "cut, bound, inputs, ref",
    [
        (OF_ROWS, SOFTMAX, [SOFTMAX_IN], softmax_ref()),
        (OF_PRODUCT, PRODUCT, [SOFTMAX_IN, SOFTMAX_IN.T.contiguous()], SOFTMAX_IN @ SOFTMAX_IN.T),
    ],
    ids=["softmax", "product"],
)
def test_the_tolerance_of_some_rows_is_that_of_the_whole(cut, bound, inputs, ref):
    rows = slice(3, 6)
    whole = tolerance(bound, inputs, ref, torch.float32)[rows]
    cut = Cut.of(cut)
    part = cut.rows("z", list(cut.inputs), inputs, rows)
    torch.testing.assert_close(tolerance(bound, part, ref[rows], torch.float32), whole)


def test_a_race_is_told_by_elements_and_not_by_their_bytes():
    one, other = torch.zeros(4), torch.tensor([0.0, 1.2345678, 0.0, -5.4321])
    verdict = _order_matters("z", Reply(outputs={"z": one}), Reply(outputs={"z": other}))
    assert verdict.lines[0].startswith("2 elements of z change")


def test_one_nan_is_as_good_as_another_when_two_calls_are_compared():
    one = torch.tensor([0x7FC00000, 0x3F800000], dtype=torch.int32).view(torch.float32)
    other = torch.tensor([-0x400000, 0x3F800000], dtype=torch.int32).view(torch.float32)
    assert bool(other.isnan()[0]) and _same_bits(one, other) and not _same_bits(one, -one)
    assert not _same_bits(torch.tensor([0.0]), torch.tensor([-0.0]))


def test_an_empty_result_is_right():
    empty = torch.empty(0, 5, dtype=torch.float64)
    assert is_right(empty.float(), empty, SOFTMAX, [empty])


@pytest.mark.parametrize("accumulator", [torch.float32, torch.float16])
@pytest.mark.parametrize("seed", range(20))
def test_cancelling_sums_tell_fp16_accumulation_from_fp32(accumulator, seed):
    a, b = (d.tensor(torch.float16, generator_for(seed, n)) for n, d in enumerate(cancelling(33, 1024, 40)))
    acc = torch.zeros(33, 40, dtype=accumulator)
    for k in range(0, 1024, 64):
        acc += (a[:, k : k + 64].float() @ b[k : k + 64].float()).to(accumulator)
    ref = a.double() @ b.double()
    comparison = compare(acc.half(), ref, "exact", [a.double(), b.double()])
    assert comparison.right == (accumulator == torch.float32)
    assert float((a.double().abs() @ b.double().abs()).max()) < 2**24
    assert compare(torch.zeros(33, 40).half(), ref, "exact", []).wrong_count > 0


@pytest.mark.parametrize("lanes", [64, 2048])
@pytest.mark.parametrize("accumulator", [torch.float32, torch.float16])
@pytest.mark.parametrize("seed", range(10))
def test_rows_that_cancel_tell_an_fp16_sum_from_one_in_fp32(accumulator, lanes, seed):
    x = cancelling_rows(5, 5120).tensor(torch.float16, generator_for(seed))
    acc = torch.zeros(5, lanes, dtype=accumulator)
    for start in range(0, 5120, lanes):
        block = x[:, start : start + lanes]
        acc[:, : block.shape[1]] += block.to(accumulator)
    ref = x.double().sum(dim=1)
    comparison = compare(acc.float().sum(dim=1).half(), ref, "exact", [x.double()])
    assert comparison.right == (accumulator == torch.float32)
    assert float(ref.abs().max()) <= 2 and float(x.double().abs().sum(dim=1).max()) < 2**24


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("columns", [1, 2, 255])
def test_rows_of_any_length_cancel(columns, dtype):
    x = cancelling_rows(40, columns).tensor(dtype, generator_for(3)).double()
    assert torch.equal(x[:, : columns // 2].round(), x[:, : columns // 2])
    assert 0 < float(x.sum(dim=1).abs().max()) <= 8


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_right_arithmetic_stays_well_inside_the_bounds(seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(16, 1000, generator=generator).to(dtype)
    out = torch.softmax(x.float(), dim=-1).to(dtype)
    assert compare(out, torch.softmax(x.double(), -1), SOFTMAX, [x.double()]).largest_error <= 0.85
    a, b = torch.randn(40, 500, generator=generator).half(), torch.randn(500, 30, generator=generator).half()
    product = (a.float() @ b.float()).half()
    assert compare(product, a.double() @ b.double(), PRODUCT, [a.double(), b.double()]).largest_error <= 0.85


@pytest.mark.parametrize("layout", ["transposed", "every_second", "padded", "expanded"])
def test_layouts_are_what_they_say_and_holes_hold_poison(layout):
    data = getattr(normal(5, 7), layout)()
    tensor = data.tensor(torch.float32, generator_for(1))
    strides = {"transposed": (1, 5), "every_second": (28, 2), "padded": (20, 1), "expanded": (0, 1)}
    assert tensor.shape == (5, 7) and tensor.stride() == strides[layout]
    assert not is_poison(tensor).any()
    whole = torch.empty(0).set_(tensor.untyped_storage())
    assert int(is_poison(whole).sum()) == whole.numel() - (7 if layout == "expanded" else 35)


@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (40, 3), (1, 9), (9, 1), (3, 4, 6)])
@pytest.mark.parametrize("columns", [OWN_PLACE, 0, 2, 3])
def test_rows_lie_as_if_contiguous_and_each_place_has_one_value(shape, columns):
    data = replace(normal(*shape), layout=as_if_contiguous(columns))
    tensor = data.tensor(torch.float32, generator_for(1))
    assert tensor.stride()[:-1] == torch.empty(shape).stride()[:-1] and tensor.stride(-1) != 1
    assert not is_poison(tensor).any()
    places = {sum(map(int.__mul__, index, tensor.stride())) for index in itertools.product(*map(range, shape))}
    whole = torch.empty(0).set_(tensor.untyped_storage())
    assert int((~is_poison(whole)).sum()) == len(places) and (len(places) == tensor.numel()) >= (columns == OWN_PLACE)
    assert Layout.from_json(json.loads(json.dumps(data.layout.to_json()))) == data.layout


def test_a_tensor_that_takes_turns_with_another_leaves_every_second_place_to_it():
    tensor = normal(3, 2, 5).beside_another().tensor(torch.float32, generator_for(1))
    assert tensor.stride() == (20, 5, 1) and tensor.untyped_storage().nbytes() == 4 * 3 * 20
    whole = torch.empty(0).set_(tensor.untyped_storage()).view(3, 2, 10)
    assert is_poison(whole[:, 1]).all() and not is_poison(whole[:, 0]).any()


def test_outputs_hold_poison_only():
    assert is_poison(output(5, 7).padded().tensor(torch.float16, generator_for(1))).all()


def test_the_same_seed_and_names_give_the_same_data():
    draw = [normal(100).tensor(torch.float32, generator_for(7, *names)) for names in (("a",), ("a",), ("b",))]
    assert torch.equal(draw[0], draw[1]) and not torch.equal(draw[0], draw[2])


def test_data_sets_hold_what_they_promise():
    generator = generator_for(3)
    assert set(integers(50, 50).tensor(torch.float32, generator).unique().tolist()) == {-1.0, 0.0, 1.0}
    assert torch.equal(one_hot(50, 20).tensor(torch.float16, generator).sum(1), torch.ones(50).half())
    spotted = with_some(float("-inf"), normal(50, 50)).tensor(torch.float32, generator)
    assert 0.05 < float(spotted.isinf().float().mean()) < 0.2
    assert float((normal(100) * 3 + 300).tensor(torch.float32, generator).mean()) > 250


def test_indices_have_the_first_and_the_last_of_what_they_may_be():
    drawn = [
        data.tensor(torch.float32, generator_for(4))
        for data in (indices(50, below=40), indices(50, below=40, least=30))
    ]
    assert [(int(one.min()), int(one.max()), one.dtype) for one in drawn] == [
        (0, 39, torch.int32),
        (30, 39, torch.int32),
    ]
    assert indices(50, below=40, least=30).label == "50 (int32, from 30 to 39)"


@pytest.mark.parametrize(
    ("data", "taken"),
    [(slots(40, below=40), 40), (slots(7, below=1000), 7), (slots(10, below=30, nowhere=0.25), 7),
     (slots(10, below=4), 4), (slots(1, below=9), 1), (slots(3, 5, below=15), 15), (slots(0, below=9), 0)],
)  # fmt: skip
def test_slots_are_different_numbers_with_minus_one_for_none(data, taken):
    orders = set()
    for seed in range(3):
        drawn = data.tensor(torch.float16, generator_for(seed))
        numbers = drawn[drawn >= 0].tolist()
        assert (
            drawn.shape == data.shape
            and drawn.dtype == torch.int32
            and int((drawn == -1).sum()) == drawn.numel() - taken
        )
        assert len(set(numbers)) == len(numbers) == taken and set(numbers) <= set(range(data.steps[0][1]))
        assert {0, data.steps[0][1] - 1} <= set(numbers) or taken < 2
        orders.add(tuple(drawn.flatten().tolist()))
    assert taken < 2 or len(orders) == 3
    assert slots(40, below=40).label == "40 (int32, below 40)" and ", some -1" in slots(10, below=4).label


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32])
def test_whole_numbers_fill_every_integer_dtype(dtype):
    drawn, limits = whole(1 << 18).tensor(dtype, generator_for(5)), torch.iinfo(dtype)
    span = limits.max - limits.min
    assert int(drawn.min()) < limits.min + span / 1000 and int(drawn.max()) > limits.max - span / 1000
    assert abs(float(drawn.double().mean()) - (limits.min + limits.max) / 2) < span / 200


# ---- data sets of matrices whose rows are keys -----------------------------------------------------------------------


def drawn(data, seed: int = 1) -> torch.Tensor:
    return data.tensor(torch.float16, generator_for(seed)).double()


def test_the_product_of_two_codes_is_nothing_or_less_but_that_of_a_code_with_itself():
    k, q = drawn(codes(2, 3, 64, 32)), drawn(a_code_each(2, 3, 200, 32, below=64))
    assert set(k.unique().tolist()) == set(q.unique().tolist()) == {-1.0, 1.0}
    products = q @ k.mT
    assert bool((products.amax(dim=-1) == 32).all()) and bool(((products > 0).sum(dim=-1) == 1).all())
    assert products.argmax(dim=-1).unique().numel() > 40 and set(products.unique().tolist()) == {-32.0, 0.0, 32.0}


def test_columns_that_cancel_pass_2048_on_the_way_and_come_back():
    values = drawn(cancelling_down(1, 2, 8192, 16))
    assert float(values.abs().max()) <= 5 and float(values.cumsum(dim=-2).amax(dim=-2).min()) > 2048
    assert float(values.sum(dim=-2).abs().max()) <= 2 and bool((values == values.round()).all())
    assert drawn(cancelling_down(2, 5, 4)).sum(dim=-2).abs().max() <= 2  # an odd number of rows: one is 0


def test_a_column_falls_and_a_first_row_is_replaced():
    values = drawn(falling_down(2, 5, 3))
    assert values[1, :, 2].tolist() == [100, 50, 0, -50, -100]
    values = drawn(first_row(7, normal(2, 4, 3)))
    assert bool((values[:, 0] == 7).all()) and not bool((values[:, 1:] == 7).any())
    values = drawn(last_row(7, normal(2, 4, 3)))
    assert bool((values[:, -1] == 7).all()) and not bool((values[:, :-1] == 7).any())


@pytest.mark.parametrize("out", [torch.nan, 0.0])
def test_of_an_unjudged_result_anything_is_right(out):
    ref = softmax_ref()
    wrong = torch.full_like(ref, out).float()
    assert compare(wrong, ref, "unjudged", [SOFTMAX_IN]).right and is_right(wrong, ref, "unjudged", [SOFTMAX_IN])
    assert not compare(wrong, ref, SOFTMAX, [SOFTMAX_IN]).right


def test_a_single_element_is_seen_at_every_index():
    data = normal(2, 3, 4).single()
    seen = data.tensor(torch.float16, generator_for(1))
    assert (
        seen.stride() == (0, 0, 0) and seen.unique().numel() == 1 and data.label == "2 x 3 x 4 (one element, expanded)"
    )
