"""08 · SwiGLU backward: what a right kernel must do."""

import pytest
import torch

from grader import (
    U32,
    Example,
    Exercise,
    Result,
    RoundingModel,
    any_strides,
    falling,
    normal,
    upto,
)


def swiglu_in_float64(dz, gate, up):
    s, rest = torch.sigmoid(gate), torch.sigmoid(-gate)  # rest is 1 - s, with all its digits
    return gate * s * up, dz * up * s * (1 + gate * rest), dz * gate * s


LEAST_SIGMOID = 2.0**-125  # twice the smallest normal number: for a smaller sigmoid exp(-g) or 1 / exp(-g) may give 0


def rounding_of_z(z, dz, gate, up):
    """How far rounding may carry z, [M, N]. exp of a rounded argument errs by |g| U32 = |g| 2**-24 and its own 2 ulp;
    sum, division of 2 ulp and products err by about 8 U32; 9 are allowed, so that torch in fp32 takes less than half:
    in 29 million elements on an H200 it took up to 0.514 of what 8 would allow.

    Below -88.7 exp(-g) is infinite and sigmoid 0: what is lost is no more than LEAST_SIGMOID of |g up|.
    """
    return rounding_of_silu_times(up, gate, z)


def rounding_of_dup(dup, dz, gate, up):
    return rounding_of_silu_times(dz, gate, dup)


def rounding_of_silu_times(factor, gate, result):
    lost = (gate * factor).abs_().mul_(LEAST_SIGMOID)
    return gate.abs().mul_(2).add_(9).mul_(result.abs()).mul_(U32).add_(lost)


def rounding_of_dgate(dgate, dz, gate, up):
    """Sigmoid has the same relative error, and there are three products more, in both terms of 1 + g (1 - s), which may
    cancel; then 1 - s, or silu - silu s, loses about 4 U32 of |g| s. Torch in fp32 took up to 0.616 of what 8 would
    allow (H200)."""
    size = gate.abs()
    s, rest = torch.sigmoid(gate), torch.sigmoid(-gate)
    factor = (11 + 2 * size).mul_((size * rest).add_(1)).add_(size * s, alpha=4)
    return factor.mul_(s).mul_(U32).add_(size.add_(1), alpha=LEAST_SIGMOID).mul_((dz * up).abs_())


exercise = Exercise(
    entry="swiglu_backward",
    reference=swiglu_in_float64,
    returns=(
        "z",
        Result("dgate", bound=RoundingModel(rounding_of_dgate)),
        Result("dup", bound=RoundingModel(rounding_of_dup)),
    ),
    bound=RoundingModel(rounding_of_z),
    minutes=25,
    presumes=("02_strided_blocks", "03_softmax"),
    example=Example(normal(2, 6), normal(2, 6).padded(), normal(2, 6).padded(), BLOCK_N=4),
    cut="dz[m, n], gate[m, n], up[m, n] -> z[m, n], dgate[m, n], dup[m, n]",
)


def three(*shape):
    """dz, gate and up."""
    return normal(*shape), normal(*shape), normal(*shape)


def low(*shape):
    """Gates around -15: silu of them is too small for all digits of fp16."""
    return normal(*shape) - 15


def vast(*shape):
    """Gates from 10,000 down to -10,000: exp of most is infinite, or 0."""
    return falling(*shape) * 100


def hundreds(*shape):
    """A product of two is too large for fp16."""
    return normal(*shape) * 300


def tens(*shape):
    return normal(*shape) * 30


def tiny(*shape):
    return normal(*shape) * 1e-4


@pytest.mark.core
def test_full_blocks(check):
    check(*three(7, 128), BLOCK_N=64)


@pytest.mark.core
def test_the_last_block_is_partial(check):
    check(*three(3, 2100))


@pytest.mark.core
def test_one_column_past_a_block(check):
    check(*three(7, 65), BLOCK_N=64)


@pytest.mark.core
def test_one_row(check):
    check(*three(1, 1009))


@pytest.mark.core
def test_one_column(check):
    check(*three(70, 1))


def test_no_rows_and_no_columns(check):
    check(*three(0, 70))
    check(*three(7, 0))


def test_gates_run_from_100_to_minus_100(check):
    check(normal(7, 201), falling(7, 201), normal(7, 201))
    check(normal(7, 201), falling(7, 201) * 50, normal(7, 201))


def test_small_activations_keep_their_digits(check):
    check(hundreds(7, 201), low(7, 201), hundreds(7, 201))


def test_gate_and_up_are_halves_of_a_wider_matrix(check):
    check(normal(17, 70), normal(17, 70).padded(), normal(17, 70).padded())


def test_each_input_has_strides_of_its_own(check):
    check(normal(17, 70).every_second(), normal(17, 70).transposed(), normal(17, 70).padded())
    check(normal(17, 70).transposed(), normal(17, 70).padded(), normal(17, 70).every_second())
    check(normal(17, 70).padded(), normal(17, 70).every_second(), normal(17, 70).transposed())


def test_one_row_of_dz_is_seen_many_times(check):
    check(normal(17, 70).expanded(), normal(17, 70), normal(17, 70))


def test_another_block_size_gives_the_same_result(check):
    check(*three(5, 1009), BLOCK_N=256)


@pytest.mark.core
def test_one_launch_reads_and_writes_each_element_once(traffic):
    traffic(*three(16, 1100), reads=1, writes=1, launches=1)


def test_no_program_is_idle(traffic):
    traffic(*three(8, 1024), idle=0, BLOCK_N=512)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(*three(16, 1000), moved=1.5)


def test_it_compiles_for_a_gpu(compiled):
    compiled(*three(4096, 14336))


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(20, least=0, limit=2**30, block=4),
            "N": upto(2200, least=0, once=16384, limit=2**20, BLOCK_N=1024),
        },
        dz=any_strides("M", "N", values=(normal, tens, tiny)),
        gate=any_strides("M", "N", values=(normal, low, falling, vast)),
        up=any_strides("M", "N", values=(normal, tens, tiny)),
        dtypes=("float32", "float16", "bfloat16"),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(*three(1031, 14339), dtypes=("float32", "float16", "bfloat16"))


def test_more_rows_than_axis_1_of_a_grid_takes(on_gpu):
    on_gpu(*three(70001, 1031), dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(*three(2048, 14336), at_least=0.8)
