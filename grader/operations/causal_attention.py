"""Attention over the keys that a rule lets each query see: q [B, H, M, D], k, v [B, HK, N, D], window, softcap -> o,
lse.

s = q k^T / sqrt(D), with a softcap c tanh(s / c). Query i stands at position i + N - M and sees the keys up to there,
with a window only the last `window` of them. o = softmax(s) v over these keys, lse = log of the sum of exp(s); a query
that sees no key has 0 and -inf. The bounds are attention's, over the seen keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from grader.numerics.arguments import Argument, as_number, as_tensors
from grader.numerics.roundoff import UNIT_ROUNDOFF
from grader.operations import attention
from grader.operations._attention import Attention, KeyTiles, Results
from grader.operations._attention_heads import of_other_elements
from grader.operations._causal_attention import CausalAttention, Rule, capped, made, probabilities
from grader.operations.attention import LOST_DIGITS, held
from grader.operations.hypothesis import Hypothesis
from grader.sentences import Fields, Said

if TYPE_CHECKING:
    from grader.operations.evidence import Compared, Evidence
    from grader.wire.messages import Finding

__all__ = ["LOST_DIGITS", "held"]

CAUSES = (
    "wrong-mask", "wrong-window", "walk-too-short", "walk-too-late", "nothing-seen", "first-tile-empty",
    "walk-too-early", "stand-in-kept", "wrong-cap", "wrong-group",
)  # fmt: skip
RANGE = ("stand-in-kept", "wrong-cap")
OF_A_CAP = 8  # u of the cap: tanh comes from an exponential
LOG2_E = 1 / math.log(2)


class AttentionArguments(NamedTuple):
    """The arguments of a call; None stands for no window and for no cap."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    window: int | None
    softcap: float | None


def given_in(inputs: Sequence[Argument]) -> AttentionArguments:
    q, k, v = as_tensors(inputs[:3])
    window, softcap = inputs[3:]
    cap = None if softcap is None else as_number(softcap)
    return AttentionArguments(q, k, v, None if window is None else int(as_number(window)), cap)


@dataclass
class Scored:
    """The scores of a few heads, [heads, M, N], with -inf for keys that are not seen. `more` is the error that a cap
    adds to each, in u."""

    given: AttentionArguments

    def __post_init__(self) -> None:
        q, k, _, self.window, self.softcap = self.given
        self.seen = Rule(q.shape[2], k.shape[2], self.window, 1, 1, q.device).seen
        self.more = 0.0 if self.softcap is None else OF_A_CAP * self.softcap

    def scores(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return capped(attention.scores(q, k), self.softcap).masked_fill_(~self.seen, -torch.inf)

    def sizes(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        """Returns the sums of |q k| / sqrt(D), [heads, M, N], and 0 for keys that are not seen."""
        return attention.scores(q.abs(), k.abs()).masked_fill_(~self.seen, 0.0)

    def of_heads(self, ref: torch.Tensor, make: attention.Heads) -> torch.Tensor:
        """Returns what `make` makes of q, k and v, a few heads at a time, [shape of ref]. It gets k and v once for each
        head of q."""
        return attention.by_heads(for_each_head(*self.given[:3]), ref, make)


def for_each_head(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Returns q, and k and v with as many heads as q has."""
    group = q.shape[1] // k.shape[1]
    return (q, *(one if group == 1 else one.repeat_interleave(group, dim=1) for one in (k, v)))


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of o as attention does, over the seen keys; a score that is capped errs by 8 u of the cap more."""
    of = Scored(given_in(inputs))
    return of.of_heads(ref, lambda q, k, v: attention.rounding_of_scores(of.scores(q, k), of.sizes(q, k), v, of.more))


def rounding_of_lse(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    of = Scored(given_in(inputs))
    return of.of_heads(ref, lambda q, k, v: attention.rounding_of_largest(of.sizes(q, k), v, of.more))


def conversion(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L of o as attention does, over the seen keys."""
    of = Scored(given_in(inputs))
    rounded = of.of_heads(ref, lambda q, k, v: probabilities(of.scores(q, k)) @ v.abs())

    def divided_by_the_sum(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        s = of.scores(q, k)
        total = torch.exp(s - s.amax(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
        return (of.seen.to(v.dtype) @ v.abs() / total).nan_to_num_(nan=0.0)

    return rounded.mul_(1.1), of.of_heads(ref, divided_by_the_sum).mul_(1.1 / 2)


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the terms of o or lse as attention does, over the seen keys."""
    of = Scored(given_in(inputs))
    if ref.dim() == of.given.q.dim():
        return of.of_heads(ref, lambda q, k, v: probabilities(of.scores(q, k)) @ v.abs())
    return of.of_heads(ref, lambda q, k, v: of.sizes(q, k).amax(dim=-1)) + 1


# ---- what wrong kernels compute --------------------------------------------------------------------------------------


@dataclass
class ExplainedCall:
    """A call to be explained: the scores before the cap, `plain`, and after it, `s`, [B, H, M, keys], and v. Lanes
    behind the last key hold 0."""

    evidence: Compared
    given: AttentionArguments

    def __post_init__(self) -> None:
        q, k, v, self.window, self.softcap = self.given
        self.q, self.k, self.v = for_each_head(q, k, v)
        M, N, constants = q.shape[2], k.shape[2], self.evidence.constants
        rows, step = (constants.get(name, 0) for name in ("BLOCK_M", "BLOCK_N"))
        self.rule = Rule(M, N, self.window, rows if rows > 0 else M, step if step > 0 else N)
        self.plain = self.rule.padded(attention.scores(self.q, self.k), -1)
        self.sizes = self.rule.padded(attention.scores(self.q.abs(), self.k.abs()), -1)
        self.s = capped(self.plain, self.softcap)
        self.values = self.rule.padded(self.v, -2)
        self.names = [one.name for one in self.evidence.exercise.results]

    def of(self, id: str, said: Said, seen: torch.Tensor, s: torch.Tensor | None = None) -> Hypothesis:
        """Returns the hypothesis of seeing the keys in `seen`, with the scores `s` if given. Its rounding is added to
        the bound, as its terms differ from the right result's."""
        s = (self.s if s is None else s).masked_fill(~seen, -torch.inf)
        sizes, results = self.sizes.masked_fill(~seen, 0.0), made(s, self.values, seen)
        if self.evidence.returns == self.names[1]:
            return Hypothesis(id, said, results, attention.rounding_of_largest(sizes, self.values))
        rounding = attention.rounding_of_scores(s, sizes, self.values)
        of_p = 1.1 * UNIT_ROUNDOFF[self.evidence.trial.dtype] * probabilities(s) @ self.values.abs()
        return Hypothesis(id, said, results, rounding + of_p)

    def other_result(self) -> torch.Tensor:
        """Returns lse as the kernel stored it, in float64."""
        return self.evidence.reply.outputs[self.names[1]].double()


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 5:
        return
    q, k, *_ = given = given_in(inputs)
    if q.dim() != 4 or not q.numel() or q.numel() // q.shape[3] * k.shape[2] > attention.MOST_EXPLAINED:
        return
    case = ExplainedCall(evidence, given)
    yield from _in_the_mask(case)
    if case.window is not None:
        yield from _in_the_window(case, case.window)
    yield from _in_the_walk(case)
    yield from _where_nothing_is_seen(case)
    yield from _in_the_cap(case)
    yield from _in_groups(case)
    yield from _as_without_a_rule(case)


def astray(evidence: Evidence, inputs: list[Argument], finding: Finding) -> Hypothesis | None:
    """Returns the mistake of a walk that begins in front of key 0, if the first load outside lies there, else None."""
    q, k, _, window, _ = given_in(inputs)
    if window is None or finding.kind != "out-of-bounds-load" or finding.linear >= 0:
        return None
    rows, step = (evidence.constants.get(name, 0) for name in ("BLOCK_M", "BLOCK_N"))
    if rows < 1 or step < 1:
        return None
    rule = Rule(q.shape[2], k.shape[2], window, rows, step)
    reached = rule.first - window + 1
    below = reached.clamp(max=0).neg() // step * step  # // rounds towards 0
    if finding.argument in evidence.exercise.arguments[1:3] and bool((below > 0).any()):
        return Hypothesis("walk-too-early", CausalAttention.BEGINS_BELOW_ZERO(), None)
    return None


def _in_the_mask(case: ExplainedCall) -> Iterator[Hypothesis]:
    rule = case.rule
    sizes: Fields = dict(queries=rule.M, keys=rule.N)
    window = rule.seen | ~rule.causal  # what the other end of the rule hides stays hidden
    windowed = window if case.window is not None else torch.ones_like(rule.causal)
    yield case.of("wrong-mask", CausalAttention.OWN_KEY_HIDDEN(), (rule.keys < rule.at) & windowed)
    for visited in (rule.visited(), rule.keys < rule.N):
        yield case.of("wrong-mask", CausalAttention.ONE_KEY_MORE(), (rule.keys <= rule.at + 1) & windowed & visited)
    if rule.shift:
        i = rule.at - rule.shift
        as_at_i = rule.keys <= i
        if case.window is not None:
            for seen in (as_at_i & (rule.keys > i - case.window), as_at_i & windowed):
                yield case.of("wrong-mask", CausalAttention.TOP_LEFT(**sizes), seen & rule.visited())
        ends = rule.visited(end=(rule.first - rule.shift + rule.rows).clamp(max=rule.N))
        for visited in (rule.visited(), ends, rule.keys < rule.N):
            yield case.of("wrong-mask", CausalAttention.TOP_LEFT(**sizes), as_at_i & windowed & visited)
    if case.window is not None:
        alone = rule.keys > rule.at - case.window
        yield case.of("wrong-window", CausalAttention.WINDOW_ALONE(), alone & rule.visited() & (rule.keys < rule.N))
    for visited in (rule.visited(), rule.visited() & (rule.keys < rule.N), (rule.keys < rule.N) | ~rule.causal):
        yield case.of("wrong-mask", CausalAttention.NO_MASK(), visited & windowed)
        zero = case.s.masked_fill(~rule.seen, 0.0)
        yield case.of("wrong-mask", CausalAttention.HIDDEN_WITH_ZERO(), visited, zero)


def _in_the_window(case: ExplainedCall, w: int) -> Iterator[Hypothesis]:
    rule = case.rule
    for said, seen in (
        (CausalAttention.WINDOW_ONE_MORE, rule.keys >= rule.at - w),
        (CausalAttention.WINDOW_ONE_LESS, rule.keys > rule.at - w + 1),
        (CausalAttention.WINDOW_WITHOUT_SHIFT, rule.keys > rule.at - rule.shift - w),
    ):  # fmt: skip
        for visited in (rule.visited(), rule.keys >= 0):
            yield case.of("wrong-window", said(), rule.causal & seen & visited)
    yield case.of("wrong-window", CausalAttention.WINDOW_OF_TILES(), rule.causal & rule.visited())
    yield case.of("wrong-window", CausalAttention.NO_WINDOW(), rule.causal)


def _in_the_walk(case: ExplainedCall) -> Iterator[Hypothesis]:
    rule = case.rule
    sizes: Fields = dict(queries=rule.M, keys=rule.N)
    last = rule.end - 1
    for said, end in (
        (CausalAttention.ENDS_A_TILE_EARLY(), rule.end - rule.step),
        (CausalAttention.ENDS_A_TILE_EARLY(), last // rule.step * rule.step),
        (CausalAttention.ENDS_WITH_FIRST_QUERY(), rule.first + 1),
        (CausalAttention.ENDS_WITHOUT_SHIFT(**sizes), rule.first - rule.shift + rule.rows),
    ):
        yield case.of("walk-too-short", said, rule.seen & rule.visited(end=end.clamp(max=rule.N)))
    if case.window is None:
        return
    reached, step = (rule.first - case.window + 1).clamp(min=0), rule.step
    for said, begin in (
        (CausalAttention.BEGINS_WITH_LAST_QUERY(), rule.begin(rule.first + rule.rows - 1)),
        (CausalAttention.BEGINS_WITH_LAST_QUERY(), rule.begin(last)),
        (CausalAttention.BEGINS_TOO_LATE(), (reached + step - 1) // step * step),
        (CausalAttention.BEGINS_WITHOUT_SHIFT(**sizes), rule.begin(rule.first - rule.shift)),
    ):
        yield case.of("walk-too-late", said, rule.seen & rule.visited(begin=begin))


def _where_nothing_is_seen(case: ExplainedCall) -> Iterator[Hypothesis]:
    rule, name = case.rule, case.evidence.returns
    o, lse = made(case.s, case.values, rule.seen)
    nothing, at_first = ~rule.seen.any(dim=1), rule.sees_nothing_at_first()
    lost = lambda rows: (o.masked_fill(rows[:, None], torch.nan), lse.masked_fill(rows, torch.nan))  # noqa: E731
    if bool(nothing.any()) and bool(case.other_result()[..., nothing].isneginf().all()):
        found = o.masked_fill(nothing[:, None], torch.nan), lse
        yield Hypothesis("nothing-seen", CausalAttention.ZERO_BY_ZERO(name=name), found, may_be_constant=True)
    if bool(at_first.any()):
        in_a_window = bool((at_first & ~nothing).any())
        sentence = CausalAttention.NAN_OF_EMPTY_TILES if in_a_window else CausalAttention.NAN_OF_NOTHING
        yield Hypothesis("first-tile-empty", sentence(name=name), lost(at_first), may_be_constant=True)
    if bool(nothing.any()):
        said = CausalAttention.NAN_OF_NOTHING(name=name)
        yield Hypothesis("first-tile-empty", said, lost(nothing), may_be_constant=True)
        for visited in (rule.visited(), rule.keys >= 0, rule.keys < rule.N):
            seen = visited.double().expand_as(rule.seen)
            mean = (seen @ case.values / seen.sum(dim=-1, keepdim=True)).nan_to_num(nan=0.0)
            found = torch.where(nothing[:, None], mean, o), lse
            yield Hypothesis("nothing-seen", CausalAttention.AVERAGE_OF_HIDDEN(), found)
    if bool(((case.s < 0) | ~rule.seen).all()):
        found = _measured_against_0(case, at_first)
        yield Hypothesis("stand-in-kept", CausalAttention.STAND_IN_KEPT(), found, may_be_constant=True)
        said = Attention.STARTS_AT_0(dtype="bf16" if case.evidence.trial.dtype == torch.bfloat16 else "fp16")
        found = _measured_against_0(case, torch.ones_like(at_first))
        yield Hypothesis("finite-start", said, found, may_be_constant=True)


def _measured_against_0(case: ExplainedCall, rows: torch.Tensor) -> Results:
    """Returns o and lse where p of these rows is measured against 0, in fp32, and rounded for the second product."""
    s = case.s.masked_fill(~case.rule.seen, -torch.inf)
    greatest = s.amax(dim=-1, keepdim=True)
    shift = torch.where(rows[:, None] | greatest.isneginf(), 0.0, greatest)
    p = torch.exp(s - shift).float()
    p = torch.where(p < 2.0**-126, 0.0, p)
    total = p.double().sum(dim=-1, keepdim=True)
    o = p.to(case.evidence.trial.dtype).double() @ case.values / torch.where(total == 0, 1.0, total)
    return o, (shift + total.log())[..., 0]


def _in_the_cap(case: ExplainedCall) -> Iterator[Hypothesis]:
    if (c := case.softcap) is None:
        return
    rule, plain, D = case.rule, case.plain, case.q.shape[-1]
    for sentence, s in (
        (CausalAttention.NO_CAP, plain),
        (CausalAttention.CAP_BEFORE_SCALE, capped(plain * math.sqrt(D), c) / math.sqrt(D)),
        (CausalAttention.CAP_IN_BASE_2, capped(plain * LOG2_E, c) / LOG2_E),
        (CausalAttention.CAP_CLAMPS, plain.clamp(-c, c)),
        (CausalAttention.CAP_NOT_MULTIPLIED, torch.tanh(plain / c)),
    ):
        yield case.of("wrong-cap", sentence(), rule.seen, s)
    for low in (-c, -c / LOG2_E):
        hidden = case.s.masked_fill(~rule.seen, low)
        for visited in (rule.visited(), rule.keys >= 0):
            yield case.of("wrong-cap", CausalAttention.CAP_AFTER_MASK(), visited, hidden)
    out = case.evidence.comparison.out
    large = (plain / c > 40).logical_and(rule.seen).any(dim=-1)
    rows = out.isnan() if out.dim() == 3 else out.isnan().all(dim=-1)
    if bool(rows.any()) and bool((~rows | large).all()):
        said = CausalAttention.CAP_OVERFLOWS(name=case.evidence.returns)
        yield Hypothesis("wrong-cap", said, None)


def _in_groups(case: ExplainedCall) -> Iterator[Hypothesis]:
    q, k, v, _, _ = case.given
    H, HK = q.shape[1], k.shape[1]
    in_turn, first = torch.arange(H) % HK, torch.zeros(H, dtype=torch.int64)
    for said, of in ((CausalAttention.HEADS_IN_TURN, in_turn), (CausalAttention.ALL_OF_HEAD_0, first)):
        s = capped(case.rule.padded(attention.scores(q, k[:, of]), -1), case.softcap)
        found = made(s, case.rule.padded(v[:, of], -2), case.rule.seen)
        yield Hypothesis("wrong-group", said(heads=H, shared=HK), found)


def _as_without_a_rule(case: ExplainedCall) -> Iterator[Hypothesis]:
    """Yields the mistakes that attention over all keys has too; only mistakes in addresses if some row sees no key of
    the first tile."""
    rule = case.rule
    s = case.s.masked_fill(~rule.seen, -torch.inf)[..., : rule.N]
    if not bool(rule.seen[:, : rule.step].any(dim=1).all()):
        yield from of_other_elements(case.evidence, case.given)
        return
    walk = KeyTiles(s, case.v, rule.step)
    yield from attention.in_scores(case.evidence, [case.q, case.k, case.v], walk)
    if len(walk.tiles) > 1:
        yield from attention.in_joining(case.evidence, walk)
    yield from attention.at_the_end(case.evidence, walk)
    yield from of_other_elements(case.evidence, case.given)
    yield from attention.in_few_digits(case.evidence, [case.q, case.k, case.v], walk)
