"""14 · Split softmax: what a right kernel must do."""

import torch

from grader import (
    Example,
    Exercise,
    any_strides,
    falling,
    leading,
    normal,
    upto,
    with_some,
)


def with_minus_infinity(N):
    """A tenth of the elements, and the whole first half: so there are blocks that hold nothing else."""
    return leading(float("-inf"), with_some(float("-inf"), normal(N)))


exercise = Exercise(
    entry="softmax",
    reference=lambda x: torch.softmax(x, dim=0),  # called in float64
    returns="z",
    bound="softmax",  # how much rounding a right kernel may show
    operation="split_softmax",
    minutes=35,
    presumes=("13_online_softmax",),
    example=Example(normal(10), BLOCK_N=4),
)


def test_one_block(check):
    check(normal(8192))


def test_two_blocks(check):
    check(normal(16384))


def test_one_element_past_a_block(check):
    check(normal(8193))


def test_a_block_lacks_one_element(check):
    check(normal(8191))


def test_one_element(check):
    check(normal(1))


def test_a_prime_number_of_elements(check):
    check(normal(5003))


def test_blocks_are_not_a_power_of_two(check):
    check(normal(1100), BLOCK_N=128)


def test_blocks_are_not_a_power_of_two_far_below_zero(check):
    check(normal(1100) - 200, BLOCK_N=128)
    check(normal(20000) - 200)


def test_large_values_stay_finite(check):
    check(normal(1100) * 3 + 300, BLOCK_N=128)


def test_later_blocks_hold_larger_values(check):
    check(falling(1000) * -1, BLOCK_N=128)


def test_later_blocks_hold_smaller_values(check):
    check(falling(1000), BLOCK_N=128)


def test_blocks_of_minus_infinity_alone(check):
    check(leading(float("-inf"), normal(1000)), BLOCK_N=128)
    check(leading(float("-inf"), normal(40000)))


def test_sums_keep_their_digits(check):
    check(falling(1000) * 0.01)


def test_the_input_is_every_second_element(check):
    check(normal(20000).every_second())
