"""36 · Torch operator: what an operator that torch differentiates and compiles must do."""

import pytest
import torch

from grader import U32, Example, Exercise, Result, RoundingModel, any_strides, falling, normal, upto


def swiglu_in_float64(dz, gate, up):
    s, rest = torch.sigmoid(gate), torch.sigmoid(-gate)  # rest is 1 - s, with all its digits
    return gate * s * up, dz * up * s * (1 + gate * rest), dz * gate * s


LEAST_SIGMOID = 2.0**-125  # twice the smallest normal number: for a smaller sigmoid exp(-g) or 1 / exp(-g) may give 0


def rounding_of_z(z, dz, gate, up):
    """How far rounding may carry z, [M, N]: as in 08, where the model is derived and measured."""
    return rounding_of_silu_times(up, gate, z)


def rounding_of_dup(dup, dz, gate, up):
    return rounding_of_silu_times(dz, gate, dup)


def rounding_of_silu_times(factor, gate, result):
    lost = (gate * factor).abs_().mul_(LEAST_SIGMOID)
    return gate.abs().mul_(2).add_(9).mul_(result.abs()).mul_(U32).add_(lost)


def rounding_of_dgate(dgate, dz, gate, up):
    size = gate.abs()
    s, rest = torch.sigmoid(gate), torch.sigmoid(-gate)
    factor = (11 + 2 * size).mul_((size * rest).add_(1)).add_(size * s, alpha=4)
    return factor.mul_(s).mul_(U32).add_(size.add_(1), alpha=LEAST_SIGMOID).mul_((dz * up).abs_())


exercise = Exercise(
    entry="training_step",
    reference=swiglu_in_float64,
    returns=(
        "z",
        Result("dgate", bound=RoundingModel(rounding_of_dgate)),
        Result("dup", bound=RoundingModel(rounding_of_dup)),
    ),
    bound=RoundingModel(rounding_of_z),
    minutes=50,
    presumes=("08_swiglu",),
    example=Example(normal(2, 6), normal(2, 6).padded(), normal(2, 6).padded(), BLOCK_N=4),
    cut="dz[m, n], gate[m, n], up[m, n] -> z[m, n], dgate[m, n], dup[m, n]",
)


def three(*shape):
    """dz, gate and up."""
    return normal(*shape), normal(*shape), normal(*shape)


@pytest.mark.core
def test_the_operator_of_the_backward_pass_gives_both_gradients(operator):
    operator(*three(7, 65), name="course::swiglu_backward", gives=("dgate", "dup"), BLOCK_N=64)


@pytest.mark.core
def test_the_operator_gives_z_and_torch_differentiates_it(operator):
    operator(*three(7, 128), name="course::swiglu", BLOCK_N=64)


def test_fakes_tell_of_views_what_is_so(operator):
    views = normal(17, 70).transposed(), normal(17, 70).transposed(), normal(17, 70).padded()
    operator(*views, name="course::swiglu_backward", gives=("dgate", "dup"))
    operator(*views, name="course::swiglu")


def test_fakes_tell_of_empty_matrices_what_is_so(operator):
    operator(*three(0, 70), name="course::swiglu_backward", gives=("dgate", "dup"))
    operator(*three(7, 0), name="course::swiglu")


@pytest.mark.core
def test_a_step_of_training(check):
    check(*three(7, 128), BLOCK_N=64)
    check(*three(3, 2100))


def test_no_rows_and_no_columns(check):
    check(*three(0, 70))
    check(*three(7, 0))


def test_each_input_has_strides_of_its_own(check):
    check(normal(17, 70).every_second(), normal(17, 70).transposed(), normal(17, 70).padded())
    check(normal(17, 70).transposed(), normal(17, 70).padded(), normal(17, 70).every_second())


def test_one_row_of_dz_is_seen_many_times(check):
    check(normal(17, 70).expanded(), normal(17, 70), normal(17, 70))


@pytest.mark.core
def test_two_launches_read_each_input_once_each(traffic):
    traffic(*three(16, 1100), reads={"dz": 1, "gate": 2, "up": 2}, writes=1, launches=2)


def test_it_compiles_for_a_gpu(compiled):
    compiled(*three(4096, 14336))


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(20, least=0, limit=2**30, block=4),
            "N": upto(2200, least=0, once=16384, limit=2**20, BLOCK_N=1024),
        },
        dz=any_strides("M", "N"),
        gate=any_strides("M", "N", values=(normal, falling)),
        up=any_strides("M", "N"),
        dtypes=("float32", "float16", "bfloat16"),
        share=0.5,
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(*three(1031, 14339), dtypes=("float32", "float16", "bfloat16"))


def test_more_rows_than_axis_1_of_a_grid_takes(on_gpu):
    on_gpu(*three(70001, 1031), dtypes=("float32",))
