"""01 · Masked add: what a right kernel must do."""

import pytest

from grader import Example, Exercise, contiguous, large, normal, subnormal, uniform, unusual, upto

exercise = Exercise(
    entry="masked_add",
    reference=lambda x, y: x + y,  # called in float64, on the very numbers the kernel got
    returns="z",
    bound="exact",  # one addition has one right rounding
    minutes=15,
    example=Example(normal(10), normal(10), BLOCK_N=4),
    cut="x[n], y[n] -> z[n]",
)


@pytest.mark.core
def test_one_full_block(check):
    check(normal(1024), normal(1024))


@pytest.mark.core
def test_four_full_blocks(check):
    check(normal(4096), normal(4096), dtypes=("float32",))  # with a program per element each takes seconds


@pytest.mark.core
def test_the_last_block_has_one_element(check):
    check(normal(1025), normal(1025))


@pytest.mark.core
def test_the_last_block_lacks_one_element(check):
    check(normal(1023), normal(1023))


@pytest.mark.core
def test_the_size_is_a_prime(check):
    check(normal(2411), normal(2411))


@pytest.mark.core
def test_one_element(check):
    check(normal(1), normal(1))


def test_no_element(check):
    check(normal(0), normal(0))


def test_a_sum_that_rounds_to_the_largest_number_of_fp16_is_finite(check):
    # Up to 65472 + 47: infinity begins at 65520.
    check(uniform(1009) * 32 + 65440, uniform(1009) * 47, dtypes=("float16",))


def test_another_block_size_gives_the_same_result(check):
    check(normal(1009), normal(1009), BLOCK_N=256)
    check(normal(2053), normal(2053), BLOCK_N=2048, dtypes=("float32",))


def test_each_element_is_read_and_written_once(traffic):
    traffic(normal(2411), normal(2411), reads=1, writes=1)


@pytest.mark.core
def test_a_program_adds_a_block_and_not_one_element(traffic):
    traffic(normal(2048), normal(2048), programs=128)


def test_no_program_is_idle(traffic):
    traffic(normal(2048), normal(2048), idle=0, BLOCK_N=512)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(2411), normal(2411), moved=1.5)


def test_it_compiles_for_a_gpu(compiled):
    compiled(normal(1 << 20), normal(1 << 20))


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={"N": upto(5000, least=0, once=40000, limit=2**31 - 1, BLOCK_N=1024)},
        x=contiguous("N", values=(normal, large, subnormal, unusual)),
        y=contiguous("N", values=(normal, large, subnormal, unusual)),
        dtypes=("float32", "float16", "bfloat16"),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(1_000_003), normal(1_000_003), dtypes=("float32", "float16", "bfloat16"))


def test_tensors_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal((1 << 29) + 1009), normal((1 << 29) + 1009), dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(1 << 27), normal(1 << 27), at_least=0.78)
