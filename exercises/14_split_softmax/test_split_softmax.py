"""14 · Split softmax: what a right kernel must do."""

import pytest
import torch

from grader import (
    SOFTMAX,
    Example,
    Exercise,
    amid,
    any_strides,
    falling,
    far_below_zero,
    leading,
    lone,
    normal,
    peaked,
    unusual,
    upto,
    with_some,
)


def with_minus_infinity(N):
    """A tenth of the elements, and the whole first half: so there are blocks that hold nothing else."""
    return leading(float("-inf"), with_some(float("-inf"), normal(N)))


def below_a_hole(N):
    """Far below 0, and -inf in the first half: so there are blocks that hold nothing else."""
    return leading(float("-inf"), normal(N) - 200)


exercise = Exercise(
    entry="softmax",
    reference=lambda x: torch.softmax(x, dim=0),  # called in float64
    returns="z",
    bound=SOFTMAX,  # how much rounding a right kernel may show
    minutes=35,
    presumes=("13_online_softmax",),
    time_limit=4.0,
    example=Example(normal(10), BLOCK_N=4),
)


@pytest.mark.core
def test_one_block(check):
    check(normal(8192))


@pytest.mark.core
def test_two_blocks(check):
    check(normal(16384))


@pytest.mark.core
def test_one_element_past_a_block(check):
    check(normal(8193))


@pytest.mark.core
def test_a_block_lacks_one_element(check):
    check(normal(8191))


def test_one_element(check):
    check(normal(1))


def test_a_prime_number_of_elements(check):
    check(normal(5003))


def test_values_far_below_zero_are_like_any_others(check):
    check(normal(16384) - 200)


@pytest.mark.core
def test_three_blocks_are_no_power_of_two(check):
    check(normal(20000))


def test_three_blocks_far_below_zero(check):
    check(normal(20000) - 200)


def test_large_values_stay_finite(check):
    check(normal(20000) * 3 + 300)


@pytest.mark.core
def test_later_blocks_hold_larger_values(check):
    check(falling(20000) * -1)
    check(leading(-200.0, normal(20000)))


@pytest.mark.core
def test_later_blocks_hold_smaller_values(check):
    check(falling(20000))


def test_blocks_of_minus_infinity_alone(check):
    check(leading(float("-inf"), normal(40000)))


def test_numbers_far_below_zero_may_follow_blocks_of_minus_infinity(check):
    check(below_a_hole(20000))


def test_blocks_of_minus_infinity_may_stand_in_the_middle(check):
    check(amid(float("-inf"), normal(40000) - 200))


def test_sums_keep_their_digits(check):
    check(falling(260) * 0.168)


def test_the_input_is_every_second_element(check):
    check(normal(20000).every_second())


def test_another_block_size_gives_the_same_result(check):
    check(falling(1100) * -1, BLOCK_N=128)
    check(leading(float("-inf"), normal(40000)), BLOCK_N=16384)


@pytest.mark.core
def test_x_is_read_twice_and_by_many_programs(traffic):
    traffic(normal(200_000), reads=2, writes=1, launches=4, share=0.25, scratch=0.1)


def test_no_program_is_idle(traffic):
    traffic(normal(200_000), reads=2, idle=0)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(200_000), reads=2, moved=1.5)


def test_a_thread_moves_16_bytes_at_a_time(compiled):
    compiled(normal(2**17), vectors=True)


def test_the_longest_vector_stays_in_registers(compiled):
    compiled(normal(2**27))


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={"N": upto(20_000, once=100_000, limit=2**27, BLOCK_N=8192)},
        x=any_strides("N", values=(normal, far_below_zero, with_minus_infinity, below_a_hole, peaked, lone, unusual)),
        dtypes=("float32", "float16", "bfloat16"),
        blocks=({"BLOCK_N": 128}, {"BLOCK_N": 1024}),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(100_000_007), dtypes=("float32", "bfloat16"))


def test_it_reaches_the_gate(throughput):
    throughput(normal(2**26), at_least=0.42)
