"""Attention with its log-sum-exp: q [B, H, M, D], k, v [B, H, N, D] -> o [B, H, M, D], lse [B, H, M].

s = q k^T / sqrt(D), o = softmax(s) v, lse = log of the sum of exp(s). Heads are taken a few at a time, so that no more
than MOST_SCORES scores stand in memory at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.numerics.roundoff import U32
from grader.operations import gemm
from grader.operations._attention import Attention, KeyTiles, Results, falls, folded, whole
from grader.operations._attention_heads import of_other_elements
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import lanes, turns
from grader.operations.mistakes.half_precision import rounded
from grader.operations.mistakes.turns import Index, Loop
from grader.operations.softmax import LOG_OF_SMALLEST
from grader.sentences import Said

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

CAUSES = (
    "not-rescaled", "rescale-inverted", "block-maximum", "bases-mixed", "wrong-scale", "finite-start",
    "divided-each-turn", "k-not-turned", "wrong-lse", "head-across-batches", "strides-of-another", "rounded-too-early",
)  # fmt: skip
PLAIN_CAUSES = ("wrong-axis",)
DIGITS = ("rounded-too-early",)
RANGE = ("block-maximum", "finite-start", "rescale-inverted")
MOST_SCORES = 1 << 24
MOST_EXPLAINED = 1 << 21  # scores: every mistake computes them anew
LN_2, LOG2_E = math.log(2), 1 / math.log(2)
FEW = 16  # roundings besides the roundings of scores and of their differences
FEW_OF_A_SCORE = 4
AS_A_KEY = ", with the score 0: the score there has to be -inf."
TELLING = 8  # elements: fewer may fit rounded numbers by chance


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of o, [B, H, M, D]: 2 sum p delta |v|, as each p errs by a relative delta, and so does their sum.

    In delta, exp of a rounded difference errs by 2 |s - max| u. The score itself is a sum of D products, which errs by
    `gemm.growth(D)` u; its scale and another base of the exponential add FEW_OF_A_SCORE u. Both count relative to the
    score's terms, a = sum |q k| / sqrt(D). All other roundings are FEW u.
    """
    return by_heads(inputs, ref, lambda q, k, v: rounding_of_scores(scores(q, k), scores(q.abs(), k.abs()), v))


def rounding_of_scores(s: torch.Tensor, a: torch.Tensor, v: torch.Tensor, more: float = 0.0) -> torch.Tensor:
    """Returns c S of o, [..., M, D], of scores s, which are -inf for keys that are not seen. a is sum |q k| / sqrt(D)
    of each score, and is overwritten; `more` is a further error of each score, in u."""
    greatest = s.amax(dim=-1, keepdim=True)
    delta = a.mul_(FEW_OF_A_SCORE + gemm.growth(v.shape[-1])).add_(FEW + more).add_(greatest - s, alpha=2)
    delta.mul_(torch.softmax(s, dim=-1)).mul_(2 * U32)
    return delta.nan_to_num_(nan=0.0) @ v.abs()  # 0 times infinity, of keys that are not seen


def rounding_of_lse(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of lse, [B, H, M]: the error of the greatest score, as in `rounding`, and the error of the sum, which
    the logarithm turns from relative to absolute.

    A sum of N terms errs by N / 64 u where a kernel keeps 64 partial sums, or adds up tiles of 64 keys.
    """
    return by_heads(inputs, ref, lambda q, k, v: rounding_of_largest(scores(q.abs(), k.abs()), v))


def rounding_of_largest(a: torch.Tensor, v: torch.Tensor, more: float = 0.0) -> torch.Tensor:
    """Returns c S of lse, [..., M], from a = sum |q k| / sqrt(D), which is 0 for keys that are not seen. `more` is a
    further error of each score, in u."""
    largest, (keys, D) = a.amax(dim=-1), v.shape[-2:]
    return largest.mul_(FEW_OF_A_SCORE + gemm.growth(D)).add_(FEW + more + keys / 64).mul_(U32)


def conversion(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L of o: p is rounded to the dtype of v before the second product. R is 1.1 sum p |v|. L is 0.55 sum
    |v| / l: below the normal numbers of that dtype each p, measured against the greatest p of its row, loses half of
    eta."""
    rounded = by_heads(inputs, ref, lambda q, k, v: torch.softmax(scores(q, k), dim=-1) @ v.abs())
    lost = by_heads(inputs, ref, _divided_by_the_sum)
    return rounded.mul_(1.1), lost.mul_(1.1 / 2)


def _divided_by_the_sum(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    s = scores(q, k)
    total = torch.exp(s - s.amax(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
    return v.abs().sum(dim=-2, keepdim=True) / total


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of p |v| for o, [B, H, M, D]; for lse, [B, H, M], the largest sum |q k| / sqrt(D), which a
    score's rounding is relative to, plus 1."""
    if ref.dim() == as_tensor(inputs[0]).dim():
        return by_heads(inputs, ref, lambda q, k, v: torch.softmax(scores(q, k), dim=-1) @ v.abs())
    return by_heads(inputs, ref, lambda q, k, v: scores(q.abs(), k.abs()).amax(dim=-1)) + 1


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Returns q k^T / sqrt(D): [..., M, D], [..., N, D] -> [..., M, N]."""
    return q @ k.mT * q.shape[-1] ** -0.5


def held(shapes: Sequence[Sequence[int]]) -> int:
    """Returns how many numbers the bounds keep: four for each score of the heads that are taken at a time, namely the
    score, its terms, and what is made of both."""
    (B, H, M, _), (_, _, N, _) = shapes[:2]
    return 4 * M * N * min(B * H, _heads_at_a_time(M * N))


Heads = Callable[..., torch.Tensor]


def by_heads(inputs: Sequence[Argument], ref: torch.Tensor, of_heads: Heads) -> torch.Tensor:
    """Returns what `of_heads` makes of q, k, v and further inputs, a few heads at a time, [shape of ref]. It gets each
    input as [heads, ...], with batches and heads in one axis."""
    found, tensors = torch.empty_like(ref).flatten(0, 1), as_tensors(inputs)
    for heads in _few_heads(*tensors[:2]):
        found[heads] = of_heads(*(one.flatten(0, 1)[heads] for one in tensors))
    return found.view(ref.shape)


def _heads_at_a_time(scores_of_each: int) -> int:
    return max(1, MOST_SCORES // max(1, scores_of_each))


def _few_heads(q: torch.Tensor, k: torch.Tensor) -> Iterator[slice]:
    count, step = q.shape[0] * q.shape[1], _heads_at_a_time(q.shape[2] * k.shape[2])
    return (slice(start, start + step) for start in range(0, count, step))


LOST_DIGITS = Attention.LOST_DIGITS()


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 3:
        return
    q, k, v = given = as_tensors(inputs)
    if q.dim() != 4 or not q.numel():
        return
    if q.numel() // q.shape[3] * k.shape[2] > MOST_EXPLAINED:
        return
    step = evidence.constants.get("BLOCK_N", 0)
    walk = KeyTiles(scores(q, k), v, step if step > 0 else k.shape[2])
    yield from _where_nothing_is_left(evidence, walk)
    yield from in_scores(evidence, given, walk)
    yield from _past_the_end(walk)
    if len(walk.tiles) > 1:
        yield from in_joining(evidence, walk)
        yield from _in_turns(evidence, walk)
    yield from at_the_end(evidence, walk)
    yield from of_other_elements(evidence, given)
    yield from in_few_digits(evidence, given, walk)


def _other_result(evidence: Compared) -> torch.Tensor | None:
    """Returns lse as the kernel stored it, in float64, for when o is looked at; None if it is missing or empty."""
    lse = evidence.reply.outputs.get(evidence.exercise.results[-1].name)
    return None if lse is None or lse.numel() == 0 else lse.double()


def _where_nothing_is_left(evidence: Compared, walk: KeyTiles) -> Iterator[Hypothesis]:
    """Yields mistakes that leave NaN or 0 in o: mistakes in the first turn, and with scores far below 0."""
    o, out = evidence.exercise.results[0].name, evidence.comparison.out
    if evidence.returns != o:
        return
    rows, nan = evidence.comparison.wrong.any(dim=-1), out.isnan().all(dim=-1)
    passed = evidence.exercise.bound in evidence.right_before
    if bool(nan.all()) and not passed and bool((walk.s.abs() < -LOG_OF_SMALLEST).all()):
        yield Hypothesis("rescale-inverted", Attention.NAN_FROM_THE_START(o=o), None)
    if not passed or not bool(rows.any()):
        return
    keys, far = walk.s.shape[-1], bool((walk.own[..., -1] < LOG_OF_SMALLEST).all())
    if bool(nan.all()) and not far and keys % walk.step:
        if any(load.other == -math.inf for kernel in evidence.kernels for load in kernel.loads_with_other):
            yield Hypothesis("padding-counted", Attention.INFINITE_KEYS(o=o), None)
        elif keys < walk.step:
            yield Hypothesis("blocks-left-out", Attention.NO_TURN(keys=keys, step=walk.step), None)
    if not bool((walk.so_far[..., -1][rows] < LOG_OF_SMALLEST).all()):
        return
    if bool(nan[rows].all()):
        yield Hypothesis("finite-start", Attention.FINITE_START(o=o, found="NaN"), None)
    elif not bool(out[rows].any()):
        lse, right = _other_result(evidence), torch.logsumexp(walk.s, dim=-1)
        if lse is not None and bool((lse - right < 1)[rows].all()):  # less where terms of l have vanished
            yield Hypothesis("finite-start", Attention.FINITE_START(o=o, found="0"), None)
        elif walk.padding:
            yield Hypothesis("padding-counted", Attention.PADDING_TAKES_ALL(o=o), None)


def in_scores(evidence: Compared, inputs: Sequence[torch.Tensor], walk: KeyTiles) -> Iterator[Hypothesis]:
    """Yields wrong scales, wrong bases of exp, a softmax along the queries, and tiles of k that are not transposed."""
    s, v, D = walk.s, walk.v, walk.v.shape[-1]
    for factor, said in (
        (math.sqrt(D), Attention.NO_SCALE), (1 / math.sqrt(D), Attention.SCALED_BY_D),
        (LN_2, Attention.POWERS_OF_2), (LOG2_E, Attention.LOG2_E_AND_EXP),
    ):  # fmt: skip
        yield Hypothesis("wrong-scale", said(), whole(s * factor, v))
    down = torch.softmax(s, dim=-2) @ v
    yield Hypothesis("wrong-axis", Attention.DOWN_THE_COLUMNS(), (down, torch.logsumexp(s, dim=-1)))
    q, k = inputs[:2]
    tiles = torch.nn.functional.pad(k, (0, 0, 0, walk.padding)).unflatten(2, (-1, walk.step))
    as_it_lies = tiles.flatten(3).unflatten(3, (D, walk.step)).movedim(2, 3).flatten(3)  # [B, H, D, keys]
    misread = (q @ as_it_lies * D**-0.5)[..., : k.shape[2]]
    yield Hypothesis("k-not-turned", Attention.NOT_TURNED(), whole(misread, v))


def _past_the_end(walk: KeyTiles) -> Iterator[Hypothesis]:
    if not (padding := walk.padding):
        return
    s, v = walk.s, walk.v
    shift = s.amax(dim=-1, keepdim=True).clamp(min=0.0)  # the padding takes part in the maximum too
    e = torch.exp(s - shift)
    total = e.sum(dim=-1, keepdim=True) + padding * torch.exp(-shift)
    said = lanes.counted(padding, "the keys", "softmax", rest=AS_A_KEY)
    yield Hypothesis("padding-counted", said, (e / total @ v, (shift + total.log())[..., 0]))


def in_joining(evidence: Compared, walk: KeyTiles) -> Iterator[Hypothesis]:
    """Yields mistakes in adding a tile to l and acc: mostly, both are measured against different maxima."""
    at, right = walk.so_far, torch.exp(falls(walk.so_far))
    ones, o = torch.ones_like(right), evidence.exercise.results[0].name
    yield Hypothesis("not-rescaled", Attention.ACC_NOT_RESCALED(), walk.joined(at, right, ones))
    yield Hypothesis("not-rescaled", Attention.SUM_NOT_RESCALED(), walk.joined(at, ones, right))
    yield Hypothesis("not-rescaled", Attention.NOTHING_RESCALED(), walk.joined(at, ones, ones))
    for power, wrong, of in ((LOG2_E, "e", "2"), (LN_2, "2", "e")):
        said = Attention.BASES_MIXED(wrong=wrong, right=of)
        yield Hypothesis("bases-mixed", said, walk.joined(at, right**power, right**power))
    yield Hypothesis("rescale-inverted", Attention.RESCALE_INVERTED(), walk.joined(at, 1 / right, 1 / right))
    yield from turns.only_last(_loop(evidence, walk))
    if evidence.returns == o and _overflows_as_here(evidence, walk):
        yield Hypothesis("block-maximum", Attention.TILE_MAXIMUM(), None)
    total, acc = folded(walk.sums(walk.own), right), folded(walk.outs(walk.own), right[..., None, :])
    found = acc / total[..., None], at[..., -1] + total.log()
    yield Hypothesis("block-maximum", Attention.OWN_MAXIMUM(), found)
    sums, outs = walk.sums(at), walk.outs(at)
    total, acc = sums[..., 0], outs[..., 0] / sums[..., 0, None]
    for turn in range(1, len(walk.tiles)):
        total = total * right[..., turn] + sums[..., turn]
        acc = (acc * right[..., turn, None] + outs[..., turn]) / total[..., None]
    lse = torch.logsumexp(walk.s, dim=-1)
    for divided in (acc, acc / total[..., None]):
        yield Hypothesis("divided-each-turn", Attention.DIVIDED_EACH_TURN(), (divided, lse))


def _overflows_as_here(evidence: Compared, walk: KeyTiles) -> bool:
    """Returns whether o is finite exactly where a loop that keeps each tile's own maximum, which is right but for
    overflow, has a finite result; False if that loop does not overflow."""
    factors = torch.exp(falls(walk.own)).float()  # fp32, as in the kernel
    acc, total = (
        folded(walk.outs(walk.own).float(), factors[..., None, :]),
        folded(walk.sums(walk.own).float(), factors),
    )
    finite = (acc / total[..., None]).isfinite()
    return not bool(finite.all()) and torch.equal(finite, evidence.comparison.out.isfinite())


def _in_turns(evidence: Compared, walk: KeyTiles) -> Iterator[Hypothesis]:
    """Yields turns that read the wrong tile, and loops that make too few turns."""
    loop, lse = _loop(evidence, walk), _other_result(evidence)
    again = list(turns.no_advance(loop))
    for found in again[: -len(loop.names)]:  # of both tensors
        if lse is not None and isinstance(found.result, tuple) and bool(((lse - found.result[1]).abs() < 1e-2).all()):
            yield found
    yield from turns.ends_too_early(loop)
    yield from again


def _loop(evidence: Compared, walk: KeyTiles) -> Loop:
    def of(of_k: Index, of_v: Index) -> Results:
        return whole(walk.s[..., of_k], walk.v[..., of_v, :])

    (M, N), names = walk.s.shape[-2:], evidence.exercise.arguments
    o = evidence.exercise.results[0].name
    return Loop(
        N, walk.step, (names[1], names[2]), of, others=("queries", M), rescales=True,
        terms=f"keys reach {o}", last=f"tile of keys is in {o}",
    )  # fmt: skip


def at_the_end(evidence: Compared, walk: KeyTiles) -> Iterator[Hypothesis]:
    """Yields o that is not divided, and other numbers instead of lse."""
    o, lse = (one.name for one in evidence.exercise.results)
    s, right = walk.s, whole(walk.s, walk.v)
    greatest = s.amax(dim=-1)
    total = torch.exp(s - greatest[..., None]).sum(dim=-1)
    undivided = (right[0] * total[..., None], right[1])
    yield Hypothesis("not-divided", Attention.NOT_DIVIDED(o=o), undivided)
    for said, found in (
        (Attention.LSE_IN_BASE_2, right[1] * LOG2_E), (Attention.LSE_WITHOUT_MAXIMUM, total.log()),
        (Attention.LSE_WITHOUT_MAXIMUM, total.log2()), (Attention.LSE_IS_THE_SUM, total),
        (Attention.LSE_MAXIMUM_IN_BASE_2, greatest * LOG2_E + total.log()),
        (Attention.LSE_LOGARITHM_IN_BASE_2, greatest + total.log2()), (Attention.LSE_IS_THE_MAXIMUM, greatest),
    ):  # fmt: skip
        yield Hypothesis("wrong-lse", said(lse=lse), (right[0], found), may_be_constant=True)


def in_few_digits(evidence: Compared, inputs: Sequence[torch.Tensor], walk: KeyTiles) -> Iterator[Hypothesis]:
    """Yields mistakes that round anything but p for the second product; lse shows most of them."""
    for id, said, results in _rounded_on_the_way(evidence, inputs, walk):
        decided = evidence.returns == evidence.exercise.results[1].name and explains(evidence, results[1])
        yield Hypothesis(id, said, None if decided else results)


def explains(evidence: Compared, result: torch.Tensor) -> bool:
    """Returns whether `result` is much nearer to the output than the reference is, at nearly all wrong elements, of
    which there have to be TELLING at least.

    Nearly all are enough: a number between two neighbours in fp16 may have been rounded to the other neighbour.
    """
    comparison, out = evidence.comparison, evidence.comparison.out.double()
    nearer = (out - result).abs() < 0.3 * (out - comparison.ref).abs()
    return comparison.wrong_count >= TELLING and float(nearer[comparison.wrong].double().mean()) > 0.9


def _rounded_on_the_way(
    evidence: Compared, inputs: Sequence[torch.Tensor], walk: KeyTiles
) -> Iterator[tuple[str, Said, Results]]:
    dtype, lse = evidence.trial.dtype, evidence.exercise.results[1].name
    short = "bf16" if dtype == torch.bfloat16 else "fp16"
    at, right = walk.so_far, torch.exp(falls(walk.so_far))

    def with_p(p: Callable, reached: torch.Tensor = at, of_sum: Callable = lambda p: p) -> Results:
        """Returns o and lse where `p` makes each tile of p from the scores less `reached`; `of_sum` is applied to p
        before it is summed."""
        made = [p(s - reached[..., turn, None]) for turn, (s, _) in enumerate(walk.tiles)]
        total = folded(torch.stack([of_sum(one).sum(dim=-1) for one in made], dim=-1), torch.exp(falls(reached)))
        outs = torch.stack([rounded(one, dtype) @ v for one, (_, v) in zip(made, walk.tiles)], dim=-1)
        acc = folded(outs, torch.exp(falls(reached))[..., None, :])
        return acc / total[..., None], reached[..., -1] + total.log()

    if bool((walk.s < 0).all()):
        yield "finite-start", Attention.STARTS_AT_0(dtype=short), with_p(torch.exp, at.clamp(min=0.0))
    acc, outs = torch.zeros_like(walk.outs(at)[..., 0]), walk.outs(at)
    for turn in range(len(walk.tiles)):
        acc = rounded(acc * right[..., turn, None] + outs[..., turn], dtype)
    said, total = Attention.HALF_ACCUMULATOR(dtype=short), folded(walk.sums(at), right)
    yield "half-accumulator", said, (acc / total[..., None], at[..., -1] + total.log())
    said = Attention.ROUNDED_SUM(dtype=short, lse=lse)
    yield "rounded-too-early", said, with_p(torch.exp, of_sum=lambda p: rounded(p, dtype))
    for base in (LN_2, 1.0):
        found = with_p(lambda d, base=base: torch.exp(rounded(d / base, torch.float16) * base))
        yield "rounded-too-early", Attention.ROUNDED_EXPONENT(), found
    q, k, v = inputs
    for unit in (1.0, LN_2, q.shape[-1] ** -0.5):  # scaled, in base 2, or not scaled yet
        found = whole(rounded(walk.s / unit, torch.float16) * unit, v)
        yield "rounded-too-early", Attention.ROUNDED_SCORES(lse=lse), found
    for unit in (1.0, LN_2):
        scaled = rounded(q * q.shape[-1] ** -0.5 / unit, dtype) * unit
        s = torch.where(walk.s.isneginf(), walk.s, scaled @ k.mT)  # hidden keys stay hidden
        yield "rounded-too-early", Attention.ROUNDED_QUERIES(dtype=short, lse=lse), whole(s, v)
