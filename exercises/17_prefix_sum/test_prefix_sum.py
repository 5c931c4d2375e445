"""17 · Prefix sum: what a right kernel must do."""

import pytest
import torch

from grader import (
    U32,
    Example,
    Exercise,
    RoundingModel,
    any_strides,
    around_fp16_max,
    cancelling_rows,
    integers,
    level,
    lone,
    normal,
    subnormal,
    uniform,
    unusual,
    upto,
)


def rounding(z, x):
    """How far rounding may carry each sum, [M, N]: by at most U32 = 2**-24 of its |terms| so far for each addition on
    the longest way through it (N. Higham, Accuracy and Stability of Numerical Algorithms, chapter 4).

    A block, of 64 columns at least, is scanned in twice log2 of its columns at most, and a carry goes through an
    addition for each block before; 2 more pay for what is of second order.
    """
    so_far = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    additions = 2 + 2 * so_far.log2() + so_far / 64
    return size_of_terms(z, x).mul_(additions * U32)


def size_of_terms(z, x):
    return x.abs().cumsum(dim=-1)


exercise = Exercise(
    entry="cumsum",
    reference=lambda x: x.cumsum(dim=-1),  # called in float64
    returns="z",
    bound=RoundingModel(rounding, terms=size_of_terms),
    minutes=35,
    presumes=("07_row_sum",),
    example=Example(normal(3, 10), BLOCK_N=4),
    cut="x[m, :] -> z[m, :]",
)


def up_to_the_largest(*shape):
    """Rows whose last sum is nearly the dtype's largest number."""
    return level(*shape).then("of the largest", 0.97 / max(1, shape[-1]))


@pytest.mark.core
def test_a_row_fills_one_block(check):
    check(normal(4, 4096))


@pytest.mark.core
def test_a_row_fills_two_blocks(check):
    check(normal(4, 8192))


@pytest.mark.core
def test_a_row_fills_three_blocks(check):
    check(normal(4, 12288))


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


def test_whole_numbers_are_summed_exactly(check):
    check(integers(12, 5000), bound="exact")


def test_sums_that_cancel_are_exact(check):
    check(cancelling_rows(12, 64), bound="exact", BLOCK_N=16)


def test_long_sums_of_positive_numbers_keep_their_digits(check):
    check(uniform(3, 40000))


def test_infinities_and_nan_spoil_what_comes_after_them_alone(check):
    check(unusual(60, 5))


def test_the_input_is_a_transposed_view(check):
    check(normal(12, 300).transposed())


def test_rows_are_padded(check):
    check(normal(12, 300).padded())


def test_the_input_is_every_second_element(check):
    check(normal(12, 300).every_second())


def test_another_block_size_gives_the_same_result(check):
    check(normal(12, 1000), BLOCK_N=64)


@pytest.mark.core
def test_each_element_is_read_once_and_written_once(traffic):
    traffic(normal(8, 10000), reads=1, writes=1, idle=0)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(8, 5000), moved=1.5)


def test_a_long_row_stays_in_registers(compiled):
    compiled(normal(16384, 8192), vectors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={"M": upto(12, least=0, limit=2**30, block=4), "N": upto(9000, once=40000, limit=2**20, BLOCK_N=4096)},
        x=any_strides("M", "N", values=(uniform, normal, subnormal, around_fp16_max, up_to_the_largest, lone, unusual)),
        dtypes=("float32", "float16", "bfloat16"),
        blocks=({"BLOCK_N": 256},),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(1031, 33001), dtypes=("float32", "float16", "bfloat16"))


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(65537, 8209), dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(16384, 8192), at_least=0.67)
