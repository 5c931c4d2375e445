"""Known mistakes as formulas: if the result equals what a mistake would give, the mistake is named.

Each hypothesis is computed in float64 from the inputs that the kernel saw, and compared with the kernel's exact run: a
wrong formula gives the same numbers there, and no rounding blurs them. Mistakes that lose digits leave the exact run
right, and are compared with the result itself: a match must be as close as a right kernel would have to be. What is
matched must differ from the right result by more than rounding explains: of few elements, or of small effects, some
mistake fits by chance. Where nothing matches, nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from grader.explain.causes import Cause
from grader.explain.mistakes.of_any_operation import (
    WIDER_THAN_FP32,
    first_blocks,
    not_zeroed,
    operands,
    strides_ignored,
    target_strides,
    through_fp32,
    updated_twice,
    whole_inputs,
)
from grader.explain.mistakes.of_walks import carried_over, nothing_later
from grader.numerics.arguments import Argument, exact
from grader.numerics.roundoff import EXACT, UNIT_ROUNDOFF
from grader.operations import digits, named, of_range
from grader.operations.bounds import size_of_terms, tolerance
from grader.operations.evidence import Compared
from grader.operations.hypothesis import Hypothesis

TELLING_BITS = 4  # of 16 results drawn at random one looks like a given mistake
# By how much the exact runs of two kernels with one formula may differ: constants have the digits of fp32.
OF_EACH, OF_THE_LARGEST = 1e-6, 1e-9
DIGITS = {Cause.LOW_PRECISION}  # leave the formula right, as those that operations state
RANGE = {Cause.THROUGH_FP32}


def matching_hypotheses(evidence: Compared) -> tuple[dict[str, Hypothesis], set[str]]:
    """Returns the mistakes that explain the result, by candidate, and the candidates that would give other values."""
    inputs, exactly = exact(evidence.inputs), evidence.exactly
    place = [one.name for one in evidence.exercise.results].index(evidence.wanted.name)
    seen, fits = evidence, _fits
    if exactly is not None and not evidence.formula_is_right:
        seen, fits = exactly, _fits_exactly
    fitting, refuted = dict[str, Hypothesis](), set[str]()
    for hypothesis in (one for make in ANY_OPERATION for one in make(seen, inputs)):
        found = hypothesis.result
        result = found[place] if isinstance(found, tuple) else found
        ruled_out = _is_ruled_out(evidence, hypothesis)
        if not ruled_out and (result is None or fits(seen, hypothesis, result, inputs)):
            fitting.setdefault(hypothesis.candidate, hypothesis)
        elif ruled_out or hypothesis.id not in DIGITS | digits():  # how digits are rounded is known less exactly
            refuted.add(hypothesis.candidate)
    return fitting, refuted - fitting.keys()


def _is_ruled_out(evidence: Compared, hypothesis: Hypothesis) -> bool:
    """Returns whether the exact run contradicts a mistake: it is right, and the formula should be wrong, or it is
    wrong, and digits alone should be lost.

    Numbers of 64 bits reach further: what has become infinite or NaN may be a wrong formula all the same.
    """
    right = evidence.formula_is_right
    if right is None or hypothesis.id in RANGE | of_range():
        return False
    overflows = hypothesis.result is None and not bool(evidence.output[evidence.comparison.wrong].isfinite().all())
    return right != (hypothesis.id in DIGITS | digits()) and not (right and overflows)


def _fits(evidence: Compared, hypothesis: Hypothesis, result: torch.Tensor, inputs: list[Argument]) -> bool:
    if not _is_near(evidence, hypothesis, result, inputs):
        return False
    return _is_told(evidence, hypothesis, result, _rounding(evidence, inputs))


def _fits_exactly(evidence: Compared, hypothesis: Hypothesis, result: torch.Tensor, inputs: list[Argument]) -> bool:
    """Returns whether an exact run gives what the mistake gives. evidence: of the exact run."""
    out = evidence.comparison.out
    if not _can_be_told(evidence, hypothesis, result):
        return False
    size = result.abs().nan_to_num(nan=0.0, posinf=0.0)
    terms = size_of_terms(evidence.wanted.bound, inputs, evidence.comparison.ref).nan_to_num(nan=0.0, posinf=0.0)
    allowed = OF_EACH * size.maximum(terms) + OF_THE_LARGEST * size.max()
    fits = ((out - result).abs() <= allowed) | equal(out, result)
    return bool(fits.all()) and _is_told(evidence, hypothesis, result, allowed)


def _can_be_told(evidence: Compared, hypothesis: Hypothesis, result: torch.Tensor) -> bool:
    """Returns whether a result is of the right shape, differs from the right one, and is not the same everywhere."""
    out = evidence.comparison.out
    if result.shape != out.shape or bool(equal(result.to(out.dtype), evidence.comparison.expected).all()):
        return False
    return hypothesis.may_be_constant or not is_constant(out)


def _is_near(evidence: Compared, hypothesis: Hypothesis, result: torch.Tensor, inputs: list[Argument]) -> bool:
    """Returns whether the output is as near to `result`, which the mistake gives, as a right kernel has to be."""
    out = evidence.comparison.out
    if not _can_be_told(evidence, hypothesis, result):
        return False
    rounded = result.to(out.dtype)
    same = equal(out, rounded)
    if evidence.wanted.bound in EXACT:
        return bool(same.all())
    finite = out.isfinite() & rounded.isfinite()
    distance, error = (out.double() - result).abs(), (out.double() - evidence.comparison.ref).abs()
    # A formula close to the right one would match anything that is nearly right: it has to explain the errors. Most
    # formulas do not, and of those the tolerance, which takes far longer, is not asked.
    explained = same | (distance < 0.5 * error) | ~finite
    if not bool(explained[evidence.comparison.wrong].all()):
        return False
    allowed = tolerance(evidence.wanted.bound, inputs, result, out.dtype)
    if hypothesis.rounding is not None:
        allowed = allowed + hypothesis.rounding
    allowed = 2 * allowed.nan_to_num(nan=0.0)
    return bool((same | (finite & (distance <= allowed))).all())


def _rounding(evidence: Compared, inputs: list[Argument]) -> torch.Tensor:
    """Returns what the bound allows, or a conversion to fp16 on the way, such as of a sum that is kept in it."""
    wanted, ref = evidence.wanted, evidence.comparison.ref
    coarsest = max(UNIT_ROUNDOFF[torch.float16], UNIT_ROUNDOFF.get(wanted.dtype, 0.0))
    terms = size_of_terms(wanted.bound, inputs, ref)
    return tolerance(wanted.bound, inputs, ref, wanted.dtype).maximum(coarsest * terms)


def _is_told(evidence: Compared, hypothesis: Hypothesis, result: torch.Tensor, rounding: torch.Tensor) -> bool:
    """Returns whether the wrong elements tell the mistake: those of which an ordinary number is expected, since a NaN
    that becomes a number may be left out, or changed on the way."""
    comparison = evidence.comparison
    telling = comparison.wrong if hypothesis.of_special else comparison.wrong & comparison.ref.isfinite()
    return bool(telling.any()) and _bits_told(evidence, result, rounding, telling) >= TELLING_BITS


def _bits_told(evidence: Compared, result: torch.Tensor, rounding: torch.Tensor, telling: torch.Tensor) -> float:
    """Returns how many leading bits of the mistake's effect no rounding makes, summed up over the telling elements.

    NaN and infinities tell little by themselves, and nothing where they may come from memory that holds nothing.
    """
    comparison, wanted = evidence.comparison, evidence.wanted
    if wanted.dtype not in UNIT_ROUNDOFF or wanted.dtype in WIDER_THAN_FP32:
        return torch.inf
    effect = (result - comparison.ref).abs()
    bits = (effect / rounding.nan_to_num(nan=0.0, posinf=0.0)).log2().clamp(min=0.0)
    spoilt = 0.0 if evidence.may_hold_poison else 1.0  # whatever runs into poison looks like whatever else does
    bits = torch.where(comparison.ref.isfinite(), bits, 1.0)
    bits = torch.where(result.isfinite(), bits, spoilt)
    return float(bits[telling].nansum())


def equal(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (one == other) | (one.isnan() & other.isnan())


def is_constant(out: torch.Tensor) -> bool:
    return out.numel() > 1 and bool(out.isnan().all() or (out == out.flatten()[0]).all())


def _of_operation(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields the mistakes of the exercise's own operation."""
    operation = evidence.exercise.operation or evidence.wanted.operation
    if operation not in EXACT and hasattr(named(operation), "mistakes"):
        yield from named(operation).mistakes(evidence, inputs)


ANY_OPERATION = (
    not_zeroed, whole_inputs, updated_twice, through_fp32, strides_ignored, target_strides, operands, first_blocks,
    _of_operation, carried_over, nothing_later,
)  # fmt: skip
