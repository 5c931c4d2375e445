"""Mistakes in the scores of attention, q k / sqrt(D): a wrong scale, the base of another exponential, fewer digits."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from grader.operations.mistakes.half_precision import rounded, short
from grader.sentences import Said, Sentence

CAUSES = ("wrong-scale", "rounded-too-early")
LN_2, LOG2_E = math.log(2), 1 / math.log(2)


class Scores(Sentence):
    """Sentences about scores and the exponentials that are made from them."""

    NO_SCALE = "The scores are not scaled: they are q k / sqrt(D), and here those of q k are used."
    SCALED_BY_D = "The scores are divided by D: they are q k / sqrt(D)."
    POWERS_OF_2 = "The probabilities are powers of 2, not of e: exp2 needs its argument times log2(e)."
    LOG2_E_AND_EXP = "The scores are multiplied by log2(e) and go into exp: that factor is for exp2."
    SCORES_ROUNDED = "The scores are rounded to fp16. Keep them in fp32."
    FACTOR_ROUNDED = (
        "{name} is scaled and rounded to {dtype} before its product: each score errs by as much as its rounding. Scale "
        "the scores, which are fp32."
    )


def of_another_scale(D: int) -> Iterator[tuple[Said, float]]:
    """Yields what the right scores are multiplied by."""
    yield Scores.NO_SCALE(), math.sqrt(D)
    yield Scores.SCALED_BY_D(), 1 / math.sqrt(D)
    yield Scores.POWERS_OF_2(), LN_2
    yield Scores.LOG2_E_AND_EXP(), LOG2_E


def in_few_digits(
    s: torch.Tensor, q: torch.Tensor, k: torch.Tensor, scaled: str, dtype: torch.dtype
) -> Iterator[tuple[Said, torch.Tensor]]:
    """Yields scores that are rounded, and scores of a factor that is scaled and rounded; `scaled` names the factors
    that may be, "q" or "qk". A score of -inf stays."""
    scale = q.shape[-1] ** -0.5
    for unit in (1.0, LN_2, scale):  # scaled, in base 2, or not scaled yet
        yield Scores.SCORES_ROUNDED(), rounded(s / unit, torch.float16) * unit
    for name in scaled:
        for unit in (1.0, LN_2):
            factors = {"q": q, "k": k}
            factors[name] = rounded(factors[name] * scale / unit, dtype) * unit
            said = Scores.FACTOR_ROUNDED(name=name, dtype=short(dtype))
            yield said, torch.where(s.isneginf(), s, factors["q"] @ factors["k"].mT)
