"""09 · Layer norm: what a right kernel must do."""

import pytest

from grader import (
    U32,
    Example,
    Exercise,
    Result,
    RoundingModel,
    any_strides,
    between,
    contiguous,
    normal,
    uniform,
    upto,
)


def layer_norm_in_float64(x, weight, bias, eps):
    mean = x.mean(dim=1)
    d = x - mean[:, None]
    rstd = (d.square().mean(dim=1) + eps).rsqrt()
    return d.mul_(rstd[:, None]).mul_(weight).add_(bias), mean, rstd  # in place: x may fill half of a GPU


def far_from_zero(*shape):
    """Around 1000 with a spread of 1: squares have no digits left for the spread."""
    return normal(*shape) + 1000


def thousands(*shape):
    """With a large eps: both count in the variance."""
    return normal(*shape) * 1000


def vast(*shape):
    """Up to the largest size that the lesson promises."""
    return uniform(*shape) * 130_000 - 65_000


def tiny(*shape):
    """So small that eps decides."""
    return normal(*shape) * 0.002


FEW = 16 * U32  # U32 = 2**-24 is one rounding in fp32: 16 are twice what right kernels of all kinds need


def rounding_of_z(z, x, weight, bias, eps):
    """How far rounding may carry z, [M, N]: the mean errs by few U32 of mean|x|, and its error is divided by the
    spread; then each product rounds."""
    sizes = (condition(x, eps)[:, None] + 1) * weight.abs() + bias.abs()
    scaled = (z - bias).abs_()  # |weight| |x - mean| rstd
    return sizes.add_(scaled.mul_(1 + of_first_number(x, eps)[:, None])).mul_(FEW)


def rounding_of_mean(mean, x, weight, bias, eps):
    """[M]: blocked sums err by few U32 of their terms' size, and terms may be distances to a row's first number."""
    return (x.abs().mean(dim=1) + first_distance(x)).mul_(FEW)


def rounding_of_rstd(rstd, x, weight, bias, eps):
    """[M]: the relative error that rounding may give the root of the variance, times rstd."""
    return (condition(x, eps) + of_first_number(x, eps) + 1).mul_(FEW).mul_(rstd)


def condition(x, eps):
    """mean|x| in units of the spread, [M], by which a relative error of the mean is multiplied.

    T. Chan, G. Golub, R. LeVeque, Algorithms for Computing the Sample Variance, The American Statistician 37 (1983): a
    variance errs by less than that factor times U32, also where it is gathered in a single pass, mean by mean.
    """
    return x.abs().mean(dim=1) * root_of_variance(x, eps)


def of_first_number(x, eps):
    """Returns what is added to the error of rstd, [M], in FEW, where distances to a row's first number are summed.

    Right kernels do that. In the same paper, if that number lies k spreads away from the mean, the variance errs 1 +
    k^2 times as much as with distances to the mean; k reaches 4 in one of many rows. The root halves the error.
    """
    return (first_distance(x) * root_of_variance(x, eps)).square_().div_(2)


def first_distance(x):
    """How far the first number of each row lies from the row's mean, [M]; 0 where a row is empty."""
    return (x[:, :1] - x.mean(dim=1, keepdim=True)).abs_().sum(dim=1)


def root_of_variance(x, eps):
    """rstd, [M]; torch would warn of a variance of nothing, and pytest would show it."""
    return (x.var(dim=1, correction=0) + eps).rsqrt() if x.numel() else x.new_ones(len(x))


exercise = Exercise(
    entry="layer_norm",
    reference=layer_norm_in_float64,  # called in float64
    returns=(
        "z",
        Result("mean", dtype="float32", bound=RoundingModel(rounding_of_mean)),
        Result("rstd", dtype="float32", bound=RoundingModel(rounding_of_rstd)),
    ),
    bound=RoundingModel(rounding_of_z),
    minutes=30,
    presumes=("03_softmax",),
    example=Example(normal(3, 5), normal(5), normal(5), 1e-5),
    cut="x[m, :], weight[:], bias[:] -> z[m, :], mean[m], rstd[m]",
)


@pytest.mark.core
def test_one_row_fills_the_block(check):
    check(normal(12, 128), normal(128), normal(128), 1e-5)


@pytest.mark.core
def test_columns_are_not_a_power_of_two(check):
    check(normal(12, 781), normal(781), normal(781), 1e-5)


@pytest.mark.core
def test_padding_adds_nothing_to_the_variance(check):
    check(normal(12, 17) + 3, normal(17), normal(17), 1e-5)


@pytest.mark.core
def test_one_column_past_a_power_of_two(check):
    check(normal(12, 129), normal(129), normal(129), 1e-5)


def test_a_row_of_two_thousand_columns(check):
    check(normal(3, 2000), normal(2000), normal(2000), 1e-5)


@pytest.mark.core
def test_two_columns(check):
    check(normal(12, 2), normal(2), normal(2), 1e-5)


def test_one_column(check):
    check(normal(12, 1), normal(1), normal(1), 1e-5)


@pytest.mark.core
def test_one_row(check):
    check(normal(1, 1009), normal(1009), normal(1009), 1e-5)


def test_eps_counts_where_values_are_small(check):
    check(tiny(12, 200), normal(200), normal(200), 1e-5)


def test_eps_may_be_another_one(check):
    check(normal(12, 200), normal(200), normal(200), 1.0)


def test_a_row_of_equal_numbers(check):
    check(normal(12, 200) * 0 + 3, normal(200), normal(200), 1e-5)


def test_a_spread_of_one_around_a_thousand(check):
    check(far_from_zero(12, 200), normal(200), normal(200), 1e-5)


def test_sums_and_squares_past_the_largest_fp16_number(check):
    check(normal(8, 1000) * 300 + 2000, normal(1000), normal(1000), 1e-5)


def test_the_input_is_a_transposed_view(check):
    check(normal(17, 70).transposed(), normal(70), normal(70), 1e-5)


def test_rows_are_padded(check):
    check(normal(17, 70).padded(), normal(70), normal(70), 1e-5)


def test_the_input_is_every_second_element(check):
    check(normal(17, 70).every_second(), normal(70), normal(70), 1e-5)


@pytest.mark.core
def test_a_row_is_read_once_by_one_launch(traffic):
    data = normal(32, 1000), normal(1000), normal(1000), 1e-5
    traffic(*data, reads={"x": 1, "weight": 32, "bias": 32}, writes=1, launches=1, idle=0)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(32, 1000), normal(1000), normal(1000), 1e-5, reads={"x": 1}, moved=1.5)


def test_a_long_row_stays_in_registers(compiled):
    compiled(normal(4096, 8192), normal(8192), normal(8192), 1e-5, vectors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={"M": upto(40, least=0, limit=2**30, block=8), "N": upto(1500, once=16384, limit=16384, block=256)},
        x=any_strides("M", "N", values=(normal, thousands, tiny, far_from_zero, vast)),
        weight=contiguous("N", values=(normal, vast)),
        bias=contiguous("N", values=(normal, vast)),
        eps=between(1e-12, 1e4),
        dtypes=("float32", "float16", "bfloat16"),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    data = normal(4099, 12671), normal(12671), normal(12671), 1e-5
    on_gpu(*data, dtypes=("float32", "float16", "bfloat16"))


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(262147, 2053), normal(2053), normal(2053), 1e-5, dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(16384, 8192), normal(8192), normal(8192), 1e-5, at_least=0.77)
