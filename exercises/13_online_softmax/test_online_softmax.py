"""13 · Online softmax: what a right kernel must do."""

import pytest
import torch

from grader import (
    SOFTMAX,
    U32,
    Example,
    Exercise,
    RoundingModel,
    amid,
    any_strides,
    falling,
    far_below_zero,
    large,
    last,
    leading,
    lone,
    normal,
    peaked,
    some_minus_infinity,
    uniform,
    unusual,
    upto,
    with_some,
)


def rounding(z, x):
    """How far rounding may carry each element, [M, N]: as far as in any softmax, and 4 U32 = 4 * 2**-24 more for each
    iteration over 256 columns, the fewest that a right kernel takes at a time of a long row.

    In an iteration the sum is multiplied by an exponential, which errs by 2 U32, and added to, at 1 each. If the
    maximum does not grow, the factor is 1, and exact. In rows that rise slowly all errors have one sign: then they add
    up to the number of iterations times 0.3 U32, measured in NumPy.
    """
    iterations = x.shape[-1] / 256
    return SOFTMAX.arithmetic(z, x).add_(z.abs(), alpha=4 * iterations * U32)


exercise = Exercise(
    entry="softmax",
    reference=lambda x: torch.softmax(x, dim=-1),  # called in float64
    returns="z",
    bound=RoundingModel(rounding),
    minutes=30,
    presumes=("03_softmax", "07_row_sum"),
    example=Example(normal(3, 10), BLOCK_N=4),
    cut="x[m, :] -> z[m, :]",
)


def lowest(*shape):
    """From -0.9 to -0.8 times the largest number of the dtype."""
    return (uniform(*shape) * 0.1 - 0.9).then("of the largest", 1)


def below_a_hole(*shape):
    """Far below 0, and -inf in the first half: so there are blocks that hold nothing else."""
    return leading(float("-inf"), normal(*shape) - 200)


@pytest.mark.core
def test_a_row_fills_one_block(check):
    check(normal(4, 4096))


@pytest.mark.core
def test_a_row_fills_two_blocks(check):
    check(normal(4, 8192))


@pytest.mark.core
def test_a_row_is_shorter_than_a_block(check):
    check(normal(12, 1009))


@pytest.mark.core
def test_several_blocks_and_a_part(check):
    check(normal(4, 10000))


@pytest.mark.core
def test_one_column_past_a_block(check):
    check(normal(4, 4097))


@pytest.mark.core
def test_a_block_lacks_one_column(check):
    check(normal(4, 4095))


def test_one_column(check):
    check(normal(12, 1))


@pytest.mark.core
def test_one_row(check):
    check(normal(1, 9001))


@pytest.mark.core
def test_the_maximum_grows_from_block_to_block(check):
    check(falling(4, 10000) * -1)
    check(leading(-200.0, normal(4, 10000)))


@pytest.mark.core
def test_the_maximum_stands_in_the_first_block(check):
    check(falling(4, 10000))


@pytest.mark.core
def test_padding_does_not_leak_into_negative_rows(check):
    check(normal(12, 200) - 200)


def test_large_values_stay_finite(check):
    check(normal(4, 10000) * 3 + 300)


def test_values_far_below_zero_are_like_any_others(check):
    check(normal(12, 300) * 100 - 50000)


def test_values_near_the_lowest_number_are_like_any_others(check):
    check(lowest(12, 300))


def test_minus_infinity_has_probability_zero(check):
    check(with_some(float("-inf"), normal(4, 10000)))


def test_whole_blocks_of_minus_infinity_may_come_first(check):
    check(leading(float("-inf"), normal(4, 9000)))


def test_numbers_far_below_zero_may_follow_whole_blocks_of_minus_infinity(check):
    check(below_a_hole(4, 10000))


def test_whole_blocks_of_minus_infinity_may_stand_in_the_middle(check):
    check(amid(float("-inf"), normal(4, 20000) - 200))


def test_nan_and_infinity_spoil_their_own_row_from_end_to_end(check):
    check(unusual(60, 5))
    check(last(float("nan"), normal(4, 8193)))  # alone in its block, beside lanes past the end


def test_the_input_is_a_transposed_view(check):
    check(normal(12, 300).transposed())


def test_rows_are_padded(check):
    check(normal(12, 300).padded())


def test_the_input_is_every_second_element(check):
    check(normal(12, 300).every_second())


def test_another_block_size_gives_the_same_result(check):
    check(normal(12, 1000), BLOCK_N=64)


@pytest.mark.core
def test_each_element_is_read_twice_at_most_and_written_once(traffic):
    traffic(normal(8, 10000), reads=2, writes=1, idle=0)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(8, 5000), reads=2, moved=1.5)


def test_a_long_row_stays_in_registers(compiled):
    compiled(normal(1024, 131072), vectors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={"M": upto(12, least=0, limit=2**30, block=4), "N": upto(9000, once=40000, limit=2**18, BLOCK_N=4096)},
        x=any_strides(
            "M",
            "N",
            values=(normal, large, lowest, far_below_zero, some_minus_infinity, below_a_hole, peaked, lone, unusual),
        ),  # fmt: skip
        dtypes=("float32", "float16", "bfloat16"),
        blocks=({"BLOCK_N": 256},),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(1031, 33001), dtypes=("float32", "float16", "bfloat16"))


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(65537, 8209), dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(1024, 131072), at_least=0.46)
