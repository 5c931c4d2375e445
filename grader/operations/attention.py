"""Attention with its log-sum-exp: q [B, H, M, D], k, v [B, H, N, D] -> o [B, H, M, D], lse [B, H, M].

s = q k^T / sqrt(D), o = softmax(s) v, lse = log of the sum of exp(s). Heads are taken a few at a time, so that no more
than MOST_SCORES stand in memory at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import U32
from grader.operations import gemm

MOST_SCORES = 1 << 24
FEW = 16  # roundings beside those of scores and of their differences
FEW_OF_A_SCORE = 4


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Of o: each p errs by a relative delta, and so does their sum: 2 sum p delta |v|.

    delta: exp of a rounded difference errs by 2 |s - max| u; the score itself is a sum of D products, which errs as any
    product's does, and is scaled and measured in another base: 4 u more, all of a = sum |q k| / sqrt(D).
    """
    return _by_heads(inputs, ref, _rounding_of_heads)


def _rounding_of_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    s, a = scores(q, k), scores(q.abs(), k.abs())
    greatest = s.amax(dim=-1, keepdim=True)
    delta = a.mul_(FEW_OF_A_SCORE + gemm.growth(q.shape[-1])).add_(FEW).add_(greatest - s, alpha=2)
    return delta.mul_(torch.softmax(s, dim=-1)).mul_(2 * U32) @ v.abs()


def rounding_of_lse(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """The error of the greatest score, as in o, and that of the sum, of which the logarithm makes an absolute one.

    A sum of N terms errs by N / 64 u where a kernel keeps 64 partial sums, or goes on to the next tile in so many turns.
    """
    return _by_heads(inputs, ref, _rounding_of_lse_of_heads)


def _rounding_of_lse_of_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    largest = scores(q.abs(), k.abs()).amax(dim=-1)
    return largest.mul_(FEW_OF_A_SCORE + gemm.growth(q.shape[-1])).add_(FEW + k.shape[-2] / 64).mul_(U32)


def conversion(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """p is rounded to the dtype of v before the second product: 1.1 u of sum p |v|. What lies below the normal numbers
    of that dtype loses half of eta, measured against the greatest p of its row: 1.1 times that of sum |v| / l.
    """
    rounded = _by_heads(inputs, ref, lambda q, k, v: torch.softmax(scores(q, k), dim=-1) @ v.abs())
    lost = _by_heads(inputs, ref, _divided_by_the_sum)
    return rounded.mul_(1.1), lost.mul_(1.1 / 2)


def _divided_by_the_sum(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    s = scores(q, k)
    total = torch.exp(s - s.amax(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
    return v.abs().sum(dim=-2, keepdim=True) / total


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Of o the sum of p |v|; of lse the largest sum of |q k|, which a rounded score errs by."""
    if ref.dim() == inputs[0].dim():
        return _by_heads(inputs, ref, lambda q, k, v: torch.softmax(scores(q, k), dim=-1) @ v.abs())
    return _by_heads(inputs, ref, lambda q, k, v: scores(q.abs(), k.abs()).amax(dim=-1)) + 1


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """[..., M, D], [..., N, D] -> [..., M, N]"""
    return q @ k.mT * q.shape[-1] ** -0.5


Heads = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def _by_heads(inputs: Sequence[Argument], ref: torch.Tensor, of_heads: Heads) -> torch.Tensor:
    """[shape of ref]: what `of_heads` makes of q, k and v of a few heads at a time, [heads, ., D] each."""
    q, k, v = inputs
    found = torch.empty_like(ref).flatten(0, 1)
    for heads in _few_heads(q, k):
        found[heads] = of_heads(*(one.flatten(0, 1)[heads] for one in (q, k, v)))
    return found.view(ref.shape)


def _few_heads(q: torch.Tensor, k: torch.Tensor) -> Iterator[slice]:
    count, step = q.shape[0] * q.shape[1], max(1, MOST_SCORES // max(1, q.shape[2] * k.shape[2]))
    return (slice(start, start + step) for start in range(0, count, step))
