"""Softmax of one long vector whose blocks are reduced apart, then together: x [N] -> z [N]. Its bound is softmax's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import UNIT_ROUNDOFF
from grader.operations.bounds import tolerance
from grader.operations.hypothesis import Hypothesis
from grader.operations.softmax import LOG_OF_SMALLEST, right_far_below_zero, right_with_hollow_blocks
from grader.operations.softmax import LOST_DIGITS as LOST_DIGITS

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence

CAUSES = (
    "not-combined", "not-rescaled", "rescale-inverted", "parts-left-out", "padding-counted", "parts-padded",
    "no-maximum", "inf-minus-inf", "underflow", "not-divided", "last-element", "wrong-sum",
    "stand-in-kept",
)  # fmt: skip
PLAIN_CAUSES = ("exp2", "logarithm")
EXACTLY = 1e-6  # two sums in fp32 agree as well as that
LAST_LEFT_OUT = "the last element of x is left out of the sum."


@dataclass
class Parts:
    """x cut into blocks of `step`, the last one filled up with -inf; all in float64."""

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
        """Lanes of the last block past the end of x."""
        return -len(self.x) % self.step

    @property
    def lanes(self) -> int:
        """Of a block that holds all partial results: a power of two."""
        return 1 << (self.count - 1).bit_length()

    @property
    def largest(self) -> torch.Tensor:
        return self.maxima.max()

    @property
    def total(self) -> torch.Tensor:
        return (self.sums * torch.exp(self.maxima - self.largest)).sum()

    def of_block(self, values: torch.Tensor) -> torch.Tensor:
        """[blocks] -> [N]: each element's own block's."""
        return values.repeat_interleave(self.step)[: len(self.x)]


def mistakes(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 1 or inputs[0].dim() != 1:
        return
    (x,), step = inputs, evidence.constants.get("BLOCK_N", 0)
    parts = Parts(x, step if step > 0 else len(x))
    if parts.count > 1:
        yield from _badly_combined(evidence, parts)
    yield from _stand_in_kept(evidence, parts)
    yield from _padding(evidence, parts)
    yield from _of_minus_infinity(evidence, parts)
    yield from _without_maximum(evidence, x)
    yield from _other_formulas(evidence, x)
    yield from _wrong_sum(evidence, parts)


def _badly_combined(evidence: Evidence, parts: Parts) -> Iterator[Hypothesis]:
    x, count = parts.x, parts.count
    own = torch.exp(x - parts.of_block(parts.maxima))
    common = torch.exp(x - parts.largest)
    of_x = "A result needs the maximum and the sum of all of x: join those of the blocks before you scale."
    sentence = f"{_sum_text(evidence)}: each of its {count} blocks is a softmax of its own. {of_x}"
    yield Hypothesis("not-combined", sentence, own / parts.of_block(parts.sums))
    sentence = f"{_sum_text(evidence)}: each block is divided by its own sum. {of_x}"
    yield Hypothesis("not-combined", sentence, common / parts.of_block(parts.sums))
    sentence = f"{_sum_text(evidence)}: each block still subtracts its own maximum. {of_x}"
    yield Hypothesis("not-combined", sentence, own / parts.total)
    sentence = (
        f"{_sum_text(evidence)}: the blocks' sums are added as they are, but each belongs to its own block's maximum. "
        "Multiply it by exp(maximum of the block - maximum of x) first."
    )
    for numerator in (common, own):
        yield Hypothesis("not-rescaled", sentence, numerator / parts.sums.sum())
    sentence = (
        f"{_sum_text(evidence)}: the factor of each block's sum is inverted; it is exp(maximum of the block - maximum "
        "of x), at most 1."
    )
    inverted = (parts.sums * torch.exp(parts.largest - parts.maxima)).sum()
    yield Hypothesis("rescale-inverted", sentence, common / inverted)
    for kept in (1, count // 2, count - 1, parts.lanes // 2):
        largest, sums = parts.maxima[:kept].max(), parts.sums[:kept]
        if kept < count and bool(largest.isfinite()):
            total = (sums * torch.exp(parts.maxima[:kept] - largest)).sum()
            sentence = f"Only the first {kept} of {count} partial results are joined: what happens to the others?"
            yield Hypothesis("parts-left-out", sentence, torch.exp(x - largest) / total)
            yield Hypothesis("parts-left-out", sentence, common / (total * torch.exp(largest - parts.largest)))


def _padding(evidence: Evidence, parts: Parts) -> Iterator[Hypothesis]:
    """Lanes past the end, of x or of the partial results, that hold 0."""
    shift = parts.largest.clamp(min=0.0)  # the padding takes part in the maximum too
    shifted, rescaled = torch.exp(parts.x - shift), parts.total * torch.exp(parts.largest - shift)
    passed_before = "softmax" in evidence.right_before
    for id, lanes, sentence in _padded(evidence, parts):
        added = lanes * torch.exp(-shift)
        yield Hypothesis(
            id, sentence, shifted / (rescaled + added), may_be_constant=id == "padding-counted" and passed_before
        )
    nothing_left = bool(evidence.comparison.out.isnan().all()) and float(torch.exp(parts.largest.float())) == 0
    hollow = bool((parts.maxima == -torch.inf).any()) and not right_with_hollow_blocks(evidence, parts.step)
    if nothing_left and parts.lanes > parts.count and not hollow:
        sentence = (
            f"{evidence.returns} is NaN, 0 / 0: {_where(parts)}, and the lanes past their end hold a maximum that is "
            "larger than all of x. What loses against every maximum?"
        )
        yield Hypothesis("parts-padded", sentence, None)


def _padded(evidence: Evidence, parts: Parts) -> Iterator[tuple[str, int, str]]:
    """Lanes that hold no element, or no partial result, and could count in the sum: a mistake's id, how many, words."""
    if lanes := parts.padding:
        which = f"the {lanes} lanes past the end of x take" if lanes > 1 else "the lane past the end of x takes"
        yield "padding-counted", lanes, f"{_sum_text(evidence)}: {which} part in the sum."
    if lanes := parts.lanes - parts.count:
        sentence = f"{_sum_text(evidence)}: {_where(parts)}, and the lanes past their end take part in the sum."
        yield "parts-padded", lanes, sentence


def _where(parts: Parts) -> str:
    return f"{parts.count} partial results stand in a block of {parts.lanes} lanes"


def _stand_in_kept(evidence: Evidence, parts: Parts) -> Iterator[Hypothesis]:
    """All is NaN where a block holds -inf alone and the others lie far below 0; neither has done harm by itself."""
    hollow, nan = bool((parts.maxima == -torch.inf).any()), bool(evidence.comparison.out.isnan().all())
    if not nan or not hollow or not float(parts.largest) < LOG_OF_SMALLEST or not bool(parts.largest.isfinite()):
        return
    in_lanes_too_many = 2 * parts.step if parts.lanes > parts.count else 0  # three blocks leave a lane without a pair
    if right_with_hollow_blocks(evidence, parts.step) and right_far_below_zero(evidence, in_lanes_too_many):
        sentence = (
            "The 0 that stands in for -inf in the subtraction is kept as the maximum of a block: "
            f"{evidence.returns} is NaN where the other blocks lie far below 0. They are measured against 0 then, and "
            "every exponential is 0. A block of -inf alone leaves the maximum -inf and the sum 0."
        )
        yield Hypothesis("stand-in-kept", sentence, None)


def _of_minus_infinity(evidence: Evidence, parts: Parts) -> Iterator[Hypothesis]:
    hollow = bool((parts.maxima == -torch.inf).any())
    nan = evidence.comparison.out.isnan() & ~evidence.comparison.expected.isnan()
    if not bool(nan.any()) or "softmax" not in evidence.right_before:
        return
    where = "a block of x holds nothing but -inf, so its own maximum is -inf" if hollow else "x holds -inf"
    sentence = f"{evidence.returns} holds NaN: {where}, and (-inf) - (-inf) is NaN."
    if hollow or bool((parts.x == -torch.inf).any()):
        yield Hypothesis("inf-minus-inf", sentence, None)


def _without_maximum(evidence: Evidence, x: torch.Tensor) -> Iterator[Hypothesis]:
    largest, passed_before = x.max(), "softmax" in evidence.right_before
    for shift in (torch.zeros_like(largest), x[0]):
        naive = torch.exp((x - shift).float())
        if bool(shift.isfinite()) and not bool(naive.isfinite().all()):
            sentence = "exp overflows: subtract the maximum of x before exponentiating, so that no exponent is above 0."
            yield Hypothesis("no-maximum", sentence, (naive / naive.sum()).double(), may_be_constant=passed_before)
    if passed_before and bool(evidence.comparison.out.isnan().all()) and float(torch.exp(largest.float())) == 0:
        sentence = (
            "exp underflows: every exponential is 0, and 0 / 0 is NaN. Subtract the maximum of x itself; a maximum "
            "that begins with 0 never falls below it."
        )
        yield Hypothesis("underflow", sentence, None)


def _other_formulas(evidence: Evidence, x: torch.Tensor) -> Iterator[Hypothesis]:
    name, e = evidence.returns, torch.exp(x - x.max())
    powers = torch.exp2(x - x.max())
    yield Hypothesis("exp2", f"{name} is made with powers of 2, not of e: exp2 needs its argument times log2(e).",
                     powers / powers.sum())  # fmt: skip
    yield Hypothesis("not-divided", f"{_sum_text(evidence)}: the exponentials are not divided by their sum.", e)
    if len(x) > 1:  # of a single element much is alike: its logarithm is 0
        yield Hypothesis("logarithm", f"{name} holds the logarithms of the probabilities.", torch.log_softmax(x, dim=0))
        yield Hypothesis("last-element", f"{_sum_text(evidence)}: {LAST_LEFT_OUT}", e / e[:-1].sum())


def _wrong_sum(evidence: Evidence, parts: Parts) -> Iterator[Hypothesis]:
    """Probabilities that are right but for one factor: in fp32 it tells by itself what was added to the divisor."""
    out, ref = evidence.comparison.out.double(), evidence.comparison.ref
    total = out.sum()
    if not bool(total.isfinite()) or float(total) == 0 or f"{float(total):.6g}" == "1":
        return
    allowed = 4 * tolerance("softmax", [parts.x], ref, evidence.wanted.dtype)
    if not bool(((out / total - ref).abs() <= allowed).all()):
        return
    excess = 1 / float(total) - 1
    known = [("last-element", -float(ref[-1]), f"{_sum_text(evidence)}: {LAST_LEFT_OUT}")]
    each = float(torch.exp(-parts.largest) / parts.total)
    known += [(id, lanes * each, sentence) for id, lanes, sentence in _padded(evidence, parts)]
    for id, added, sentence in known if evidence.wanted.dtype == torch.float32 else ():
        if abs(added) > 4 * EXACTLY and abs(excess - added) < EXACTLY:
            yield Hypothesis(id, sentence, None)
    coarsest = max(UNIT_ROUNDOFF[torch.float16], UNIT_ROUNDOFF[evidence.wanted.dtype])
    if abs(excess) < coarsest / 64:
        return  # the divisor is as good as the numerators
    if abs(excess) < 2 * coarsest:
        sentence = (
            f"{_sum_text(evidence)}: the divisor is off by about the rounding of fp16. Keep maxima and sums in fp32, "
            "in scratch memory too."
        )
        yield Hypothesis("low-precision", sentence, None)
    yield Hypothesis("wrong-sum", f"{_sum_text(evidence)}: the divisor is wrong.", None)


def _sum_text(evidence: Evidence) -> str:
    return f"{evidence.returns} sums to {float(evidence.comparison.out.double().sum()):.6g} instead of 1"
