"""Models of rounding that several exercises share: of a softmax, of a product of matrices, of attention.

An exercise states one as `bound=PRODUCT`, or makes its own of the functions here. u is 2**-24, which one rounding in
fp32 may cost, relative to the number that is rounded; c S is that of grader/numerics/bounds.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch

from grader.numerics.bounds import RoundingModel
from grader.numerics.roundoff import U32

LEFT_OUT_OF_PRODUCT = 2.0  # u of |terms|: see `_of_product`
MOST_SCORES = 1 << 24  # of attention, that stand in memory at once
FEW = 16  # roundings of attention besides the roundings of scores and of their differences
FEW_OF_A_SCORE = 4


# ---- softmax along the rows of a matrix: x [M, N] -> z [M, N] --------------------------------------------------------


def _of_softmax(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Returns c S = (12 + log2 N + 2 |x - max|) u |z|, [M, N], with log2 N at most 8: exp of a rounded difference errs
    by |x - max| u; a GPU's division, its exp and the exp of each term add 4 u each, and a blocked sum of N terms about
    log2 N u. In a row of few numbers that is little enough to see 1e-6 that was added to the sum."""
    largest, few = x.amax(dim=-1, keepdim=True), 12 + min(math.log2(max(x.shape[-1], 1)), 8)
    # In one pass: timed results are checked with it too.
    factor = torch.sub((few + 2 * largest) * U32, x, alpha=2 * U32)
    return factor.nan_to_num_(posinf=0.0).mul_(z.abs())


SOFTMAX = RoundingModel(_of_softmax)


# ---- a product of matrices, summed in fp32: a [M, K] @ b [K, N] -> c [M, N] ------------------------------------------


def _of_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns c S, [M, N]: the growth of the sum's error, and LEFT_OUT_OF_PRODUCT u for operands that are split into
    parts in tf32.

    A product of fp32 made of three of tf32 leaves out the product of the two rests, each at most 2**-11 of its number:
    at most 4 u of a term. A few terms may all be near this limit; in longer sums `error_of_sum` has room for it.
    """
    return (error_of_sum(a.shape[-1]) + LEFT_OUT_OF_PRODUCT) * U32 * (a.abs() @ b.abs())


def error_of_sum(K: int) -> float:
    """Returns the error of a sum of K products, in u of its |terms|: blocked fp32 sums grow like the square root of the
    steps; tensor cores truncate, which is the second term."""
    steps = K / 16
    return 4 * math.sqrt(steps + 4) + 2 * steps


def _terms_of_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the |products| of each element, [M, N]."""
    return a.abs() @ b.abs()


PRODUCT = RoundingModel(_of_product, terms=_terms_of_product)


# ---- attention: q [B, H, M, D], k, v [B, H, N, D] -> o [B, H, M, D], lse [B, H, M] -----------------------------------
# s = q k^T / sqrt(D), o = softmax(s) v, lse = log of the sum of exp(s).


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Returns q k^T / sqrt(D): [..., M, D], [..., N, D] -> [..., M, N]."""
    return q @ k.mT * q.shape[-1] ** -0.5


def error_of_scores(a: torch.Tensor, D: int, more: float = 0.0) -> torch.Tensor:
    """Returns the relative error of exp(s), in u, that comes from each score's own error, and FEW for all other
    roundings; [shape of a].

    A score is a sum of D products, which errs by `error_of_sum(D)` u; its scale and another base of the exponential add
    FEW_OF_A_SCORE u. Both count relative to the score's terms, a = sum |q k| / sqrt(D), which is overwritten. `more` is
    a further error of each score, in u.
    """
    return a.mul_(FEW_OF_A_SCORE + error_of_sum(D)).add_(FEW + more)


def _of_o(o: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Returns c S of o, [B, H, M, D]: 2 sum p delta |v|, as each p errs by a relative delta, and so does their sum.

    In delta, exp of a rounded difference errs by 2 |s - max| u, and the rest is `error_of_scores`.
    """
    return by_heads(o, lambda q, k, v: rounding_of_o(scores(q, k), scores(q.abs(), k.abs()), v), q, k, v)


def rounding_of_o(s: torch.Tensor, a: torch.Tensor, v: torch.Tensor, more: float = 0.0) -> torch.Tensor:
    """Returns c S of o, [..., M, D], of scores s, which are -inf for keys that are not seen. `a` and `more` are
    those of `error_of_scores`."""
    greatest = s.amax(dim=-1, keepdim=True)
    delta = error_of_scores(a, v.shape[-1], more).add_(greatest - s, alpha=2)
    delta.mul_(torch.softmax(s, dim=-1)).mul_(2 * U32)
    return delta.nan_to_num_(nan=0.0) @ v.abs()  # 0 times infinity, of keys that are not seen


def _of_lse(lse: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Returns c S of lse, [B, H, M]: the error of the greatest score, as in `_of_o`, and the error of the sum,
    which the logarithm turns from relative to absolute.

    A sum of N terms errs by N / 64 u where a kernel keeps 64 partial sums, or adds up tiles of 64 keys.
    """
    return by_heads(lse, lambda q, k, v: rounding_of_lse(scores(q.abs(), k.abs()), v), q, k, v)


def rounding_of_lse(a: torch.Tensor, v: torch.Tensor, more: float = 0.0) -> torch.Tensor:
    """Returns c S of lse, [..., M], from a = sum |q k| / sqrt(D), which is 0 for keys that are not seen. `more` is that
    of `error_of_scores`."""
    largest, (keys, D) = a.amax(dim=-1), v.shape[-2:]
    return largest.mul_(FEW_OF_A_SCORE + error_of_sum(D)).add_(FEW + more + keys / 64).mul_(U32)


def _rounded_p(o: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L of o: p is rounded to the dtype of v before the second product. R is 1.1 sum p |v|. L is 0.55 sum
    |v| / l: below the normal numbers of that dtype each p, measured against the greatest p of its row, loses half of
    eta."""
    return _terms_of_o(o, q, k, v).mul_(1.1), by_heads(o, _divided_by_the_sum, q, k, v).mul_(1.1 / 2)


def _divided_by_the_sum(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    s = scores(q, k)
    total = torch.exp(s - s.amax(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
    return v.abs().sum(dim=-2, keepdim=True) / total


def _terms_of_o(o: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Returns the sum of p |v|, [B, H, M, D]."""
    return by_heads(o, lambda q, k, v: torch.softmax(scores(q, k), dim=-1) @ v.abs(), q, k, v)


def _terms_of_lse(lse: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Returns the largest sum |q k| / sqrt(D), which a score's rounding is relative to, plus 1; [B, H, M]."""
    return by_heads(lse, lambda q, k, v: scores(q.abs(), k.abs()).amax(dim=-1), q, k, v) + 1


def _held(q: Sequence[int], k: Sequence[int], *others: Sequence[int]) -> int:
    """Returns how many numbers the bounds keep, from shapes: four for each score of the heads that are taken at a time,
    namely the score, its terms, and what is made of both."""
    (B, H, M, _), (_, _, N, _) = q, k
    return 4 * M * N * min(B * H, _heads_at_a_time(M * N))


def by_heads(result: torch.Tensor, of_heads: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Returns what `of_heads` makes of q, k, v and further inputs, [shape of the result].

    It takes a few heads at a time, so that no more than MOST_SCORES scores stand in memory. `of_heads` gets each input
    as [heads, ...], with batches and heads in one axis.
    """
    bounds = torch.empty_like(result).flatten(0, 1)
    for heads in _few_heads(*inputs[:2]):
        bounds[heads] = of_heads(*(values.flatten(0, 1)[heads] for values in inputs))
    return bounds.view(result.shape)


def _heads_at_a_time(scores_of_each: int) -> int:
    return max(1, MOST_SCORES // max(1, scores_of_each))


def _few_heads(q: torch.Tensor, k: torch.Tensor) -> Iterator[slice]:
    count, step = q.shape[0] * q.shape[1], _heads_at_a_time(q.shape[2] * k.shape[2])
    return (slice(start, start + step) for start in range(0, count, step))


ATTENTION = RoundingModel(_of_o, _rounded_p, _terms_of_o, _held)
LOG_SUM_EXP = RoundingModel(_of_lse, terms=_terms_of_lse, held=_held)
