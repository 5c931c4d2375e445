"""07 · Row sum: what a right kernel must do."""

import pytest

from grader import (
    U32,
    Example,
    Exercise,
    RoundingModel,
    any_strides,
    around_fp16_max,
    cancelling_rows,
    integers,
    lone,
    normal,
    subnormal,
    uniform,
    unusual,
    upto,
)


def rounding(z, x):
    """How far rounding may carry a sum, [M]: by at most U32 = 2**-24 of its |terms| for each addition on the longest
    way through it (N. Higham, Accuracy and Stability of Numerical Algorithms, chapter 4).

    With 64 partial sums, the fewest that a right kernel may keep, this way has N / 64 additions, and 6 to add these
    sums up in pairs; 2 more pay for what is of second order. More partial sums make the way no longer: 2048 take 11 to
    be added up, and 8 + N / 64 is 40 once each of them has a term.
    """
    return size_of_terms(z, x).mul_((8 + x.shape[-1] / 64) * U32)


def size_of_terms(z, x):
    return x.abs().sum(dim=-1)


exercise = Exercise(
    entry="row_sum",
    reference=lambda x: x.sum(dim=-1),  # called in float64
    returns="z",
    bound=RoundingModel(rounding, terms=size_of_terms),
    minutes=20,
    presumes=("03_softmax",),
    example=Example(normal(3, 10), BLOCK_N=4),
    cut="x[m, :] -> z[m]",
)


@pytest.mark.core
def test_a_row_fills_one_block(check):
    check(normal(12, 2048))


@pytest.mark.core
def test_a_row_fills_two_blocks(check):
    check(normal(12, 4096))


@pytest.mark.core
def test_a_row_is_shorter_than_a_block(check):
    check(normal(12, 1009))


@pytest.mark.core
def test_one_column_past_a_block(check):
    check(normal(12, 2049))


@pytest.mark.core
def test_a_block_lacks_one_column(check):
    check(normal(12, 2047))


def test_one_column(check):
    check(normal(12, 1))


@pytest.mark.core
def test_one_row(check):
    check(normal(1, 3001))


def test_whole_numbers_are_summed_exactly(check):
    check(integers(12, 5000), bound="exact")


def test_sums_that_cancel_are_exact(check):
    check(cancelling_rows(12, 5120), bound="exact")


def test_long_sums_of_positive_numbers_keep_their_digits(check):
    check(uniform(3, 40000))


def test_infinities_and_nan_stay_in_their_rows(check):
    check(unusual(60, 5))


def test_the_input_is_a_transposed_view(check):
    check(normal(12, 2100).transposed())


def test_rows_are_padded(check):
    check(normal(12, 2100).padded())


def test_the_input_is_every_second_element(check):
    check(normal(12, 2100).every_second())


def test_another_block_size_gives_the_same_result(check):
    check(normal(12, 1000), BLOCK_N=64)


@pytest.mark.core
def test_each_element_is_read_once(traffic):
    traffic(normal(32, 5000), reads=1, writes=1, idle=0)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(32, 5000), moved=1.5)


def test_a_long_row_stays_in_registers(compiled):
    compiled(normal(4096, 65536))


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={"M": upto(12, least=0, limit=2**30, block=4), "N": upto(5000, once=40000, limit=2**21, BLOCK_N=2048)},
        x=any_strides("M", "N", values=(uniform, normal, subnormal, around_fp16_max, lone, unusual)),
        dtypes=("float32", "float16", "bfloat16"),
        blocks=({"BLOCK_N": 128},),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(1031, 70001), dtypes=("float32", "float16", "bfloat16"))


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(65537, 8209), dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(4096, 65536), at_least=0.65)
