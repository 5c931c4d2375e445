"""The backward pass of attention, second file: all pairs of a query and a key."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from grader.numerics.roundoff import FLUSHED, U32
from grader.operations import gemm
from grader.operations.attention import FEW, FEW_OF_A_SCORE, scores

FEW_OF_DP = 4  # roundings of do v^T and of delta, besides the roundings of a sum of D products


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
