"""Sums of products that the compiler turns into a product of tiles, which rounds otherwise."""

from __future__ import annotations

from grader.explain.verdict import Verdict
from grader.sentences import Sentence


class ProductOfSums(Sentence):
    WRITE_A_DOT = (
        "This Triton turns tl.sum(a[:, :, None] * b[None, :, :], 1) into a tl.dot, and rounds its operands to tf32: "
        'write tl.dot(a, b, input_precision="ieee") instead.'
    )


def as_product(verdict: Verdict) -> Verdict:
    """A failure that only the product has; says where the product comes from."""
    verdict.said.insert(1, ProductOfSums.WRITE_A_DOT())
    return verdict
