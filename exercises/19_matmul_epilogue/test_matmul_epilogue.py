"""19 · Matmul with an epilogue: what a right kernel must do."""

import pytest
import torch
from torch.nn.functional import leaky_relu_

from grader import (
    U32,
    Example,
    Exercise,
    RoundingModel,
    any_strides,
    cancelling,
    contiguous,
    error_of_sum,
    integers,
    normal,
    one_hot,
    subnormal,
    uniform,
    upto,
)


def rounding(c, a, b, bias):
    """How far rounding may carry each element: as far as the sum of products, with the bias as one more term, and then
    by 2 U32 = 2 * 2**-24 of itself, for the rounded slope and its product.

    Below 0 the error of the sum is multiplied by the slope, but for sums so near to 0 that rounding decides on their
    side of it.
    """
    error = (error_of_sum(a.shape[-1]) + 2) * U32 * size_of_terms(c, a, b, bias)
    is_below = c < -0.01 * error
    return torch.where(is_below, 0.01 * error, error) + 2 * U32 * c.abs()


def size_of_terms(c, a, b, bias):
    return a.abs() @ b.abs() + bias.abs()


exercise = Exercise(
    entry="linear_leaky_relu",
    reference=lambda a, b, bias: leaky_relu_((a @ b).add_(bias), 0.01),  # called in float64; in place, as c is large
    returns="c",
    bound=RoundingModel(rounding, terms=size_of_terms),  # fp32 accumulation, bias and activation, one rounding to fp16
    dtypes=("float16",),
    minutes=35,
    presumes=("05_grouped_matmul",),
    example=Example(normal(5, 3), normal(3, 6), normal(6)),
    cut="a[m, :], b[:, n], bias[n] -> c[m, n]",
)


def below_zero(*shape):
    return normal(*shape) - 4


def vast(*shape):
    """Up to the largest numbers of fp16, with room for the sums."""
    return uniform(*shape) * 60_000


@pytest.mark.core
def test_one_tile(check):
    check(normal(64, 64), normal(64, 64), normal(64))


@pytest.mark.core
def test_no_size_is_a_multiple_of_a_block(check):
    check(normal(131, 97), normal(97, 267), normal(267))


@pytest.mark.core
def test_more_rows_than_columns(check):
    check(normal(267, 33), normal(33, 131), normal(131))


@pytest.mark.core
def test_the_bias_alone(check):
    check(normal(67, 33) * 0, normal(33, 131), normal(131))


@pytest.mark.core
def test_a_bias_far_below_zero(check):
    check(normal(67, 33), normal(33, 131), below_zero(131) * 20)


def test_a_large_bias_beside_a_small_product(check):
    check(normal(67, 33) * 0.1, normal(33, 131), normal(131) * 100)


def test_a_product_that_the_bias_takes_back(check):
    check(uniform(67, 96), uniform(96, 131), normal(131) * 0 - 24)


@pytest.mark.core
def test_small_integers_are_summed_exactly_in_every_configuration(check):
    check(integers(131, 75), integers(75, 267), integers(267), bound="exact")


def test_sums_that_cancel_keep_their_digits(check):
    check(*cancelling(33, 16257, 40), integers(40), bound="exact")


def test_a_row_with_a_single_one_picks_a_row_of_b(check):
    check(one_hot(67, 75), normal(75, 71), normal(71))


def test_both_inputs_are_transposed_views(check):
    check(normal(67, 75).transposed(), normal(75, 131).transposed(), normal(131))


def test_rows_of_both_inputs_are_padded(check):
    check(normal(67, 75).padded(), normal(75, 131).padded(), normal(131))


def test_one_element(check):
    check(normal(1, 1), normal(1, 1), normal(1))


@pytest.mark.core
def test_one_kernel_does_it_all(traffic):
    # Tiles of at least 16 x 16: a is read once per 16 columns of c at most, b and the bias once per 16 rows.
    data = normal(64, 64), normal(64, 96), normal(96)
    traffic(*data, reads={"a": 6, "b": 4, "bias": 4}, writes=1, launches=1, idle=0)


def test_products_run_on_tensor_cores_while_loads_run_ahead(compiled):
    compiled(normal(4096, 4096), normal(4096, 4096), normal(4096), tensor_cores=True, pipelined=True)


def test_each_size_makes_a_choice_of_its_own(tuned):
    fewer_rows = normal(64, 4096), normal(4096, 4096), normal(4096)
    fewer_columns = normal(4096, 4096), normal(4096, 64), normal(64)
    shorter_sums = normal(4096, 64), normal(64, 4096), normal(4096)
    data = normal(4096, 4096), normal(4096, 4096), normal(4096)
    tuned(*data, others=[fewer_rows, fewer_columns, shorter_sums], configurations=(4, 24))


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(140, limit=2**20, block=128),
            "K": upto(100, least=0, once=900, limit=2**14, block=64),
            "N": upto(200, limit=2**20, block=128),
        },
        a=any_strides("M", "K", values=(uniform, normal, subnormal)),
        b=any_strides("K", "N", values=(uniform, normal, subnormal)),
        bias=contiguous("N", values=(normal, uniform, subnormal, below_zero, vast)),  # in ordinary calls of both signs
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(1031, 777), normal(777, 2053), normal(2053))


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(65537, 64), normal(64, 16411), normal(16411))


def test_it_reaches_the_gate(throughput):
    throughput(normal(4096, 4096), normal(4096, 4096), normal(4096), anchor="matmul", at_least=0.61)
