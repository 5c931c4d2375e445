"""Known mistakes: if the result equals what a mistake would give, the mistake is named.

What a mistake of any operation gives is computed in float64 from the inputs that the kernel saw; those of the exercise
are carried out, as changes to the solution. Both are compared with the kernel's exact run: a wrong formula gives the
same numbers there, and no rounding blurs them. Mistakes that lose digits leave the exact run right, and are compared
with the result itself: to the bit, or else as close as a right kernel would have to be. What is matched must differ
from the right result by more than rounding explains: of few elements, or of small effects, some mistake fits by chance.
Where nothing matches, nothing is claimed.
"""

from __future__ import annotations

from itertools import chain

import torch

from grader.explain.causes import Cause
from grader.explain.evidence import Compared
from grader.explain.hypothesis import Hypothesis
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
from grader.explain.mistakes.of_tile_loops import carried_over, nothing_later
from grader.numerics.arguments import Argument, exact
from grader.numerics.bounds import size_of_terms, tolerance
from grader.numerics.roundoff import EXACT, UNIT_ROUNDOFF

TELLING_BITS = 4  # of 16 results drawn at random one looks like a given mistake
# By how much the exact runs of two kernels with one formula may differ: constants have the digits of fp32.
OF_EACH, OF_THE_LARGEST = 1e-6, 1e-9
DIGITS = {Cause.LOW_PRECISION}  # leave the formula right, as those of an exercise that lose digits
RANGE = {Cause.THROUGH_FP32}


def matching_hypotheses(evidence: Compared) -> tuple[dict[str, Hypothesis], set[str]]:
    """Returns the mistakes that explain the result, by candidate, and the candidates that would give other values."""
    inputs, exactly = exact(evidence.inputs), evidence.exactly
    place = [one.name for one in evidence.exercise.results].index(evidence.wanted.name)
    seen, fits = evidence, _fits
    if exactly is not None and not evidence.formula_is_right:
        seen, fits = exactly, _fits_exactly
    fitting, refuted, to_the_bit = dict[str, Hypothesis](), set[str](), set[str]()
    carried_out = evidence.carried_out(evidence.returns, evidence.formula_is_right)
    for hypothesis in chain(*(make(seen, inputs) for make in ANY_OPERATION), carried_out):
        found = hypothesis.result
        result = found[place] if isinstance(found, tuple) else found
        spoils_right = isinstance(found, tuple) and not _leaves_right(evidence, found)
        if spoils_right or _is_ruled_out(evidence, hypothesis):
            refuted.add(hypothesis.candidate)
        elif result is None or (agrees := fits(seen, hypothesis, result, inputs)) and hypothesis.holds():
            fitting.setdefault(hypothesis.candidate, hypothesis)
            if result is not None and bool(equal(result.to(seen.output.dtype), seen.output).all()):
                to_the_bit.add(hypothesis.candidate)
        elif agrees is False and not _loses_digits(hypothesis):  # how digits are rounded is known less exactly
            refuted.add(hypothesis.candidate)
    if to_the_bit and seen is evidence:  # digits are lost: others are about as near
        fitting = {candidate: one for candidate, one in fitting.items() if candidate in to_the_bit}
    if len(fitting) > 1 and not bool(evidence.output[evidence.comparison.wrong].isfinite().any()):
        fitting.clear()  # NaN and infinities tell nothing where several mistakes make them
    return fitting, refuted - fitting.keys()


def _is_ruled_out(evidence: Compared, hypothesis: Hypothesis) -> bool:
    """Returns whether the exact run contradicts a mistake: it is right, and the formula should be wrong, or it is
    wrong, and digits alone should be lost.

    Numbers of 64 bits reach further: what has become infinite or NaN may be a wrong formula all the same.
    """
    right = evidence.formula_is_right
    if right is None or hypothesis.id in RANGE or hypothesis.loses == "range":
        return False
    overflows = hypothesis.result is None and not bool(evidence.output[evidence.comparison.wrong].isfinite().all())
    return right != _loses_digits(hypothesis) and not (right and overflows)


def _leaves_right(evidence: Compared, results: tuple[torch.Tensor, ...]) -> bool:
    """Returns whether the results of this call that are right are so with the mistake, too, rounding aside."""
    names = [one.name for one in evidence.exercise.results]
    pairs = ((evidence.reply.outputs[name].double(), results[names.index(name)]) for name in evidence.right_results)
    return all(torch.allclose(out, other.double(), 1e-2, 1e-3, equal_nan=True) for out, other in pairs)


def _loses_digits(hypothesis: Hypothesis) -> bool:
    return hypothesis.id in DIGITS or hypothesis.loses == "digits"


def _fits(evidence: Compared, hypothesis: Hypothesis, result: torch.Tensor, inputs: list[Argument]) -> bool | None:
    """Returns whether the result is what the mistake gives; None where it is, and might be so by chance."""
    if not _is_near(evidence, hypothesis, result, inputs):
        return False
    out, wrong = evidence.comparison.out, evidence.comparison.wrong_count
    if wrong >= TELLING_BITS and bool(equal(result.to(out.dtype), out).all()):
        return _may_be_told(evidence, hypothesis)  # to the bit, in elements that rounding leaves wrong
    return _is_told(evidence, hypothesis, result, _rounding(evidence, inputs))


def _fits_exactly(
    evidence: Compared, hypothesis: Hypothesis, result: torch.Tensor, inputs: list[Argument]
) -> bool | None:
    """Returns whether an exact run gives what the mistake gives; None where it does, and might do so by chance.

    evidence: of the exact run.
    """
    out = evidence.comparison.out
    if not _is_another(evidence, result):
        return False
    size = result.abs().nan_to_num(nan=0.0, posinf=0.0)
    terms = size_of_terms(evidence.wanted.bound, inputs, evidence.comparison.ref).nan_to_num(nan=0.0, posinf=0.0)
    allowed = OF_EACH * size.maximum(terms) + OF_THE_LARGEST * size.max()
    fits = ((out - result).abs() <= allowed) | equal(out, result)
    return bool(fits.all()) and _is_told(evidence, hypothesis, result, allowed)


def _is_another(evidence: Compared, result: torch.Tensor) -> bool:
    """Returns whether what a mistake gives is of the right shape, and differs from the right result."""
    out = evidence.comparison.out
    return result.shape == out.shape and not bool(equal(result.to(out.dtype), evidence.comparison.expected).all())


def _may_be_told(evidence: Compared, hypothesis: Hypothesis) -> bool | None:
    return True if hypothesis.may_be_constant or not is_constant(evidence.comparison.out) else None


def _is_near(evidence: Compared, hypothesis: Hypothesis, result: torch.Tensor, inputs: list[Argument]) -> bool:
    """Returns whether the output is as near to `result`, which the mistake gives, as a right kernel has to be."""
    out = evidence.comparison.out
    if not _is_another(evidence, result):
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


def _is_told(evidence: Compared, hypothesis: Hypothesis, result: torch.Tensor, rounding: torch.Tensor) -> bool | None:
    """Returns True where the wrong elements tell the mistake, and None where they do not: those tell of which an
    ordinary number is expected, since a NaN that becomes a number may be left out, or changed on the way."""
    comparison = evidence.comparison
    telling = comparison.wrong if hypothesis.of_special else comparison.wrong & comparison.ref.isfinite()
    is_told = bool(telling.any()) and _bits_told(evidence, result, rounding, telling) >= TELLING_BITS
    return _may_be_told(evidence, hypothesis) if is_told else None


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


ANY_OPERATION = (
    not_zeroed, whole_inputs, updated_twice, through_fp32, strides_ignored, target_strides, operands, first_blocks,
    carried_over, nothing_later,
)  # fmt: skip
