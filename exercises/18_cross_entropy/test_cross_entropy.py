"""18 · Cross entropy: what a right kernel must do."""

import pytest
import torch

from grader import (
    FLUSHED,
    SOFTMAX,
    U32,
    Example,
    Exercise,
    Result,
    RoundingModel,
    any_strides,
    contiguous,
    falling,
    indices,
    into,
    leading,
    level,
    lone,
    made,
    normal,
    some_minus_infinity,
    upto,
    with_some,
)

IGNORED = -100  # the target of a row that does not count


def loss_and_gradient(logits, target, dloss):
    counts, column = target != IGNORED, target.clamp(min=0)[:, None]
    loss = (logits.logsumexp(dim=1) - logits.gather(1, column)[:, 0]).masked_fill_(~counts, 0)
    gradient = torch.softmax(logits, dim=1)  # in place from here on: logits may fill a part of a GPU
    gradient.scatter_add_(1, column, gradient.new_full(column.shape, -1.0)).mul_(dloss[:, None])
    return loss, gradient.masked_fill_(~counts[:, None], 0)


def rounding_of_loss(loss, logits, target, dloss):
    """How far rounding may carry the loss, [M]: the log-sum-exp and the target's logit are each rounded to within 2
    U32 = 2 * 2**-24 of their size, and an error of the sum, relative to it, is the logarithm's error as it is."""
    logits, column = counted_logits(logits, target), target.clamp(min=0)[:, None]
    sizes = logits.logsumexp(dim=1).abs_().add_(logits.gather(1, column)[:, 0].abs_())
    return sizes.mul_(2).add_(20 + of_iterations(logits)).mul_(U32)


def rounding_of_gradient(dlogits, logits, target, dloss):
    """How far rounding may carry each element, [M, V]: a probability as far as in any softmax, and by 2 |lse| U32 of
    it where exp(x - lse) makes it; all of a probability that is flushed to 0 is lost; at the target the difference from
    1 rounds too. All of it times |dloss|."""
    counts, column, logits = target != IGNORED, target.clamp(min=0)[:, None], counted_logits(logits, target)
    p = torch.softmax(logits, dim=1)
    of_lse = logits.logsumexp(dim=1, keepdim=True).abs_().mul_(2).add_(of_iterations(logits)).mul_(U32)
    error = SOFTMAX.arithmetic(p, logits).add_(p.mul_(of_lse)).add_(FLUSHED)
    error.scatter_add_(1, column, error.new_full(column.shape, 4 * U32))
    return error.mul_(dloss.abs().masked_fill_(~counts, 0)[:, None])


def counted_logits(logits, target):
    """A copy with 0 in rows that do not count, which may hold anything."""
    return logits.masked_fill((target == IGNORED)[:, None], 0)


def of_iterations(logits):
    """In U32: 4 for each iteration over 256 columns, the fewest that a right kernel takes at a time of a long row. Its
    sum is multiplied by an exponential, which errs by 2 U32, and added to, at 1 each, as in 13."""
    return 4 * logits.shape[-1] / 256


exercise = Exercise(
    entry="cross_entropy",
    reference=loss_and_gradient,  # called in float64
    returns=(Result("loss", dtype="float32", bound=RoundingModel(rounding_of_loss)), "dlogits"),
    bound=RoundingModel(rounding_of_gradient),
    dtypes=("bfloat16", "float32"),
    minutes=70,
    presumes=("12_gather_rows", "13_online_softmax"),
    example=Example(normal(3, 10), indices(3, below=10).of("int64"), level(3).of("float32"), BLOCK_V=4),
    cut="logits[m, :], target[m], dloss[m] -> loss[m], dlogits[m, :]",
)

SMALL = dict(BLOCK_V=128)  # several blocks from few columns
LOSS_ALONE = {"dlogits": "unjudged"}  # the core asks for the loss first, then for the gradient
ALL = ("bfloat16", "float32", "float16")
INFINITE = float("inf")


# ---- targets and gradients -------------------------------------------------------------------------------------------


def targets(M, below):
    """Any column of each row."""
    return indices(M, below=below).of("int64")


def counted(logits, target):
    """Rows with NaN or +inf, or without a finite number, do not count; no target's logit is -inf."""
    finite, spoilt = logits.isfinite(), logits.isnan() | logits.isposinf()
    at = target.clamp(min=0)[:, None]
    on_finite = finite.gather(1, at)[:, 0] | (target == IGNORED)
    target = torch.where(on_finite, target, finite.byte().argmax(dim=1))
    return target.masked_fill_(spoilt.any(dim=1) | ~finite.any(dim=1), IGNORED)


def counted_targets(M, below):
    return made(counted, targets(M, below))


def some_ignored(M, below):
    return made(counted, with_some(IGNORED, targets(M, below)))


def first_ignored(M, below):
    return made(lambda target: torch.cat([target[:1] * 0 + IGNORED, target[1:]]), targets(M, below))


def on_the_least(M, below):
    """The target is the least probable column of its row."""
    return made(lambda logits: logits.argmin(dim=1), targets(M, below))


def on_the_greatest(M, below):
    return made(lambda logits: logits.argmax(dim=1), targets(M, below))


def gradients(M):
    """Another number for each row."""
    return normal(M).of("float32")


def tiny(M):
    """As a mean over thousands of rows hands it back."""
    return gradients(M) * 1e-5


def hundreds(M):
    return gradients(M) * 300


def ones(M):
    return level(M).of("float32")


def spoilt_where_ignored(M):
    return made(lambda target, dloss: dloss.masked_fill(target == IGNORED, torch.nan), gradients(M))


# ---- logits ----------------------------------------------------------------------------------------------------------


def far(*shape):
    return normal(*shape) - 200


def confident(*shape):
    """Returns logits of which one in each row stands 10 above all others."""
    return made(lambda logits: logits + 10 * (logits == logits.amax(dim=1, keepdim=True)), normal(*shape))


def deep(*shape):
    """Near the lowest number of fp16."""
    return normal(*shape) * 100 - 50_000


def spoilt(*shape):
    """NaN and infinities here and there: in a sample, whose targets do not depend on logits, there are none."""
    return made(
        lambda logits: logits.masked_fill(logits > 3, torch.nan).masked_fill(logits < -3, INFINITE), normal(*shape)
    )


def below_a_hole(*shape):
    """Far below 0, and -inf in the first half: so there are blocks that hold nothing else."""
    return leading(-INFINITE, far(*shape))


# ---- core: the loss, then the gradient, in bf16, contiguous, each row counts, dloss is 1 ----------------------------


def core(test):
    """Half of all points for the first six tests."""
    return pytest.mark.core(pytest.mark.points(4)(test))


@core
def test_the_loss_of_rows_of_one_block(check):
    check(normal(7, 128), targets(7, 128), ones(7), bound=LOSS_ALONE, **SMALL)


@core
def test_the_loss_of_rows_of_several_blocks_and_a_part(check):
    check(normal(2, 9001), targets(2, 9001), ones(2), bound=LOSS_ALONE)


@core
def test_the_gradient_of_rows_of_one_block(check):
    check(normal(7, 128), targets(7, 128), ones(7), **SMALL)


@core
def test_the_gradient_of_rows_of_several_blocks_and_a_part(check):
    check(normal(12, 300), targets(12, 300), ones(12), **SMALL)


@core
def test_one_column_past_a_block_and_one_less(check):
    check(normal(5, 129), targets(5, 129), ones(5), **SMALL)
    check(normal(5, 127), targets(5, 127), ones(5), **SMALL)


@core
def test_one_launch_reads_logits_twice(traffic):
    data = normal(4, 9001), targets(4, 9001), ones(4)
    reads = {"logits": 2.001, "target": 1, "dloss": 1}
    traffic(*data, reads=reads, writes=1, launches=1, idle=0, scratch=0)


# ---- full: sizes -----------------------------------------------------------------------------------------------------


def test_two_columns(check):
    check(normal(12, 2), targets(12, 2), gradients(12), **SMALL)


def test_one_row(check):
    check(normal(1, 1009), targets(1, 1009), gradients(1), **SMALL)


def test_no_row(check):
    check(normal(0, 70), targets(0, 70), gradients(0), **SMALL)


# ---- a gradient for each row -----------------------------------------------------------------------------------------


def test_each_row_has_a_gradient_of_its_own(check):
    check(normal(12, 300), targets(12, 300), gradients(12), **SMALL)


def test_one_number_is_the_gradient_of_all_rows(check):
    check(normal(12, 300), targets(12, 300), (gradients(12) * 0.1 + 1).single(), **SMALL)


def test_gradients_of_rows_are_every_second_element(check):
    check(normal(12, 300), targets(12, 300), gradients(12).every_second(), **SMALL)


# ---- rows that do not count ------------------------------------------------------------------------------------------


def test_ignored_rows_have_no_loss_and_no_gradient(check):
    check(normal(20, 300), some_ignored(20, 300), gradients(20), **SMALL)


def test_the_first_row_is_ignored(check):
    check(normal(4, 140), first_ignored(4, 140), gradients(4), **SMALL)


def test_ignored_rows_may_hold_nan_and_infinity(check):
    check(lone(20, 300), counted_targets(20, 300), spoilt_where_ignored(20), **SMALL)


# ---- values ----------------------------------------------------------------------------------------------------------


def test_the_maximum_grows_from_block_to_block(check):
    check(falling(5, 1000) * -1, targets(5, 1000), gradients(5), **SMALL)


def test_the_maximum_stands_in_the_first_block(check):
    check(falling(5, 1000), targets(5, 1000), gradients(5), **SMALL)


def test_the_target_is_as_improbable_as_can_be(check):
    check(falling(5, 140) * 0.75, on_the_least(5, 140), gradients(5), **SMALL)


def test_the_target_is_nearly_certain(check):
    check(confident(5, 300), on_the_greatest(5, 300), gradients(5), dtypes=ALL, **SMALL)


def test_logits_far_below_zero(check):
    check(far(12, 200), targets(12, 200), gradients(12), **SMALL)


def test_logits_near_minus_50000(check):
    check(deep(5, 300), targets(5, 300), gradients(5), **SMALL)


def test_large_logits(check):
    check(normal(12, 300) * 3 + 300, targets(12, 300), gradients(12), **SMALL)


def test_minus_infinity_has_probability_zero(check):
    check(with_some(-INFINITE, normal(12, 300)), counted_targets(12, 300), gradients(12), **SMALL)


def test_whole_blocks_of_minus_infinity_may_come_first(check):
    check(leading(-INFINITE, normal(5, 600)), counted_targets(5, 600), gradients(5), **SMALL)
    check(below_a_hole(5, 600), counted_targets(5, 600), gradients(5), **SMALL)


# ---- layouts ---------------------------------------------------------------------------------------------------------


def test_logits_are_a_transposed_view(check):
    check(normal(12, 300).transposed(), targets(12, 300), gradients(12), **SMALL)


def test_rows_of_logits_are_padded(check):
    check(normal(12, 300).padded(), targets(12, 300), gradients(12), **SMALL)


def test_logits_are_every_second_element(check):
    check(normal(12, 300).every_second(), targets(12, 300), gradients(12), **SMALL)


# ---- cost ------------------------------------------------------------------------------------------------------------


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(4, 5000), targets(4, 5000), ones(4), reads={"logits": 2.001}, moved=1.5)


def test_a_long_row_stays_in_registers(compiled):
    compiled(normal(8192, 128256), targets(8192, 128256), ones(8192), vectors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(12, least=0, limit=2**29, block=4),
            "V": upto(700, once=9000, limit=2**18, BLOCK_V=4096),
        },
        logits=any_strides(
            "M",
            "V",
            values=(normal, far, falling, confident, deep, some_minus_infinity, below_a_hole, spoilt),
            reach=2**33,
        ),
        target=contiguous(
            "M", values=(into("V", draw=counted_targets), into("V", draw=some_ignored)), dtype="int64"
        ),
        dloss=any_strides("M", values=(normal, tiny, hundreds, spoilt_where_ignored), dtype="float32"),
        dtypes=ALL,
        blocks=({"BLOCK_V": 128},),
    )  # fmt: skip


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(1031, 16411), targets(1031, 16411), gradients(1031), dtypes=ALL)


def test_logits_of_more_than_two_billion_elements(on_gpu):
    on_gpu(normal(262147, 8209), targets(262147, 8209), gradients(262147), dtypes=("bfloat16",))


def test_it_reaches_the_gate(throughput):
    data = normal(8192, 128256), targets(8192, 128256), ones(8192)
    throughput(*data, at_least=0.40)
