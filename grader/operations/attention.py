"""Attention with its log-sum-exp: q [B, H, M, D], k, v [B, H, N, D] -> o [B, H, M, D], lse [B, H, M].

s = q k^T / sqrt(D), o = softmax(s) v, lse = log of the sum of exp(s). Heads are taken a few at a time, so that no more
than MOST_SCORES scores stand in memory at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32
from grader.operations import gemm
from grader.operations._attention import Attention, Results, Tiles, joined, whole
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import (
    exponentials,
    first_of_all,
    half_precision,
    joining,
    lanes,
    scores,
    strides,
    turns,
)
from grader.operations.mistakes.exponentials import LOG_OF_SMALLEST, passed_before
from grader.operations.mistakes.half_precision import HalfPrecision, rounded, short
from grader.operations.mistakes.joining import Joining, falls, folded
from grader.operations.mistakes.scores import LN_2, LOG2_E
from grader.operations.mistakes.turns import Index, Loop
from grader.sentences import Said

if TYPE_CHECKING:
    from grader.explain.evidence import Compared

CAUSES = ("divided-each-turn", "k-not-turned", "wrong-lse")
MOST_SCORES = 1 << 24
MOST_EXPLAINED = 1 << 21  # scores: every mistake computes them anew
FEW = 16  # roundings besides the roundings of scores and of their differences
FEW_OF_A_SCORE = 4
INFINITE_FILL = re.compile(rb"""tl\.load\(.*other=-?\s*float\(["']-?inf""")
AS_A_KEY = ", with the score 0: the score there has to be -inf."
Heads = Callable[..., torch.Tensor]
READ_TOGETHER = (0,), (1,), (2,), (1, 2), (0, 1, 2)  # places of arguments that may be misread together


class Bounds:
    """The bounds of attention, made from the scores of a few heads at a time. An operation that hides keys, or changes
    scores, has methods of its own for them."""

    more = 0.0  # a further error of each score, in u

    def __init__(self, inputs: Sequence[Argument]) -> None:
        self.given = as_tensors(inputs[:3])

    def scores(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        """Returns the scores, [heads, M, N], which are -inf for keys that are not seen."""
        return scaled_product(q, k)

    def sizes(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        """Returns a = sum |q k| / sqrt(D) of each score, and 0 for keys that are not seen."""
        return scaled_product(q.abs(), k.abs())

    def seen(self, v: torch.Tensor) -> torch.Tensor:
        """Returns the sum of |v| over the keys that each query sees, [heads, M or 1, D]."""
        return v.abs().sum(dim=-2, keepdim=True)

    def weighed(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Returns the sum of p |v|, [heads, M, D]."""
        return probabilities(self.scores(q, k)) @ v.abs()

    def by_heads(self, ref: torch.Tensor, of_heads: Heads) -> torch.Tensor:
        return by_heads(self.given, ref, of_heads)

    @classmethod
    def of_o(cls, inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
        """Returns c S of o, [B, H, M, D]: 2 sum p delta |v|, as each p errs by a relative delta, and so does their sum.

        In delta, exp of a rounded difference errs by 2 |s - max| u. The score itself is a sum of D products, which errs
        by `gemm.growth(D)` u; its scale and another base of the exponential add FEW_OF_A_SCORE u. Both count relative
        to the score's terms, a. All other roundings are FEW u.
        """
        of = cls(inputs)
        return of.by_heads(ref, lambda q, k, v: rounding_of_scores(of.scores(q, k), of.sizes(q, k), v, of.more))

    @classmethod
    def of_lse(cls, inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
        """Returns c S of lse, [B, H, M]: the error of the greatest score, as in `of_o`, and the error of the sum, which
        the logarithm turns from relative to absolute.

        A sum of N terms errs by N / 64 u where a kernel keeps 64 partial sums, or adds up tiles of 64 keys.
        """
        of = cls(inputs)
        return of.by_heads(ref, lambda q, k, v: rounding_of_largest(of.sizes(q, k), v, of.more))

    @classmethod
    def conversion(cls, inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns R and L of o: p is rounded to the dtype of v before the second product. R is 1.1 sum p |v|. L is 0.55
        sum |v| / l: below the normal numbers of that dtype each p, measured against the greatest p of its row, loses
        half of eta."""
        of = cls(inputs)

        def lost(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            s = of.scores(q, k)
            total = torch.exp(s - s.amax(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
            return (of.seen(v) / total).nan_to_num_(nan=0.0)

        return of.by_heads(ref, of.weighed).mul_(1.1), of.by_heads(ref, lost).mul_(1.1 / 2)

    @classmethod
    def terms(cls, inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
        """Returns the sum of p |v| for o, [B, H, M, D]; for lse, [B, H, M], the largest a, which a score's rounding is
        relative to, plus 1."""
        of = cls(inputs)
        if ref.dim() == of.given[0].dim():
            return of.by_heads(ref, of.weighed)
        return of.by_heads(ref, lambda q, k, v: of.sizes(q, k).amax(dim=-1)) + 1


rounding, rounding_of_lse, conversion, terms = Bounds.of_o, Bounds.of_lse, Bounds.conversion, Bounds.terms


def rounding_of_scores(s: torch.Tensor, a: torch.Tensor, v: torch.Tensor, more: float = 0.0) -> torch.Tensor:
    """Returns c S of o, [..., M, D], of scores s, which are -inf for keys that are not seen. a is sum |q k| / sqrt(D)
    of each score, and is overwritten."""
    greatest = s.amax(dim=-1, keepdim=True)
    delta = a.mul_(FEW_OF_A_SCORE + gemm.growth(v.shape[-1])).add_(FEW + more).add_(greatest - s, alpha=2)
    delta.mul_(torch.softmax(s, dim=-1)).mul_(2 * U32)
    return delta.nan_to_num_(nan=0.0) @ v.abs()  # 0 times infinity, of keys that are not seen


def rounding_of_largest(a: torch.Tensor, v: torch.Tensor, more: float = 0.0) -> torch.Tensor:
    """Returns c S of lse, [..., M], from a = sum |q k| / sqrt(D), which is 0 for keys that are not seen."""
    largest, (keys, D) = a.amax(dim=-1), v.shape[-2:]
    return largest.mul_(FEW_OF_A_SCORE + gemm.growth(D)).add_(FEW + more + keys / 64).mul_(U32)


def probabilities(s: torch.Tensor) -> torch.Tensor:
    """Returns the softmax along the keys; 0 in rows of -inf alone."""
    return torch.softmax(s, dim=-1).nan_to_num_(nan=0.0)


def scaled_product(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Returns q k^T / sqrt(D): [..., M, D], [..., N, D] -> [..., M, N]."""
    return q @ k.mT * q.shape[-1] ** -0.5


def held(shapes: Sequence[Sequence[int]]) -> int:
    """Returns how many numbers the bounds keep: four for each score of the heads that are taken at a time, namely the
    score, its terms, and what is made of both."""
    (B, H, M, _), (_, _, N, _) = shapes[:2]
    return 4 * M * N * min(B * H, _heads_at_a_time(M * N))


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
    walk = Tiles(scaled_product(q, k), step if step > 0 else k.shape[2], v)
    yield from _where_nothing_is_left(evidence, walk)
    yield from in_scores(evidence, given, walk)
    if walk.padding:
        e, total, shift = exponentials.with_lanes(walk.s, walk.padding)
        said = lanes.counted(walk.padding, "the keys", "softmax", rest=AS_A_KEY)
        yield Hypothesis("padding-counted", said, (e / total @ v, (shift + total.log())[..., 0]))
    if len(walk.blocks) > 1:
        yield from in_joining(evidence, walk)
        yield from _in_turns(evidence, walk)
    yield from at_the_end(evidence, walk)
    yield from of_other_elements(evidence, given)
    yield from in_few_digits(evidence, given, walk)


def of_other_elements(
    evidence: Compared, inputs: Sequence[Argument], together: Sequence[tuple[int, ...]] = READ_TOGETHER
) -> Iterator[Hypothesis]:
    """Yields arguments read from a wrong batch, head or element; `together` holds the places of arguments that are
    misread together."""
    for places in together:
        yield from first_of_all.mistakes(evidence, inputs, "batch-zero", 0, "batch", places)
        yield from first_of_all.mistakes(evidence, inputs, "head-zero", 1, "head", places)
        yield from strides.of_heads(evidence, inputs, places)


def _other_result(evidence: Compared) -> torch.Tensor | None:
    """Returns lse as the kernel stored it, in float64, for when o is looked at; None if it is missing or empty."""
    lse = evidence.reply.outputs.get(evidence.exercise.results[-1].name)
    return None if lse is None or lse.numel() == 0 else lse.double()


def _where_nothing_is_left(evidence: Compared, walk: Tiles) -> Iterator[Hypothesis]:
    """Yields mistakes that leave NaN or 0 in o: mistakes in the first turn, and with scores far below 0."""
    o, out = evidence.exercise.results[0].name, evidence.comparison.out
    if evidence.returns != o:
        return
    yield from joining.nan_from_the_start(evidence, walk.s, "s")
    greatest, rows = walk.so_far[..., -1], evidence.comparison.wrong.any(dim=-1)
    if not passed_before(evidence) or not bool(rows.any()):
        return
    if bool(out.isnan().all()) and walk.s.shape[-1] < walk.step and not bool((greatest < LOG_OF_SMALLEST).all()):
        if INFINITE_FILL.search(evidence.submission.source):
            yield Hypothesis("padding-counted", Attention.INFINITE_KEYS(o=o), None)
        else:
            said = Joining.NO_TURN(name=o, loop="the loop", count=walk.s.shape[-1], step=walk.step)
            yield Hypothesis("blocks-left-out", said, None)
    lse, right = _other_result(evidence), torch.logsumexp(walk.s, dim=-1)
    kept = lse is not None and bool((lse - right < 1)[rows].all())  # less where terms of l have vanished
    for found in joining.far_below_zero(evidence, greatest, rows, "scores", kept):
        if walk.padding or found.id != "padding-counted":
            yield found


def in_scores(evidence: Compared, inputs: Sequence[torch.Tensor], walk: Tiles) -> Iterator[Hypothesis]:
    """Yields wrong scales, wrong bases of exp, a softmax along the queries, and tiles of k that are not transposed."""
    s, v, D = walk.s, walk.v, walk.v.shape[-1]
    for said, factor in scores.of_another_scale(D):
        yield Hypothesis("wrong-scale", said, whole(s * factor, v))
    down = torch.softmax(s, dim=-2) @ v
    yield Hypothesis("wrong-axis", Attention.DOWN_THE_COLUMNS(), (down, torch.logsumexp(s, dim=-1)))
    q, k = inputs[:2]
    tiles = torch.nn.functional.pad(k, (0, 0, 0, walk.padding)).unflatten(2, (-1, walk.step))
    as_it_lies = tiles.flatten(3).unflatten(3, (D, walk.step)).movedim(2, 3).flatten(3)  # [B, H, D, keys]
    misread = (q @ as_it_lies * D**-0.5)[..., : k.shape[2]]
    yield Hypothesis("k-not-turned", Attention.NOT_TURNED(), whole(misread, v))


def in_joining(evidence: Compared, walk: Tiles) -> Iterator[Hypothesis]:
    """Yields mistakes in adding a tile to l and acc: mostly, both are measured against different maxima."""
    at, right, o = walk.so_far, walk.right, evidence.exercise.results[0].name
    sums, outs = walk.sums(at), walk.outs(at)
    for id, said, of in joining.rescaling("l", "acc"):
        yield Hypothesis(id, said, joined(at, sums, outs, *of(right)))
    yield from turns.only_last(_loop(evidence, walk))
    if evidence.returns == o and _overflows_as_here(evidence, walk):
        yield Hypothesis("block-maximum", Joining.BLOCK_MAXIMUM(), None)
    found = joined(at, walk.sums(walk.own), walk.outs(walk.own), right, right)
    yield Hypothesis("block-maximum", Attention.OWN_MAXIMUM(), found)
    total, acc = sums[..., 0], outs[..., 0] / sums[..., 0, None]
    for turn in range(1, len(walk.blocks)):
        total = total * right[..., turn] + sums[..., turn]
        acc = (acc * right[..., turn, None] + outs[..., turn]) / total[..., None]
    lse = torch.logsumexp(walk.s, dim=-1)
    for divided in (acc, acc / total[..., None]):
        yield Hypothesis("divided-each-turn", Attention.DIVIDED_EACH_TURN(), (divided, lse))


def _overflows_as_here(evidence: Compared, walk: Tiles) -> bool:
    """Returns whether o is finite exactly where a loop that keeps each tile's own maximum, which is right but for
    overflow, has a finite result; False if that loop does not overflow."""
    factors = torch.exp(falls(walk.own)).float()  # fp32, as in the kernel
    sums, outs = walk.sums(walk.own).float(), walk.outs(walk.own).float()
    finite = joined(walk.own, sums, outs, factors, factors)[0].isfinite()
    return not bool(finite.all()) and torch.equal(finite, evidence.comparison.out.isfinite())


def _in_turns(evidence: Compared, walk: Tiles) -> Iterator[Hypothesis]:
    """Yields turns that read the wrong tile, and loops that make too few turns."""
    loop, lse = _loop(evidence, walk), _other_result(evidence)
    again = list(turns.no_advance(loop))
    for found in again[: -len(loop.names)]:  # of both tensors
        if lse is not None and isinstance(found.result, tuple) and bool(((lse - found.result[1]).abs() < 1e-2).all()):
            yield found
    yield from turns.ends_too_early(loop)
    yield from again


def _loop(evidence: Compared, walk: Tiles) -> Loop:
    def of(of_k: Index, of_v: Index) -> Results:
        return whole(walk.s[..., of_k], walk.v[..., of_v, :])

    (M, N), names = walk.s.shape[-2:], evidence.exercise.arguments
    o = evidence.exercise.results[0].name
    return Loop(
        N, walk.step, (names[1], names[2]), of, others=("queries", M), rescales=True,
        terms=f"keys reach {o}", last=f"tile of keys is in {o}",
    )  # fmt: skip


def at_the_end(evidence: Compared, walk: Tiles) -> Iterator[Hypothesis]:
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


def in_few_digits(evidence: Compared, inputs: Sequence[torch.Tensor], walk: Tiles) -> Iterator[Hypothesis]:
    """Yields mistakes that round anything but p for the second product; lse shows most of them."""
    of_lse = evidence.returns == evidence.exercise.results[1].name
    for id, said, results in _rounded_on_the_way(evidence, inputs, walk):
        found = Hypothesis(id, said, results)
        yield half_precision.decided(evidence, found, results[1]) if of_lse else found


def _rounded_on_the_way(
    evidence: Compared, inputs: Sequence[torch.Tensor], walk: Tiles
) -> Iterator[tuple[str, Said, Results]]:
    dtype, lse = evidence.trial.dtype, evidence.exercise.results[1].name
    at, right, rows_of_v = walk.so_far, walk.right, walk.v.split(walk.step, dim=-2)

    def with_p(p: Callable, reached: torch.Tensor = at, of_sum: Callable = lambda p: p) -> Results:
        """Returns o and lse where `p` makes each tile of p from the scores less `reached`; `of_sum` is applied to p
        before it is summed."""
        made = [p(s - reached[..., turn, None]) for turn, s in enumerate(walk.blocks)]
        sums = torch.stack([of_sum(one).sum(dim=-1) for one in made], dim=-1)
        outs = torch.stack([rounded(one, dtype) @ v for one, v in zip(made, rows_of_v)], dim=-1)
        factors = torch.exp(falls(reached))
        return joined(reached, sums, outs, factors, factors)

    if bool((walk.s < 0).all()):
        yield "finite-start", Attention.STARTS_AT_0(dtype=short(dtype)), with_p(torch.exp, at.clamp(min=0.0))
    acc = half_precision.added_up(walk.outs(at).unbind(-1), dtype, right[..., None, :].unbind(-1))
    said, total = HalfPrecision.IN_EVERY_TURN(name="acc", dtype=short(dtype)), folded(walk.sums(at), right)
    yield "half-accumulator", said, (acc / total[..., None], at[..., -1] + total.log())
    said = Attention.ROUNDED_SUM(dtype=short(dtype), lse=lse)
    yield "rounded-too-early", said, with_p(torch.exp, of_sum=lambda p: rounded(p, dtype))
    for base in (LN_2, 1.0):
        found = with_p(lambda d, base=base: torch.exp(rounded(d / base, torch.float16) * base))
        yield "rounded-too-early", Attention.ROUNDED_EXPONENT(), found
    for said, s in scores.in_few_digits(walk.s, inputs[0], inputs[1], "q", dtype):
        yield "rounded-too-early", said, whole(s, walk.v)
