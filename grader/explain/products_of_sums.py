"""Explains errors of a sum of products that the compiler turns into a tl.dot, which rounds its operands."""

from __future__ import annotations

from grader.explain.verdict import Verdict
from grader.sentences import Sentence


class ProductOfSums(Sentence):
    WRITE_A_DOT = (
        "This Triton turns tl.sum(a[:, :, None] * b[None, :, :], 1) into a tl.dot, and rounds its operands to tf32: "
        'write tl.dot(a, b, input_precision="ieee") instead.'
    )


def as_product(verdict: Verdict) -> Verdict:
    """Adds to a failure, which the sum by itself does not have, that the compiler made a tl.dot of the sum."""
    verdict.said.insert(1, ProductOfSums.WRITE_A_DOT())
    return verdict
