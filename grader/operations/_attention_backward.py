"""The backward pass of attention, second file: all pairs of a query and a key, and the sentences about mistakes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from grader.numerics.roundoff import FLUSHED, U32
from grader.operations import gemm
from grader.operations.attention import FEW, FEW_OF_A_SCORE, scores
from grader.sentences import Sentence

FEW_OF_DP = 4  # roundings of do v^T and of delta, besides the roundings of a sum of D products
Results = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # dq, dk, dv


class Backward(Sentence):
    """Sentences about mistakes in P, in dS, in the scale, in walks, past the end, in addresses and in digits."""

    WITHOUT_LSE = "P is exp(s): lse is not subtracted. P = exp(s - lse)."
    LSE_IN_BASE_2 = "lse is taken for a logarithm in base 2: multiply it by log2(e), as the scores are."
    POWERS_OF_2 = "P is a power of 2, not of e: exp2 needs s - lse times log2(e)."
    LSE_ALONE_IN_BASE_2 = "lse is in base 2 and the scores are not: both have to be multiplied by log2(e)."
    LOG2_E_AND_EXP = "s - lse is multiplied by log2(e) and goes into exp: that factor is for exp2."
    OWN_MAXIMUM = (
        "P is measured against the maximum of its own tile: lse is what brings back P, exp(s - lse). No maximum and no "
        "sum is needed any more."
    )
    SCORES_NOT_SCALED = "The scores that P is made from are not scaled: they are q k / sqrt(D)."

    NO_DELTA = "delta is left out: dS = P (do v^T - delta), and here it is P times do v^T."
    DELTA_ADDED = "delta is added: dS = P (do v^T - delta)."
    DELTA_OF = "delta is made of {made_of}: it is the sum of o times do in each row."
    NO_P_IN_DS = "dS is do v^T - delta here: it lacks the factor P."
    DV_FROM_DS = "dv is made from dS: dv = P^T do."
    FROM_P = "{name} is made from P: it is {formula}."

    NOT_SCALED = "{name} is not scaled: it is {formula} / sqrt(D), since the scores are q k / sqrt(D)."
    SCALED_TWICE = "{name} is scaled twice: one factor of 1 / sqrt(D) is right."
    DV_SCALED = "dv is scaled: dv = P^T do, without a factor."

    P_NOT_TURNED = (
        "P is not turned for dv: row i of its tile goes with query i, and dv wants the sum over queries, P^T do. With "
        "equal blocks the shapes hide it."
    )
    DS_NOT_TURNED = (
        "dS is not turned for dk: row i of its tile goes with query i, and dk wants the sum over queries, dS^T q. With "
        "equal blocks the shapes hide it."
    )

    PADDING_IS_INFINITE = (
        "{name} is NaN where scores lie far below 0. Keys past the end have the score 0, and exp(0 - lse) is huge "
        "there: infinity times 0 is NaN. Their P has to be 0."
    )

    ROWS_OF_ANOTHER = (
        "{what} of a head is read behind {wrong} numbers for each head before it: there are {right}, one for each "
        "query."
    )

    DELTA_ROUNDED = (
        "delta is rounded to {dtype}: do v^T and delta may be large, and dS is what they differ by. Keep it in fp32."
    )
    DELTA_FROM_ROUNDED_PRODUCTS = (
        "The products of o and do are rounded to {dtype} before they are added up to delta. Convert both to fp32 first."
    )
    DP_ROUNDED = (
        "do v^T is rounded to {dtype} before delta is subtracted: both may be large, and dS is what they differ by. "
        "Only dS itself is rounded, for its products."
    )
    FACTOR_ROUNDED = (
        "{name} is scaled and rounded to {dtype} before its product: each score errs by as much as its rounding, and P "
        "by as much as the score. Scale the scores, which are fp32."
    )
    SCORES_ROUNDED = "The scores are rounded to fp16. Keep them in fp32."
    HALF_ACCUMULATOR = (
        "{name} is rounded to {dtype} in every turn: large sums lose their last digits there, and the "
        "difference of two of them is wrong. Keep the sum in fp32 until the store."
    )
    LOST_DIGITS = "P and dS are rounded for their products, and nothing else is: scores, lse, delta and sums are fp32."


@dataclass
class Pairs:
    """The tensors of a call, [..., M or N, D], and what is made of them for each query and key, [..., M, N]."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    o: torch.Tensor
    lse: torch.Tensor  # [..., M]
    do: torch.Tensor

    @property
    def scale(self) -> float:
        return self.q.shape[-1] ** -0.5

    @property
    def s(self) -> torch.Tensor:
        return scores(self.q, self.k)

    @property
    def p(self) -> torch.Tensor:
        return torch.exp(self.s - self.lse[..., None])

    @property
    def dp(self) -> torch.Tensor:
        return self.do @ self.v.mT

    @property
    def delta(self) -> torch.Tensor:
        return (self.o * self.do).sum(dim=-1, keepdim=True)

    @property
    def ds(self) -> torch.Tensor:
        return self.p * (self.dp - self.delta)

    @property
    def of_p(self) -> torch.Tensor:
        """The error of P, [..., M, N]: P times 2 |s - lse| u, since the exponential's argument is rounded, P times the
        error of each score, a sum of D products that is scaled and measured in another base (see `attention.rounding`),
        and all of a P that is flushed to 0.
        """
        errors = scores(self.q.abs(), self.k.abs()).mul_(FEW_OF_A_SCORE + gemm.growth(self.q.shape[-1])).add_(FEW)
        return errors.add_((self.s - self.lse[..., None]).abs(), alpha=2).mul_(U32).mul_(self.p).add_(FLUSHED)

    @property
    def of_ds(self) -> torch.Tensor:
        """The error of dS, [..., M, N]: that of P, the errors of the two sums of D products whose difference dS holds,
        and all of a dS that is flushed to 0."""
        terms = self.do.abs() @ self.v.abs().mT + (self.o * self.do).abs().sum(dim=-1, keepdim=True)
        of_sums = (FEW_OF_DP + self.q.shape[-1] / 8) * U32
        of_p = self.of_p.mul_((self.dp - self.delta).abs())
        return of_p.add_(terms.mul_(self.p), alpha=of_sums).add_(FLUSHED)

    def results(self, p: torch.Tensor | None = None, ds: torch.Tensor | None = None) -> Results:
        """Returns dq, dk and dv of this P and dS; a missing dS is made from P, and a missing P is the right one."""
        if ds is None:
            ds = self.ds if p is None else p * (self.dp - self.delta)
        p = self.p if p is None else p
        return ds @ self.k * self.scale, ds.mT @ self.q * self.scale, p.mT @ self.do
