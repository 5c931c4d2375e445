"""10 · RMS norm: what a right kernel must do."""

import pytest
import torch

from grader import (
    U32,
    Example,
    Exercise,
    Result,
    RoundingModel,
    any_strides,
    between,
    normal,
    one_hot,
    subnormal,
    target,
    uniform,
    upto,
    with_some,
)


def add_rms_norm_in_float64(x, residual, weight, eps):
    h = residual + x
    return h / torch.sqrt(h.square().mean(dim=-1, keepdim=True) + eps) * weight, h


def constant(value, *shape):
    return normal(*shape) * 0 + value


def hundreds(*shape):
    """The square of one above 255 is no number of fp16."""
    return normal(*shape) * 100


def vast(*shape):
    """Up to half of the largest size that the lesson promises: it is promised of residual + x, too."""
    return uniform(*shape) * 65_000 - 32_500


def zeros_in_some_rows(*shape):
    """In the first row, and in others."""
    return normal(*shape).then("whole rows", 0)


def rounding(z, x, residual, weight, eps):
    """How far rounding may carry z, [M, N]: by 16 U32 = 16 * 2**-24 of itself, as squares never cancel.

    The sum and two products err by 3 U32, the mean of squares by at most 10, of which the root keeps half: 2 of the
    sum, 1 of the square, 4 of adding in blocks, 3 of the division and eps. Root and reciprocal are approximate on a
    GPU: 2 and 4 (CUDA C++ Programming Guide, mathematical functions; PTX ISA, sqrt.approx and div.full).
    """
    return z.abs().mul_(16 * U32)


exercise = Exercise(
    entry="add_rms_norm",
    reference=add_rms_norm_in_float64,
    returns=Result("z", bound=RoundingModel(rounding)),
    updates=("residual",),
    bound="exact",  # of the residual: one addition has one right rounding
    minutes=25,
    presumes=("09_layer_norm",),
    example=Example(normal(3, 5), normal(3, 5), normal(5), 1e-5),
    cut="x[m, :], residual[m, :], weight[:] -> z[m, :], residual[m, :]",
)


@pytest.mark.core
def test_columns_fill_the_block(check):
    check(normal(8, 128), normal(8, 128), normal(128), 1e-5)


@pytest.mark.core
def test_columns_are_not_a_power_of_two(check):
    check(normal(5, 1009), normal(5, 1009), normal(1009), 1e-5)


@pytest.mark.core
def test_one_column_past_a_power_of_two(check):
    check(normal(8, 129), normal(8, 129), normal(129), 1e-5)


@pytest.mark.core
def test_a_few_columns(check):
    check(normal(9, 17), normal(9, 17), normal(17), 1e-5)


def test_two_thousand_columns(check):
    check(normal(3, 2000), normal(3, 2000), normal(2000), 1e-5)


@pytest.mark.core
def test_one_column(check):
    check(normal(12, 1), normal(12, 1), normal(1), 1e-5)


@pytest.mark.core
def test_one_row(check):
    check(normal(1, 300), normal(1, 300), normal(300), 1e-5)


def test_small_values_beside_a_large_eps(check):
    check(normal(8, 200) * 0.002, normal(8, 200) * 0.002, normal(200), 1e-5)


def test_rows_of_zeros_give_zeros(check):
    check(zeros_in_some_rows(8, 70), zeros_in_some_rows(8, 70), normal(70), 1e-12)


def test_squares_may_pass_the_largest_number_of_fp16(check):
    check(hundreds(8, 200), hundreds(8, 200), normal(200), 1e-5)


def test_one_large_number_among_small_ones(check):
    check(one_hot(8, 200) * 30000, normal(8, 200) * 0.01, normal(200) * 30, 1e-5)


def test_z_is_made_from_the_sum_before_its_rounding(check):
    below, above = 0.49, 0.51  # of a step from 1 to the next number of the dtype
    for dtype, step in (("float16", 2**-10), ("bfloat16", 2**-7)):
        x = with_some(above * step, constant(below * step, 8, 200))
        check(x, constant(1, 8, 200), normal(200), 1e-5, dtypes=(dtype,))


def test_the_residual_is_a_transposed_view(check):
    check(normal(17, 70), normal(17, 70).transposed(), normal(70), 1e-5)


def test_x_is_transposed_and_the_residual_padded(check):
    check(normal(17, 70).transposed(), normal(17, 70).padded(), normal(70), 1e-5)


def test_x_is_padded_and_the_residual_has_holes(check):
    check(normal(17, 70).padded(), normal(17, 70).every_second(), normal(70), 1e-5)


def test_x_is_every_second_element(check):
    check(normal(17, 70).every_second(), normal(17, 70), normal(70), 1e-5)


def test_x_is_one_row_seen_many_times(check):
    check(normal(17, 70).expanded(), normal(17, 70), normal(70), 1e-5)


def test_the_weight_is_every_second_element(check):
    check(normal(8, 200), normal(8, 200), normal(200).every_second(), 1e-5)


@pytest.mark.core
def test_one_launch_reads_and_writes_each_element_once(traffic):
    rows = 32  # each takes the weight once, from the cache
    data = normal(rows, 1000), normal(rows, 1000), normal(1000), 1e-5
    traffic(*data, reads={"x": 1, "residual": 1, "weight": rows}, writes=1, launches=1)


def test_no_program_is_idle(traffic):
    traffic(normal(32, 1000), normal(32, 1000), normal(1000), 1e-5, reads={}, idle=0)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(32, 1000), normal(32, 1000), normal(1000), 1e-5, reads={}, moved=1.5)


def test_a_row_stays_in_registers(compiled):
    compiled(normal(4096, 4096), normal(4096, 4096), normal(4096), 1e-5)


def test_the_longest_row_stays_in_registers(compiled):
    compiled(normal(1024, 16384), normal(1024, 16384), normal(16384), 1e-5)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={"M": upto(40, least=0, limit=2**30, block=8), "N": upto(1500, once=16384, limit=16384, block=256)},
        x=any_strides("M", "N", values=(normal, hundreds, subnormal, zeros_in_some_rows, vast)),
        residual=target("M", "N", values=(normal, hundreds, subnormal, zeros_in_some_rows, vast)),
        weight=any_strides("N"),
        eps=between(1e-12, 1e4),
        dtypes=("float32", "float16", "bfloat16"),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    data = normal(4099, 12671), normal(4099, 12671), normal(12671), 1e-6
    on_gpu(*data, dtypes=("float32", "float16", "bfloat16"))


def test_more_rows_than_axis_1_of_a_grid_takes(on_gpu):
    on_gpu(normal(70001, 2053), normal(70001, 2053), normal(2053), 1e-6, dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(16384, 4096), normal(16384, 4096), normal(4096), 1e-6, at_least=0.8)
