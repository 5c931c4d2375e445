"""Attention with its log-sum-exp: q [B, H, M, D], k, v [B, H, N, D] -> o [B, H, M, D], lse [B, H, M].

s = q k^T / sqrt(D), o = softmax(s) v, lse = log of the sum of exp(s). Heads are taken a few at a time, so that no more
than MOST_SCORES scores stand in memory at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.numerics.roundoff import U32
from grader.operations import gemm

MOST_SCORES = 1 << 24
FEW = 16  # roundings besides the roundings of scores and of their differences
FEW_OF_A_SCORE = 4


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of o, [B, H, M, D]: 2 sum p delta |v|, as each p errs by a relative delta, and so does their sum.

    In delta, exp of a rounded difference errs by 2 |s - max| u. The score itself is a sum of D products, which errs by
    `gemm.growth(D)` u; its scale and another base of the exponential add FEW_OF_A_SCORE u. Both count relative to the
    score's terms, a = sum |q k| / sqrt(D). All other roundings are FEW u.
    """
    return by_heads(inputs, ref, lambda q, k, v: rounding_of_scores(scores(q, k), scores(q.abs(), k.abs()), v))


def rounding_of_scores(s: torch.Tensor, a: torch.Tensor, v: torch.Tensor, more: float = 0.0) -> torch.Tensor:
    """Returns c S of o, [..., M, D], of scores s, which are -inf for keys that are not seen. a is sum |q k| / sqrt(D)
    of each score, and is overwritten; `more` is a further error of each score, in u."""
    greatest = s.amax(dim=-1, keepdim=True)
    delta = a.mul_(FEW_OF_A_SCORE + gemm.growth(v.shape[-1])).add_(FEW + more).add_(greatest - s, alpha=2)
    delta.mul_(torch.softmax(s, dim=-1)).mul_(2 * U32)
    return delta.nan_to_num_(nan=0.0) @ v.abs()  # 0 times infinity, of keys that are not seen


def rounding_of_lse(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of lse, [B, H, M]: the error of the greatest score, as in `rounding`, and the error of the sum, which
    the logarithm turns from relative to absolute.

    A sum of N terms errs by N / 64 u where a kernel keeps 64 partial sums, or adds up tiles of 64 keys.
    """
    return by_heads(inputs, ref, lambda q, k, v: rounding_of_largest(scores(q.abs(), k.abs()), v))


def rounding_of_largest(a: torch.Tensor, v: torch.Tensor, more: float = 0.0) -> torch.Tensor:
    """Returns c S of lse, [..., M], from a = sum |q k| / sqrt(D), which is 0 for keys that are not seen. `more` is a
    further error of each score, in u."""
    largest, (keys, D) = a.amax(dim=-1), v.shape[-2:]
    return largest.mul_(FEW_OF_A_SCORE + gemm.growth(D)).add_(FEW + more + keys / 64).mul_(U32)


def conversion(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L of o: p is rounded to the dtype of v before the second product. R is 1.1 sum p |v|. L is 0.55 sum
    |v| / l: below the normal numbers of that dtype each p, measured against the greatest p of its row, loses half of
    eta."""
    rounded = by_heads(inputs, ref, lambda q, k, v: torch.softmax(scores(q, k), dim=-1) @ v.abs())
    lost = by_heads(inputs, ref, _divided_by_the_sum)
    return rounded.mul_(1.1), lost.mul_(1.1 / 2)


def _divided_by_the_sum(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    s = scores(q, k)
    total = torch.exp(s - s.amax(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
    return v.abs().sum(dim=-2, keepdim=True) / total


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of p |v| for o, [B, H, M, D]; for lse, [B, H, M], the largest sum |q k| / sqrt(D), which a
    score's rounding is relative to, plus 1."""
    if ref.dim() == as_tensor(inputs[0]).dim():
        return by_heads(inputs, ref, lambda q, k, v: torch.softmax(scores(q, k), dim=-1) @ v.abs())
    return by_heads(inputs, ref, lambda q, k, v: scores(q.abs(), k.abs()).amax(dim=-1)) + 1


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Returns q k^T / sqrt(D): [..., M, D], [..., N, D] -> [..., M, N]."""
    return q @ k.mT * q.shape[-1] ** -0.5


def held(shapes: Sequence[Sequence[int]]) -> int:
    """Returns how many numbers the bounds keep: four for each score of the heads that are taken at a time, namely the
    score, its terms, and what is made of both."""
    (B, H, M, _), (_, _, N, _) = shapes[:2]
    return 4 * M * N * min(B * H, _heads_at_a_time(M * N))


Heads = Callable[..., torch.Tensor]


def by_heads(inputs: Sequence[Argument], ref: torch.Tensor, of_heads: Heads) -> torch.Tensor:
    """Returns what `of_heads` makes of q, k, v and further inputs, a few heads at a time, [shape of ref]. It gets each
    input as [heads, ...], with batches and heads in one axis."""
    found, tensors = torch.empty_like(ref).flatten(0, 1), as_tensors(inputs)
    for heads in _few_heads(*tensors[:2]):
        found[heads] = of_heads(*(one.flatten(0, 1)[heads] for one in tensors))
    return found.view(ref.shape)


def _heads_at_a_time(scores_of_each: int) -> int:
    return max(1, MOST_SCORES // max(1, scores_of_each))


def _few_heads(q: torch.Tensor, k: torch.Tensor) -> Iterator[slice]:
    count, step = q.shape[0] * q.shape[1], _heads_at_a_time(q.shape[2] * k.shape[2])
    return (slice(start, start + step) for start in range(0, count, step))
