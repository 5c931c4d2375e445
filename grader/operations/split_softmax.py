"""Softmax of one long vector whose blocks are reduced apart, then together: x [N] -> z [N]. Its bound is softmax's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32, UNIT_ROUNDOFF
from grader.operations.bounds import tolerance
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import exponentials, lanes
from grader.operations.mistakes.turns import last_left_out
from grader.operations.softmax import LOG_OF_SMALLEST, right_far_below_zero, right_with_hollow_blocks
from grader.operations.softmax import LOST_DIGITS as LOST_DIGITS
from grader.sentences import Said, Sentence, Value

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

CAUSES = ("not-combined", "parts-left-out", "parts-padded", "stand-in-kept")
ROUNDINGS_OF_EXPONENTS = 3
EXACTLY = 1e-6  # two sums in fp32 agree as well as that
SUM = "{name} sums to {total:.6g} instead of 1: "
ALL_OF_X = " A result needs the maximum and the sum of all of x: join those of the blocks before you scale."


class SplitSoftmax(Sentence):
    """Sentences about mistakes in joining the blocks, in lanes past the end, in numbers far from 0, in the divisor."""

    OWN_SOFTMAX = SUM + "each of its {blocks} blocks is a softmax of its own." + ALL_OF_X
    OWN_SUM = SUM + "each block is divided by its own sum." + ALL_OF_X
    OWN_MAXIMUM = SUM + "each block still subtracts its own maximum." + ALL_OF_X
    NOT_RESCALED = SUM + (
        "the blocks' sums are added as they are, but each belongs to its own block's maximum. Multiply it by "
        "exp(maximum of the block - maximum of x) first."
    )
    RESCALE_INVERTED = SUM + (
        "the factor of each block's sum is inverted; it is exp(maximum of the block - maximum of x), at most 1."
    )
    PARTS_LEFT_OUT = "Only the first {kept} of {parts} partial results are joined: what happens to the others?"
    PARTS_PADDED = SUM + (
        "{parts} partial results stand in a block of {lanes} lanes, and the lanes past their end take part in the sum."
    )
    PARTS_BELOW_PADDING = (
        "{name} is NaN, 0 / 0: {parts} partial results stand in a block of {lanes} lanes, and the lanes past their end "
        "hold a maximum that is larger than all of x. What loses against every maximum?"
    )
    STAND_IN_KEPT = (
        "The 0 that stands in for -inf in the subtraction is kept as the maximum of a block: {name} is NaN where the "
        "other blocks lie far below 0. They are measured against 0 then, and every exponential is 0. A block of -inf "
        "alone leaves the maximum -inf and the sum 0."
    )
    HOLLOW_BLOCK = (
        "{name} holds NaN: a block of x holds nothing but -inf. As long as a maximum is -inf, (-inf) - (-inf) is NaN, "
        "and so is 0 times exp(inf)."
    )


@dataclass
class Parts:
    """x cut into blocks of `step` elements, the last block filled up with -inf; all in float64."""

    x: torch.Tensor  # [N]
    step: int
    maxima: torch.Tensor = field(init=False)  # [blocks]
    sums: torch.Tensor = field(init=False)  # [blocks]: of exponentials, each at its own block's maximum

    def __post_init__(self) -> None:
        blocks = torch.nn.functional.pad(self.x, (0, self.padding), value=-torch.inf).view(-1, self.step)
        self.maxima = blocks.amax(dim=1)
        self.sums = torch.exp(blocks - self.maxima.masked_fill(self.maxima == -torch.inf, 0.0)[:, None]).sum(dim=1)

    @property
    def count(self) -> int:
        return len(self.maxima)

    @property
    def padding(self) -> int:
        """The number of lanes of the last block that lie past the end of x."""
        return -len(self.x) % self.step

    @property
    def lanes(self) -> int:
        """The number of lanes of a block that holds all partial results: a power of two."""
        return lanes.next_power_of_2(self.count)

    @property
    def largest(self) -> torch.Tensor:
        return self.maxima.max()

    @property
    def total(self) -> torch.Tensor:
        return (self.sums * torch.exp(self.maxima - self.largest)).sum()

    def of_block(self, values: torch.Tensor) -> torch.Tensor:
        """Returns the value of each element's block: [blocks] -> [N]."""
        return values.repeat_interleave(self.step)[: len(self.x)]


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 1:
        return
    (x,), step = as_tensors(inputs), evidence.constants.get("BLOCK_N", 0)
    if x.dim() != 1:
        return
    parts = Parts(x, step if step > 0 else len(x))
    if parts.count > 1:
        yield from _badly_combined(evidence, parts)
    yield from _stand_in_kept(evidence, parts)
    yield from _padding(evidence, parts)
    yield from _hollow_block(evidence, parts)
    yield from exponentials.without_maximum(evidence, x)
    yield from exponentials.not_a_number(evidence, x)
    yield from exponentials.other_formulas(evidence, x)
    yield from _wrong_sum(evidence, parts)


def _badly_combined(evidence: Compared, parts: Parts) -> Iterator[Hypothesis]:
    x, count, sum_ = parts.x, parts.count, _sum_of(evidence)
    own = torch.exp(x - parts.of_block(parts.maxima))
    common = torch.exp(x - parts.largest)
    sentence = SplitSoftmax.OWN_SOFTMAX(**sum_, blocks=count)
    yield Hypothesis("not-combined", sentence, own / parts.of_block(parts.sums))
    yield Hypothesis("not-combined", SplitSoftmax.OWN_SUM(**sum_), common / parts.of_block(parts.sums))
    yield Hypothesis("not-combined", SplitSoftmax.OWN_MAXIMUM(**sum_), own / parts.total)
    for numerator in (common, own):
        yield Hypothesis("not-rescaled", SplitSoftmax.NOT_RESCALED(**sum_), numerator / parts.sums.sum())
    inverted = (parts.sums * torch.exp(parts.largest - parts.maxima)).sum()
    yield Hypothesis("rescale-inverted", SplitSoftmax.RESCALE_INVERTED(**sum_), common / inverted)
    for kept in (1, count // 2, count - 1, parts.lanes // 2):
        largest, sums = parts.maxima[:kept].max(), parts.sums[:kept]
        if kept < count and bool(largest.isfinite()):
            total = (sums * torch.exp(parts.maxima[:kept] - largest)).sum()
            sentence = SplitSoftmax.PARTS_LEFT_OUT(kept=kept, parts=count)
            yield Hypothesis("parts-left-out", sentence, torch.exp(x - largest) / total)
            yield Hypothesis("parts-left-out", sentence, common / (total * torch.exp(largest - parts.largest)))


def _padding(evidence: Compared, parts: Parts) -> Iterator[Hypothesis]:
    """Yields lanes past the end, of x or of the partial results, that hold 0 and count in the sum."""
    shift = parts.largest.clamp(min=0.0)  # the padding takes part in the maximum too
    shifted, rescaled = torch.exp(parts.x - shift), parts.total * torch.exp(parts.largest - shift)
    passed_before = "softmax" in evidence.right_before
    for id, padding, sentence in _padded(evidence, parts):
        added = padding * torch.exp(-shift)
        of_x = id == "padding-counted"
        result, held = shifted / (rescaled + added), 0.0 if of_x else None
        yield Hypothesis(id, sentence, result, held=held, may_be_constant=of_x and passed_before)
    nothing_left = bool(evidence.comparison.out.isnan().all()) and float(torch.exp(parts.largest.float())) == 0
    hollow = bool((parts.maxima == -torch.inf).any()) and not right_with_hollow_blocks(evidence, parts.step)
    if nothing_left and parts.lanes > parts.count and not hollow:
        sentence = SplitSoftmax.PARTS_BELOW_PADDING(name=evidence.returns, parts=parts.count, lanes=parts.lanes)
        yield Hypothesis("parts-padded", sentence, None)


def _padded(evidence: Compared, parts: Parts) -> Iterator[tuple[str, int, Said]]:
    """Yields id, number of lanes and sentence for lanes that hold no element, or no partial result, and could count in
    the sum."""
    sum_ = _sum_of(evidence)
    if padding := parts.padding:
        yield "padding-counted", padding, lanes.counted(padding, "x", opening=f"{exponentials.sums_text(evidence)} the")
    if padding := parts.lanes - parts.count:
        yield "parts-padded", padding, SplitSoftmax.PARTS_PADDED(**sum_, parts=parts.count, lanes=parts.lanes)


def _stand_in_kept(evidence: Compared, parts: Parts) -> Iterator[Hypothesis]:
    """Yields the mistake where all is NaN, a block holds -inf alone, and the others lie far below 0, if calls with
    either of the two have passed."""
    hollow, nan = bool((parts.maxima == -torch.inf).any()), bool(evidence.comparison.out.isnan().all())
    if not nan or not hollow or not float(parts.largest) < LOG_OF_SMALLEST or not bool(parts.largest.isfinite()):
        return
    in_lanes_too_many = 2 * parts.step if parts.lanes > parts.count else 0  # three blocks leave a lane without a pair
    if right_with_hollow_blocks(evidence, parts.step) and right_far_below_zero(evidence, in_lanes_too_many):
        yield Hypothesis("stand-in-kept", SplitSoftmax.STAND_IN_KEPT(name=evidence.returns), None)


def _hollow_block(evidence: Compared, parts: Parts) -> Iterator[Hypothesis]:
    nan = evidence.comparison.out.isnan() & ~evidence.comparison.expected.isnan()
    if bool(nan.any()) and bool((parts.maxima == -torch.inf).any()) and "softmax" in evidence.right_before:
        yield Hypothesis("inf-minus-inf", SplitSoftmax.HOLLOW_BLOCK(name=evidence.returns), None)


def _wrong_sum(evidence: Compared, parts: Parts) -> Iterator[Hypothesis]:
    """Yields wrong divisors, where probabilities are right but for one factor: in fp32 it tells by itself what was
    added to the divisor."""
    out, ref = evidence.comparison.out.double(), evidence.comparison.ref
    total = out.sum()
    if not bool(total.isfinite()) or float(total) == 0 or f"{float(total):.6g}" == "1":
        return
    allowed = 4 * tolerance("softmax", [parts.x], ref, evidence.wanted.dtype)
    if not bool(((out / total - ref).abs() <= allowed).all()):
        return
    excess = 1 / float(total) - 1
    if abs(excess) < ROUNDINGS_OF_EXPONENTS * U32 * abs(float(parts.largest)):
        return  # the divisor is as good as the exponents, which are rounded as x is, or as a logarithm of the sum
    last = last_left_out("element of x", None)
    known = [(last.id, -float(ref[-1]), last.sentence)]
    each = float(torch.exp(-parts.largest) / parts.total)
    known += [(id, padding * each, sentence) for id, padding, sentence in _padded(evidence, parts)]
    for id, added, sentence in known if evidence.wanted.dtype == torch.float32 else ():
        if abs(added) > 4 * EXACTLY and abs(excess - added) < EXACTLY:
            yield Hypothesis(id, sentence, None)
    coarsest = max(UNIT_ROUNDOFF[torch.float16], UNIT_ROUNDOFF[evidence.wanted.dtype])
    if abs(excess) >= coarsest / 64:
        yield from exponentials.wrong_divisor(evidence, [parts.x])


def _sum_of(evidence: Compared) -> dict[str, Value]:
    """Returns the evidence that every sentence with SUM takes: the name of the result and its sum."""
    return {"name": evidence.returns, "total": float(evidence.comparison.out.double().sum())}
