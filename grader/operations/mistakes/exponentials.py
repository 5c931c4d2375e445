"""Mistakes in what a softmax along the last axis makes of its numbers: the maximum, the exponential, the divisor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import UNIT_ROUNDOFF
from grader.operations.bounds import tolerance
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import turns
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

CAUSES = ("no-maximum", "inf-minus-inf", "underflow", "not-divided", "wrong-sum")
PLAIN_CAUSES = ("exp2", "logarithm")
RANGE = ("no-maximum", "underflow", "wrong-sum")


class Exponentials(Sentence):
    """Sentences about softmax; {sums} says what the results sum to, and {whole} is what sums to 1."""

    OVERFLOWS = "exp overflows: subtract the maximum of {whole} before exponentiating, so that no exponent is above 0."
    INF_MINUS_INF = (
        "{name} holds NaN, and {whole} holds -inf: somewhere (-inf) - (-inf) or 0 * inf is computed, which is NaN."
    )
    UNDERFLOWS = (
        "exp underflows: every exponential of {whole} is 0, and 0 / 0 is NaN. Subtract the maximum of {whole} itself, "
        "that of its own lanes only: a maximum that begins with 0 never falls below it."
    )
    NO_MAXIMUM = (
        "exp underflows: every exponential of {whole} is 0, and 0 / 0 is NaN. Subtract the maximum of {whole} before "
        "exponentiating: the kernel takes no maximum of its lanes."
    )
    MAXIMUM_WITH_0 = (
        "exp underflows: every exponential of {whole} is 0, and 0 / 0 is NaN. The tl.maximum in line {line} compares "
        "each lane with 0; tl.max(x, 0) is the maximum of the lanes."
    )
    POWERS_OF_2 = "{name} is made with powers of 2, not of e: exp2 needs its argument times log2(e)."
    NOT_DIVIDED = "{sums} the exponentials are not divided by their sum."
    LOGARITHMS = "{name} holds the logarithms of the probabilities."
    WRONG_DIVISOR = "{sums} the divisor is wrong."
    WRONG_AS_FP16_ROUNDS = (
        "{sums} the divisor is wrong. By no more than fp16 rounds: is every maximum and every sum kept in fp32, in "
        "scratch memory too, and every column in it?"
    )


def without_maximum(evidence: Compared, x: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields exponentials of numbers that no maximum was subtracted from, or another number than the maximum."""
    said = Exponentials.OVERFLOWS(whole=_whole(x))
    for shift in (torch.zeros_like(x[..., :1]), x[..., :1]):
        naive = torch.exp((x - shift).float())
        if bool(shift.isfinite().all()) and not bool(naive.isfinite().all()):
            result = (naive / naive.sum(dim=-1, keepdim=True)).double()
            yield Hypothesis("no-maximum", said, result, may_be_constant=passed_before(evidence))


def not_a_number(evidence: Compared, x: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields mistakes that show in rows that are NaN, after other calls were right."""
    out, largest = evidence.comparison.out, x.amax(dim=-1)
    nan = (out.isnan() & ~evidence.comparison.expected.isnan()).any(dim=-1)
    if not passed_before(evidence):
        return
    if bool(nan.any()) and bool((x == -torch.inf).any(dim=-1)[nan].all()):
        yield Hypothesis("inf-minus-inf", Exponentials.INF_MINUS_INF(name=evidence.returns, whole=_whole(x)), None)
    gone = torch.exp(largest.clamp(max=0.0).float()) == 0
    if bool(gone.any()) and torch.equal(out.isnan().all(dim=-1), gone):
        yield _underflow(evidence, _whole(x))


def _underflow(evidence: Compared, whole: str) -> Hypothesis:
    if evidence.kernels and not any(kernel.takes_a_maximum for kernel in evidence.kernels):
        line = evidence.line_of_maximum
        said = Exponentials.MAXIMUM_WITH_0(whole=whole, line=line) if line else Exponentials.NO_MAXIMUM(whole=whole)
        return Hypothesis("underflow", said, None, line=line)
    return Hypothesis("underflow", Exponentials.UNDERFLOWS(whole=whole), None)


def other_formulas(evidence: Compared, x: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields powers of 2, undivided exponentials, logarithms, and a sum without its last term."""
    name, shifted, sums = evidence.returns, x - x.amax(dim=-1, keepdim=True), sums_text(evidence)
    powers, e = torch.exp2(shifted), torch.exp(shifted)
    yield Hypothesis("exp2", Exponentials.POWERS_OF_2(name=name), powers / powers.sum(dim=-1, keepdim=True))
    yield Hypothesis("not-divided", Exponentials.NOT_DIVIDED(sums=sums), e)
    if x.numel() > 1:  # of a single element much is alike: its logarithm is 0
        yield Hypothesis("logarithm", Exponentials.LOGARITHMS(name=name), torch.log_softmax(x, dim=-1))
    if x.shape[-1] > 1:
        short = torch.nn.functional.pad(e[..., :-1], (0, 1))
        for numerator in (e, short):
            result = numerator / short.sum(dim=-1, keepdim=True)
            yield turns.last_left_out("column" if x.dim() > 1 else "element of x", result)


def wrong_divisor(evidence: Compared, inputs: Sequence[Argument]) -> Iterator[Hypothesis]:
    """Yields the mistake of a wrong divisor, where probabilities are right but for one factor for each row."""
    out, ref = evidence.comparison.out.double(), evidence.comparison.ref
    sums = out.sum(dim=-1, keepdim=True)
    if not bool(out.isfinite().all()) or bool((sums == 0).any()) or {f"{one:.6g}" for one in _ends(sums)} == {"1"}:
        return
    allowed = 4 * tolerance("softmax", inputs, ref, evidence.wanted.dtype)
    if bool(((out / sums - ref).abs() <= allowed).all()):
        near = float((sums - 1).abs().max()) < 2 * UNIT_ROUNDOFF[torch.float16]
        if near and evidence.kernels and not any(kernel.narrowing_lines for kernel in evidence.kernels):
            return  # nothing is rounded to 16 bits
        said = Exponentials.WRONG_AS_FP16_ROUNDS if near else Exponentials.WRONG_DIVISOR
        yield Hypothesis("wrong-sum", said(sums=sums_text(evidence, digits=6)), None)


def passed_before(evidence: Compared) -> bool:
    """Returns whether a call with the exercise's own bound was right in this run."""
    return evidence.exercise.bound in evidence.right_before


def sums_text(evidence: Compared, digits: int = 3) -> str:
    """Returns "z sums to 1.5 instead of 1:", or of a matrix "The rows of z sum to 0.5 ... 1.5 instead of 1:"."""
    out, name = evidence.comparison.out.double(), evidence.returns
    ends = " ... ".join(dict.fromkeys(f"{one:.{digits}g}" for one in _ends(out.sum(dim=-1))))
    return (
        f"{name} sums to {ends} instead of 1:" if out.dim() == 1 else f"The rows of {name} sum to {ends} instead of 1:"
    )


def _ends(sums: torch.Tensor) -> tuple[float, float]:
    return float(sums.min()), float(sums.max())


def _whole(x: torch.Tensor) -> str:
    return "x" if x.dim() == 1 else "the row"
