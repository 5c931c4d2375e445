"""03 · Row softmax: what a right kernel must do."""

import pytest
import torch

from grader import (
    SOFTMAX,
    Example,
    Exercise,
    any_strides,
    falling,
    far_below_zero,
    large,
    leading,
    lone,
    normal,
    peaked,
    some_minus_infinity,
    subnormal,
    unusual,
    upto,
    with_some,
)

exercise = Exercise(
    entry="softmax",
    reference=lambda x: torch.softmax(x, dim=-1),  # called in float64
    returns="z",
    bound=SOFTMAX,  # how much rounding a right kernel may show
    minutes=25,
    presumes=("01_masked_add", "02_strided_blocks"),
    example=Example(normal(3, 5)),
    cut="x[m, :] -> z[m, :]",
)


def infinite_rows(*shape):
    """Rows that hold nothing but inf, among others."""
    return normal(*shape).then("whole rows", float("inf"))


@pytest.mark.core
def test_one_row_fills_the_block(check):
    check(normal(12, 1024))


@pytest.mark.core
def test_columns_are_not_a_power_of_two(check):
    check(normal(12, 781))


@pytest.mark.core
def test_padding_does_not_leak_into_negative_rows(check):
    check(normal(12, 200) - 200)


@pytest.mark.core
def test_one_column_past_a_power_of_two(check):
    check(normal(12, 257))


def test_a_row_of_two_thousand_columns(check):
    check(normal(3, 2000))


@pytest.mark.core
def test_one_column(check):
    check(normal(12, 1))


@pytest.mark.core
def test_one_row(check):
    check(normal(1, 1009))


@pytest.mark.core
def test_large_values_stay_finite(check):
    check(normal(12, 200) * 3 + 300)


def test_values_far_below_zero_are_like_any_others(check):
    check(normal(12, 200) * 100 - 50000)


def test_small_probabilities_keep_their_digits(check):
    check(falling(8, 200))


def test_the_largest_value_may_stand_anywhere(check):
    check(falling(8, 200) * -1)


def test_minus_infinity_has_probability_zero(check):
    check(with_some(float("-inf"), normal(12, 200)))


def test_a_row_may_begin_with_minus_infinity(check):
    check(leading(float("-inf"), normal(8, 300)))


def test_the_input_is_a_transposed_view(check):
    check(normal(17, 70).transposed())


def test_rows_are_padded(check):
    check(normal(17, 70).padded())


def test_the_input_is_every_second_element(check):
    check(normal(17, 70).every_second())


@pytest.mark.core
def test_each_element_is_read_and_written_once(traffic):
    traffic(normal(32, 1000), reads=1, writes=1, idle=0)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(32, 1000), moved=1.5)


def test_a_long_row_stays_in_registers(compiled):
    compiled(normal(4096, 4096))


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={"M": upto(40, limit=2**30, block=8), "N": upto(1500, once=16384, limit=16384, block=256)},
        x=any_strides(
            "M",
            "N",
            values=(
                normal,
                large,
                subnormal,
                far_below_zero,
                some_minus_infinity,
                infinite_rows,
                peaked,
                lone,
                unusual,
            ),  # fmt: skip
        ),
        dtypes=("float32", "float16", "bfloat16"),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(4099, 12671), dtypes=("float32", "float16", "bfloat16"))


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(262147, 2053), dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(32768, 4096), at_least=0.81)
