"""The backward pass of attention: q, do [B, H, M, D], k, v [B, H, N, D], o, lse as `attention` gives them -> dq, dk, dv.

P = exp(s - lse), delta = sum of o do in each row, dS = P (do v^T - delta), dv = P^T do, dk = dS^T q / sqrt(D),
dq = dS k / sqrt(D). Tensor cores multiply tiles of one dtype, so P and dS are rounded to it; nothing else is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import U32
from grader.operations import attention, gemm
from grader.operations.attention import FEW, FEW_OF_A_SCORE, by_heads, scores

FEW_OF_DP = 4  # roundings of do v^T and of delta, beside those of a sum of D products


@dataclass
class Pairs:
    """What is known of all pairs of a query and a key, [heads, M, N] each, and the tensors that it is made of."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    o: torch.Tensor
    lse: torch.Tensor
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
    def delta(self) -> torch.Tensor:
        return (self.o * self.do).sum(dim=-1, keepdim=True)

    @property
    def ds(self) -> torch.Tensor:
        return self.p * (self.do @ self.v.mT - self.delta)

    @property
    def of_p(self) -> torch.Tensor:
        """How much P errs by, relative to it: 2 |s - lse| u of an exponential whose argument is rounded, and what each
        score errs by, a sum of D products that is scaled and measured in another base: see `attention.rounding`."""
        errors = scores(self.q.abs(), self.k.abs()).mul_(FEW_OF_A_SCORE + gemm.growth(self.q.shape[-1])).add_(FEW)
        return errors.add_((self.s - self.lse[..., None]).abs(), alpha=2).mul_(U32)

    @property
    def of_ds(self) -> torch.Tensor:
        """How much dS errs by: as P does, and by what the two sums of D products do whose difference it holds."""
        terms = self.do.abs() @ self.v.abs().mT + (self.o * self.do).abs().sum(dim=-1, keepdim=True)
        of_sums = (FEW_OF_DP + self.q.shape[-1] / 8) * U32
        return self.of_p.mul_(self.ds.abs()).add_(terms.mul_(self.p), alpha=of_sums)


def rounding_of_dv(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """2 sum of the errors of P times |do|: half of it is for the sum itself."""
    return by_heads(inputs, ref, lambda *given: 2 * (pairs := Pairs(*given)).of_p.mul_(pairs.p).mT @ pairs.do.abs())


def rounding_of_dk(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: 2 * (pairs := Pairs(*given)).scale * pairs.of_ds.mT @ pairs.q.abs())


def rounding_of_dq(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: 2 * (pairs := Pairs(*given)).scale * pairs.of_ds @ pairs.k.abs())


def conversion_of_dv(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """P is rounded to the dtype of do: 1.1 u of sum P |do|, and below the normal numbers half of eta for each term."""
    return terms_of_dv(inputs, ref).mul_(1.1), _of_each(inputs, ref, 5)


def conversion_of_dk(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """dS is rounded likewise, before the scale or after it."""
    return terms_of_dk(inputs, ref).mul_(1.1), _of_each(inputs, ref, 0)


def conversion_of_dq(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return terms_of_dq(inputs, ref).mul_(1.1), _of_each(inputs, ref, 1)


def _of_each(inputs: Sequence[Argument], ref: torch.Tensor, place: int) -> torch.Tensor:
    """1.1 halves of what is rounded operands' partners add up to: each row of the result sums over all rows of it."""
    return inputs[place].abs().sum(dim=-2, keepdim=True).mul(1.1 / 2).expand(ref.shape).contiguous()


def terms_of_dv(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: (pairs := Pairs(*given)).p.mT @ pairs.do.abs())


def terms_of_dk(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: (pairs := Pairs(*given)).scale * pairs.ds.abs().mT @ pairs.q.abs())


def terms_of_dq(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: (pairs := Pairs(*given)).scale * pairs.ds.abs() @ pairs.k.abs())


def held(shapes: Sequence[Sequence[int]]) -> int:
    """Twice as many numbers for each score as attention keeps."""
    return 2 * attention.held(shapes)
