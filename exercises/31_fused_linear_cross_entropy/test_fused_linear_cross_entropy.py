"""31 · Fused linear cross entropy: what a right kernel must do."""

import pytest
import torch

from grader import (
    U32,
    Example,
    Exercise,
    Result,
    RoundingModel,
    any_strides,
    contiguous,
    error_of_sum,
    falling_down,
    first_row,
    indices,
    integers,
    into,
    level,
    made,
    normal,
    one_of,
    upto,
    with_some,
)

IGNORED = -100  # the target of a row that does not count
MOST_LOGITS = 1 << 24  # that stand in memory at once, of all rows


def loss_and_lse(x, weight, target, label_smoothing, z_loss):
    lse = by_rows(lambda logits, _: logits.logsumexp(dim=1), x, weight, target)
    picked = by_rows(lambda logits, at: (wanted(logits, at, label_smoothing) * logits).sum(dim=1), x, weight, target)
    return (lse - picked + z_loss * lse**2).masked_fill(target == IGNORED, 0), lse


def by_rows(of_logits, x, weight, target):
    """[M], from the logits and targets of a few rows at a time: the logits of all rows would fill a GPU."""
    few = max(1, MOST_LOGITS // max(1, len(weight)))
    found = [of_logits(x[i : i + few] @ weight.mT, target[i : i + few]) for i in range(0, len(x), few)]
    return torch.cat([x.new_empty(0), *found])


def wanted(logits, target, label_smoothing):
    """The target's distribution, [M, V]."""
    q = torch.full_like(logits, label_smoothing / logits.shape[1])
    return q.scatter_add_(1, target.clamp(min=0)[:, None], q.new_full((len(q), 1), 1 - label_smoothing))


def rounding_of_lse(lse, x, weight, target, label_smoothing, z_loss):
    """How far rounding may carry the log-sum-exp, [M], u being U32 = 2**-24. An error of logit v counts as much as its
    probability: that of a sum of K products, 4 u of it for the exponential's base, and 2 |max - logit| u of exp of a
    rounded difference. The sum errs by 4 u for each iteration over 256 columns, the fewest that a right kernel takes at
    a time of a large vocabulary; the logarithm makes an absolute error of a relative one, and rounds."""
    of_a_product, others = error_of_sum(x.shape[1]) + 4, 20 + len(weight) / 64

    def of_logits(logits, target):
        return (torch.softmax(logits, dim=1) * (logits.amax(dim=1, keepdim=True) - logits)).sum(dim=1) * 2

    differences = by_rows(of_logits, x, weight, target)
    terms = sum_of_terms(lambda logits, _: torch.softmax(logits, dim=1), x, weight, target)
    return (of_a_product * terms + differences + 2 * lse.abs() + others) * U32


def rounding_of_loss(loss, x, weight, target, label_smoothing, z_loss):
    """How far rounding may carry the loss, [M]: the log-sum-exp as far as its own bound says, and its square twice
    |lse| as far; the sum of q logits by the error of each product and of its sum over blocks of 256 columns."""
    lse = by_rows(lambda logits, _: logits.logsumexp(dim=1), x, weight, target)
    of_lse = rounding_of_lse(lse, x, weight, target, label_smoothing, z_loss)
    terms = sum_of_terms(lambda logits, at: wanted(logits, at, label_smoothing), x, weight, target)
    of_picked = (error_of_sum(x.shape[1]) + 8 + len(weight) / 256) * U32 * terms
    error = of_lse * (1 + 2 * z_loss * lse.abs()) + of_picked + 4 * z_loss * lse**2 * U32
    return error.masked_fill_(target == IGNORED, 0)


def sum_of_terms(weights, x, weight, target):
    """[M]: of each row, the sum of what a logit is made of, sum |x| |w|, weighted by `weights` of the logits."""
    few = max(1, MOST_LOGITS // max(1, len(weight)))
    rows = [slice(i, i + few) for i in range(0, len(x), few)]
    found = [(weights(x[i] @ weight.mT, target[i]) * (x[i].abs() @ weight.abs().mT)).sum(dim=1) for i in rows]
    return torch.cat([x.new_empty(0), *found])


def held(x, weight, target):
    return 6 * min(MOST_LOGITS, x[0] * weight[0])


LSE = RoundingModel(rounding_of_lse, held=held)

exercise = Exercise(
    entry="linear_cross_entropy",
    reference=loss_and_lse,  # called in float64
    returns=(Result("loss", dtype="float32"), Result("lse", dtype="float32", bound=LSE)),
    bound=RoundingModel(rounding_of_loss, held=held),
    dtypes=("float16",),
    minutes=60,
    presumes=("05_grouped_matmul", "14_split_softmax", "18_cross_entropy"),
    example=Example(
        integers(3, 4), integers(10, 4), indices(3, below=10).of("int64"), 0.0, 0.0,
        BLOCK_M=2, BLOCK_V=4, BLOCK_K=2, SPLITS=2,
    ),
    cut="x[m, :], weight[:, :], target[m] -> loss[m], lse[m]",
    product=lambda x, weight, target: (*x, weight[0]),
)  # fmt: skip

ONE_SPLIT = dict(BLOCK_M=32, BLOCK_V=32, BLOCK_K=32, SPLITS=1)  # many tiles from little data
SMALL = dict(BLOCK_M=32, BLOCK_V=32, BLOCK_K=32, SPLITS=2)
THREE = dict(BLOCK_M=16, BLOCK_V=16, BLOCK_K=16, SPLITS=3)  # no power of two
BOTH = ("float16", "bfloat16")


# ---- data ------------------------------------------------------------------------------------------------------------


def words(V, K):
    """Rows of weight that make logits of about 1, as a model's are when its training begins."""
    return normal(V, K) * K**-0.5


def targets(M, below):
    """Any column of each row."""
    return indices(M, below=below).of("int64")


def some_ignored(M, below):
    return with_some(IGNORED, targets(M, below))


def around(number, data):
    """Near this number, with a spread of a tenth of it: two such factors make logits far from 0."""
    return data * (0.1 * number) + number


def sharp(M, K):
    """Rows whose logits are dozens: nearly one word takes all, another one in each row."""
    return normal(M, K) * 30


def growing(V, K):
    """Logits grow from column to column, if the row of x is positive."""
    return made(lambda x: torch.linspace(-20, 20, V).to(x)[:, None].expand(V, K) / x.abs().mean() / K, normal(V, K))


def falling_words(V, K):
    return growing(V, K) * -1


def deep(M, K):
    """Rows whose logits lie near 256, the first one's, to near -256, the last one's: with weight around 2."""
    return falling_down(M, K) * 0.02


def positive(M, K):
    return around(1, normal(M, K))


# ---- core: fp16, contiguous, each row counts, no smoothing and no z-loss ---------------------------------------------


def core(test):
    """Nearly half of all points for the first six tests."""
    return pytest.mark.core(pytest.mark.points(3)(test))


@core
def test_one_tile_of_logits(check):
    check(normal(32, 32), words(32, 32), targets(32, 32), 0.0, 0.0, **ONE_SPLIT)


@core
def test_several_steps_along_k(check):
    check(normal(32, 96), words(32, 96), targets(32, 32), 0.0, 0.0, **ONE_SPLIT)


@core
def test_a_vocabulary_of_several_blocks(check):
    check(normal(32, 32), words(96, 32), targets(32, 96), 0.0, 0.0, **ONE_SPLIT)


@core
def test_two_splits_are_joined(check):
    check(normal(32, 32), words(128, 32), targets(32, 128), 0.0, 0.0, **SMALL)


@core
def test_no_size_is_a_multiple_of_its_block(check):
    check(normal(67, 43), words(149, 43), targets(67, 149), 0.0, 0.0, **SMALL)


@core
def test_the_logits_are_never_in_memory(traffic):
    # 3 tiles of rows, 8 blocks of columns in 2 splits: 12 bytes of scratch for each row and split. A kernel may read x
    # and the rows that target names once more.
    traffic(
        normal(96, 64), words(256, 64), targets(96, 256), 0.0, 0.0, **SMALL, launches=2, idle=0, kept=3 * 96 * 2,
        reads={"x": 9, "weight": 3.38, "target": 9}, writes=1, share={"weight": 0.63}, float_atomics=False,
    )  # fmt: skip


# ---- sizes -----------------------------------------------------------------------------------------------------------


def test_blocks_and_splits_of_the_file(check):
    check(normal(130, 70), words(1009, 70), targets(130, 1009), 0.0, 0.0)


def test_one_column_past_a_split_and_one_less(check):
    check(normal(5, 32), words(129, 32), targets(5, 129), 0.0, 0.0, **SMALL)
    check(normal(5, 32), words(127, 32), targets(5, 127), 0.0, 0.0, **SMALL)


def test_splits_without_columns(check):
    check(normal(5, 32), words(7, 32), targets(5, 7), 0.0, 0.0, **THREE)


def test_one_row_and_two_words(check):
    check(normal(1, 1), words(2, 1), targets(1, 2), 0.0, 0.0, **SMALL)


def test_no_row(check):
    check(normal(0, 32), words(70, 32), targets(0, 70), 0.0, 0.0, **SMALL)


# ---- values ----------------------------------------------------------------------------------------------------------


def test_bf16(check):
    check(normal(67, 43), words(149, 43), targets(67, 149), 0.0, 0.0, dtypes=("bfloat16",), **SMALL)


def test_logits_grow_from_block_to_block(check):
    check(positive(37, 43), growing(149, 43), targets(37, 149), 0.0, 0.0, **SMALL)


def test_logits_fall_from_block_to_block(check):
    check(positive(37, 43), falling_words(149, 43), targets(37, 149), 0.0, 0.0, **SMALL)


def test_rows_lie_from_far_above_zero_to_far_below(check):
    check(deep(130, 64), around(2, normal(149, 64)), targets(130, 149), 0.0, 0.0, **THREE)


def test_logits_far_below_zero(check):
    check(around(2, normal(37, 64)), around(-2, words(149, 64)), targets(37, 149), 0.0, 0.0, **THREE)


def test_large_logits_keep_their_digits(check):
    check(sharp(37, 64), words(149, 64), targets(37, 149), 0.0, 0.0, dtypes=BOTH, **SMALL)


# ---- rows that do not count, label smoothing, z-loss -----------------------------------------------------------------


def test_ignored_rows_have_no_loss(check):
    check(normal(67, 43), words(149, 43), some_ignored(67, 149), 0.0, 0.0, **SMALL)


def test_the_first_row_is_ignored(check):
    ignored = made(lambda x: torch.tensor([IGNORED, 1, 148, IGNORED]).to(x.device), targets(4, 149))
    check(first_row(3.0, normal(4, 43)), words(149, 43), ignored, 0.0, 0.0, **SMALL)


def test_labels_are_smoothed(check):
    check(normal(67, 43), words(149, 43), some_ignored(67, 149), 0.1, 0.0, **SMALL)


def test_a_share_of_the_squared_lse_is_added(check):
    check(normal(67, 43), words(149, 43), some_ignored(67, 149), 0.0, 0.25, **SMALL)


def test_both_far_below_zero(check):
    check(around(2, normal(37, 64)), around(-2, words(149, 64)), some_ignored(37, 149), 0.2, 1e-4, **SMALL)


# ---- layouts ---------------------------------------------------------------------------------------------------------


def test_both_inputs_are_transposed_views(check):
    x, weight = normal(67, 43).transposed(), words(149, 43).transposed()
    check(x, weight, targets(67, 149), 0.0, 0.0, **SMALL)


def test_rows_of_both_inputs_are_padded(check):
    check(normal(67, 43).padded(), words(149, 43).padded(), targets(67, 149), 0.0, 0.0, **SMALL)


def test_both_inputs_are_every_second_element(check):
    x, weight = normal(67, 43).every_second(), words(149, 43).every_second()
    check(x, weight, targets(67, 149), 0.0, 0.0, **SMALL)


# ---- cost ------------------------------------------------------------------------------------------------------------


def test_products_run_on_tensor_cores_while_loads_run_ahead(compiled):
    # A tile of 128 x 256 logits fits the registers of an H100 alone; one of 64 x 128 those of every GPU.
    data = normal(4096, 2048), words(32768, 2048), targets(4096, 32768), 0.0, 0.0
    compiled(*data, BLOCK_M=64, BLOCK_V=128, tensor_cores=True, halves=True, pipelined=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(70, least=0, limit=2**20, BLOCK_M=128),
            "K": upto(70, limit=2**13, BLOCK_K=64),
            "V": upto(150, once=1500, limit=2**18, BLOCK_V=256),
        },
        x=any_strides("M", "K", values=(normal, sharp, positive)),
        weight=any_strides("V", "K", values=(words, normal, level)),
        target=contiguous("M", values=(into("V", draw=targets), into("V", draw=some_ignored)), dtype="int64"),
        label_smoothing=one_of(0.0, 0.1, 0.5, 1.0),
        z_loss=one_of(0.0, 1e-4, 0.5),
        dtypes=BOTH,
        blocks=(SMALL, dict(BLOCK_M=16, BLOCK_V=64, BLOCK_K=16, SPLITS=3)),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    data = normal(1031, 777), words(5003, 777), some_ignored(1031, 5003)
    on_gpu(*data, 0.1, 1e-4, dtypes=BOTH)


def test_it_reaches_the_gate(throughput):
    data = normal(4096, 2048), words(32768, 2048), targets(4096, 32768), 0.0, 0.0
    throughput(*data, anchor="matmul", at_least=0.32)
