"""Attention with its log-sum-exp: q [B, H, M, D], k, v [B, H, N, D] -> o [B, H, M, D], lse [B, H, M].

s = q k^T / sqrt(D), o = softmax(s) v, lse = log of the sum of exp(s). Heads are taken a few at a time, so that no more
than MOST_SCORES stand in memory at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.numerics.roundoff import U32
from grader.operations import gemm
from grader.operations._attention import Attention, Results, Walk, falls, folded, whole
from grader.operations._attention_heads import of_other_elements
from grader.operations.hypothesis import Hypothesis
from grader.operations.softmax import LOG_OF_SMALLEST
from grader.sentences import Fields, Said

if TYPE_CHECKING:
    from grader.explain.evidence import Compared

CAUSES = (
    "not-rescaled", "rescale-inverted", "block-maximum", "only-last-block", "bases-mixed", "wrong-scale",
    "padding-counted", "finite-start", "blocks-left-out", "no-advance", "not-divided", "divided-each-turn",
    "k-not-turned", "wrong-lse", "batch-zero", "head-zero", "head-across-batches", "strides-of-another",
    "half-accumulator", "rounded-too-early",
)  # fmt: skip
PLAIN_CAUSES = ("wrong-axis",)
MOST_SCORES = 1 << 24
MOST_EXPLAINED = 1 << 21  # scores: every mistake makes them anew
LN_2, LOG2_E = math.log(2), 1 / math.log(2)
FEW = 16  # roundings beside those of scores and of their differences
FEW_OF_A_SCORE = 4
INFINITE_FILL = re.compile(rb"""tl\.load\(.*other=-?\s*float\(["']-?inf""")
TELLING = 8  # elements: fewer may fit rounded numbers by chance


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Each p errs by a relative delta, and so does their sum: 2 sum p delta |v| in o.

    delta: exp of a rounded difference errs by 2 |s - max| u; the score itself is a sum of D products, which errs as any
    product's does, and is scaled and measured in another base: 4 u more, all of a = sum |q k| / sqrt(D).
    """
    return by_heads(inputs, ref, lambda q, k, v: rounding_of_scores(scores(q, k), scores(q.abs(), k.abs()), v))


def rounding_of_scores(s: torch.Tensor, a: torch.Tensor, v: torch.Tensor, more: float = 0.0) -> torch.Tensor:
    """The same of scores that are made already, where a key that nobody sees has -inf; `more`: u of each of them. Takes
    a for its result."""
    greatest = s.amax(dim=-1, keepdim=True)
    delta = a.mul_(FEW_OF_A_SCORE + gemm.growth(v.shape[-1])).add_(FEW + more).add_(greatest - s, alpha=2)
    delta.mul_(torch.softmax(s, dim=-1)).mul_(2 * U32)
    return delta.nan_to_num_(nan=0.0) @ v.abs()  # 0 times infinity, of keys that are not seen


def rounding_of_lse(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """The error of the greatest score, as in o, and that of the sum, of which the logarithm makes an absolute one.

    A sum of N terms errs by N / 64 u where a kernel keeps 64 partial sums, or adds up tiles of 64 keys.
    """
    return by_heads(inputs, ref, lambda q, k, v: rounding_of_largest(scores(q.abs(), k.abs()), v))


def rounding_of_largest(a: torch.Tensor, v: torch.Tensor, more: float = 0.0) -> torch.Tensor:
    """The same of terms that are summed already, 0 for keys that nobody sees; `more`: u of each score."""
    largest, (keys, D) = a.amax(dim=-1), v.shape[-2:]
    return largest.mul_(FEW_OF_A_SCORE + gemm.growth(D)).add_(FEW + more + keys / 64).mul_(U32)


def conversion(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """p is rounded to the dtype of v before the second product: 1.1 u of sum p |v|. What lies below the normal numbers
    of that dtype loses half of eta, measured against the greatest p of its row: 1.1 times that of sum |v| / l.
    """
    rounded = by_heads(inputs, ref, lambda q, k, v: torch.softmax(scores(q, k), dim=-1) @ v.abs())
    lost = by_heads(inputs, ref, _divided_by_the_sum)
    return rounded.mul_(1.1), lost.mul_(1.1 / 2)


def _divided_by_the_sum(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    s = scores(q, k)
    total = torch.exp(s - s.amax(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
    return v.abs().sum(dim=-2, keepdim=True) / total


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """The sum of p |v| for o; for lse the largest sum of |q k|, which a rounded score errs by."""
    if ref.dim() == as_tensor(inputs[0]).dim():
        return by_heads(inputs, ref, lambda q, k, v: torch.softmax(scores(q, k), dim=-1) @ v.abs())
    return by_heads(inputs, ref, lambda q, k, v: scores(q.abs(), k.abs()).amax(dim=-1)) + 1


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """[..., M, D], [..., N, D] -> [..., M, N]"""
    return q @ k.mT * q.shape[-1] ** -0.5


def held(shapes: Sequence[Sequence[int]]) -> int:
    """Four numbers for each score of the heads that are taken at a time: the score, its terms, what is made of them."""
    (B, H, M, _), (_, _, N, _) = shapes[:2]
    return 4 * M * N * min(B * H, _heads_at_a_time(M * N))


Heads = Callable[..., torch.Tensor]


def by_heads(inputs: Sequence[Argument], ref: torch.Tensor, of_heads: Heads) -> torch.Tensor:
    """[shape of ref]: what `of_heads` makes of q, k, v and others of a few heads at a time, [heads, ., D] each."""
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
    walk = Walk(scores(q, k), v, step if step > 0 else k.shape[2])
    yield from _where_nothing_is_left(evidence, walk)
    yield from in_scores(evidence, given, walk)
    yield from _past_the_end(walk)
    if len(walk.tiles) > 1:
        yield from in_joining(evidence, walk)
        yield from _in_turns(evidence, given, walk)
    yield from at_the_end(evidence, walk)
    yield from of_other_elements(evidence, given)
    yield from in_few_digits(evidence, given, walk)


def _other_result(evidence: Compared) -> torch.Tensor | None:
    """lse as it came out, in float64, where o is looked at."""
    lse = evidence.reply.outputs.get(evidence.exercise.results[-1].name)
    return None if lse is None or lse.numel() == 0 else lse.double()


def _where_nothing_is_left(evidence: Compared, walk: Walk) -> Iterator[Hypothesis]:
    """o is NaN or 0 where it should not be: what is known of the first turn, and of scores far below 0."""
    o, out = evidence.exercise.results[0].name, evidence.comparison.out
    if evidence.returns != o:
        return
    rows, nan = evidence.comparison.wrong.any(dim=-1), out.isnan().all(dim=-1)
    passed = evidence.exercise.bound in evidence.right_before
    if bool(nan.all()) and not passed and bool((walk.s.abs() < -LOG_OF_SMALLEST).all()):
        yield Hypothesis("rescale-inverted", Attention.NAN_FROM_THE_START(o=o), None)
    if not passed or not bool(rows.any()):
        return
    if bool(nan.all()) and walk.s.shape[-1] < walk.step:
        far = bool((walk.own[..., -1] < LOG_OF_SMALLEST).all())
        if not far:
            said = Attention.NO_TURN(keys=walk.s.shape[-1], step=walk.step)
            if INFINITE_FILL.search(evidence.submission.source):
                yield Hypothesis("padding-counted", Attention.INFINITE_KEYS(o=o), None)
            else:
                yield Hypothesis("blocks-left-out", said, None)
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


def in_scores(evidence: Compared, inputs: Sequence[torch.Tensor], walk: Walk) -> Iterator[Hypothesis]:
    """Scores that are scaled otherwise, exponentiated otherwise, or made from k as it lies."""
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


def _past_the_end(walk: Walk) -> Iterator[Hypothesis]:
    if not (lanes := walk.padding):
        return
    s, v = walk.s, walk.v
    shift = s.amax(dim=-1, keepdim=True).clamp(min=0.0)  # the padding takes part in the maximum too
    e = torch.exp(s - shift)
    total = e.sum(dim=-1, keepdim=True) + lanes * torch.exp(-shift)
    said = Attention.ONE_LANE_COUNTED() if lanes == 1 else Attention.LANES_COUNTED(lanes=lanes)
    yield Hypothesis("padding-counted", said, (e / total @ v, (shift + total.log())[..., 0]))


def in_joining(evidence: Compared, walk: Walk) -> Iterator[Hypothesis]:
    """l and acc so far are measured against another maximum than what is added to them."""
    at, right = walk.so_far, torch.exp(falls(walk.so_far))
    ones, o = torch.ones_like(right), evidence.exercise.results[0].name
    yield Hypothesis("not-rescaled", Attention.ACC_NOT_RESCALED(), walk.joined(at, right, ones))
    yield Hypothesis("not-rescaled", Attention.SUM_NOT_RESCALED(), walk.joined(at, ones, right))
    yield Hypothesis("not-rescaled", Attention.NOTHING_RESCALED(), walk.joined(at, ones, ones))
    for power, wrong, of in ((LOG2_E, "e", "2"), (LN_2, "2", "e")):
        said = Attention.BASES_MIXED(wrong=wrong, right=of)
        yield Hypothesis("bases-mixed", said, walk.joined(at, right**power, right**power))
    yield Hypothesis("rescale-inverted", Attention.RESCALE_INVERTED(), walk.joined(at, 1 / right, 1 / right))
    s, v = walk.tiles[-1]
    yield Hypothesis("only-last-block", Attention.ONLY_LAST_TILE(o=o), whole(s, v))
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


def _overflows_as_here(evidence: Compared, walk: Walk) -> bool:
    """Returns True where o is finite just where it is with each tile's own maximum kept, right but for overflow."""
    factors = torch.exp(falls(walk.own)).float()  # fp32, as in the kernel
    acc, total = (
        folded(walk.outs(walk.own).float(), factors[..., None, :]),
        folded(walk.sums(walk.own).float(), factors),
    )
    finite = (acc / total[..., None]).isfinite()
    return not bool(finite.all()) and torch.equal(finite, evidence.comparison.out.isfinite())


def _in_turns(evidence: Compared, inputs: Sequence[torch.Tensor], walk: Walk) -> Iterator[Hypothesis]:
    """Turns that read the wrong tile, or that are too few."""
    q, k, v = inputs
    (M, N), o, names = walk.s.shape[-2:], evidence.exercise.results[0].name, evidence.exercise.arguments
    place = torch.arange(N) % walk.step
    again = whole(walk.s[..., place], v[..., place, :])
    lse = _other_result(evidence)
    if lse is not None and bool(((lse - again[1]).abs() < 1e-2).all()):
        yield Hypothesis("no-advance", Attention.NO_ADVANCE(), again)
    for kept in range(walk.step, N, walk.step):
        over_queries = kept == -(-M // walk.step) * walk.step and M < N
        found: Fields = dict(kept=kept, keys=N, o=o)
        said = Attention.LOOPS_OVER_QUERIES(queries=M, **found) if over_queries else Attention.ENDS_TOO_EARLY(**found)
        yield Hypothesis("blocks-left-out", said, whole(walk.s[..., :kept], v[..., :kept, :]))
    yield Hypothesis("no-advance", Attention.NO_ADVANCE(), again)
    said = Attention.NO_ADVANCE_OF_ONE(name=names[1])
    yield Hypothesis("no-advance", said, whole(walk.s[..., place], v))
    said = Attention.NO_ADVANCE_OF_ONE(name=names[2])
    yield Hypothesis("no-advance", said, whole(walk.s, v[..., place, :]))


def at_the_end(evidence: Compared, walk: Walk) -> Iterator[Hypothesis]:
    """o that is not divided, and other numbers in place of lse."""
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


def in_few_digits(evidence: Compared, inputs: Sequence[torch.Tensor], walk: Walk) -> Iterator[Hypothesis]:
    """Yields what is rounded beside p for the second product; lse shows most of it."""
    for id, said, results in _rounded_on_the_way(evidence, inputs, walk):
        decided = evidence.returns == evidence.exercise.results[1].name and explains(evidence, results[1])
        yield Hypothesis(id, said, None if decided else results)


def explains(evidence: Compared, result: torch.Tensor) -> bool:
    """Returns True where a result so made is much nearer than the right one, nearly wherever that is wrong.

    Not everywhere: what lies between two numbers of fp16 may be rounded to the other one.
    """
    comparison, out = evidence.comparison, evidence.comparison.out.double()
    nearer = (out - result).abs() < 0.3 * (out - comparison.ref).abs()
    return comparison.wrong_count >= TELLING and float(nearer[comparison.wrong].double().mean()) > 0.9


def _rounded_on_the_way(
    evidence: Compared, inputs: Sequence[torch.Tensor], walk: Walk
) -> Iterator[tuple[str, Said, Results]]:
    dtype, lse = evidence.trial.dtype, evidence.exercise.results[1].name
    short = "bf16" if dtype == torch.bfloat16 else "fp16"
    at, right = walk.so_far, torch.exp(falls(walk.so_far))

    def rounded(numbers: torch.Tensor, to: torch.dtype = dtype) -> torch.Tensor:
        return numbers.float().to(to).double()

    def with_p(p: Callable, reached: torch.Tensor = at, of_sum: Callable = lambda p: p) -> Results:
        """o and lse where p is made so from the scores less a maximum, in each tile."""
        made = [p(s - reached[..., turn, None]) for turn, (s, _) in enumerate(walk.tiles)]
        total = folded(torch.stack([of_sum(one).sum(dim=-1) for one in made], dim=-1), torch.exp(falls(reached)))
        outs = torch.stack([rounded(one) @ v for one, (_, v) in zip(made, walk.tiles)], dim=-1)
        acc = folded(outs, torch.exp(falls(reached))[..., None, :])
        return acc / total[..., None], reached[..., -1] + total.log()

    if bool((walk.s < 0).all()):
        yield "finite-start", Attention.STARTS_AT_0(dtype=short), with_p(torch.exp, at.clamp(min=0.0))
    acc, outs = torch.zeros_like(walk.outs(at)[..., 0]), walk.outs(at)
    for turn in range(len(walk.tiles)):
        acc = rounded(acc * right[..., turn, None] + outs[..., turn])
    said, total = Attention.HALF_ACCUMULATOR(dtype=short), folded(walk.sums(at), right)
    yield "half-accumulator", said, (acc / total[..., None], at[..., -1] + total.log())
    said = Attention.ROUNDED_SUM(dtype=short, lse=lse)
    yield "rounded-too-early", said, with_p(torch.exp, of_sum=rounded)
    for base in (LN_2, 1.0):
        found = with_p(lambda d, base=base: torch.exp(rounded(d / base, torch.float16) * base))
        yield "rounded-too-early", Attention.ROUNDED_EXPONENT(), found
    q, k, v = inputs
    for unit in (1.0, LN_2, q.shape[-1] ** -0.5):  # scaled, in base 2, or not scaled yet
        found = whole(rounded(walk.s / unit, torch.float16) * unit, v)
        yield "rounded-too-early", Attention.ROUNDED_SCORES(lse=lse), found
    for unit in (1.0, LN_2):
        scaled = rounded(q * q.shape[-1] ** -0.5 / unit) * unit
        s = torch.where(walk.s.isneginf(), walk.s, scaled @ k.mT)  # what is hidden stays so
        yield "rounded-too-early", Attention.ROUNDED_QUERIES(dtype=short, lse=lse), whole(s, v)
