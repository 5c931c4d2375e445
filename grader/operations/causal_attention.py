"""Attention over the keys that a rule lets each query see: q [B, H, M, D], k, v [B, HK, N, D], window, softcap -> o,
lse.

s = q k^T / sqrt(D), with a softcap c tanh(s / c). Query i stands at position i + N - M and sees the keys up to there,
with a window only the last `window` of them. o = softmax(s) v over these keys, lse = log of the sum of exp(s); a query
that sees no key has 0 and -inf. The bounds are attention's, over the seen keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from grader.numerics.arguments import Argument, as_number, as_tensors
from grader.operations import attention

OF_A_CAP = 8  # u of the cap: tanh comes from an exponential


class AttentionArguments(NamedTuple):
    """The arguments of a call; None stands for no window and for no cap."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    window: int | None
    softcap: float | None


def given_in(inputs: Sequence[Argument]) -> AttentionArguments:
    q, k, v = as_tensors(inputs[:3])
    window, softcap = inputs[3:]
    cap = None if softcap is None else as_number(softcap)
    return AttentionArguments(q, k, v, None if window is None else int(as_number(window)), cap)


def seen(M: int, N: int, window: int | None, device: torch.device) -> torch.Tensor:
    """Returns the keys that each query sees, [M, N], bool."""
    at = torch.arange(M, device=device)[:, None] + N - M
    keys = torch.arange(N, device=device)
    return keys <= at if window is None else (keys <= at) & (keys > at - window)


@dataclass
class Scored:
    """The scores of a few heads, [heads, M, N], with -inf for keys that are not seen. `more` is the error that a cap
    adds to each, in u."""

    given: AttentionArguments

    def __post_init__(self) -> None:
        q, k, _, self.window, self.softcap = self.given
        self.seen = seen(q.shape[2], k.shape[2], self.window, q.device)
        self.more = 0.0 if self.softcap is None else OF_A_CAP * self.softcap

    def scores(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        s, cap = attention.scores(q, k), self.softcap
        return (s if cap is None else cap * torch.tanh(s / cap)).masked_fill_(~self.seen, -torch.inf)

    def sizes(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        """Returns the sums of |q k| / sqrt(D), [heads, M, N], and 0 for keys that are not seen."""
        return attention.scores(q.abs(), k.abs()).masked_fill_(~self.seen, 0.0)

    def of_heads(self, ref: torch.Tensor, make: attention.Heads) -> torch.Tensor:
        """Returns what `make` makes of q, k and v, a few heads at a time, [shape of ref]. It gets k and v once for each
        head of q."""
        return attention.by_heads(for_each_head(*self.given[:3]), ref, make)


def for_each_head(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Returns q, and k and v with as many heads as q has."""
    group = q.shape[1] // k.shape[1]
    return (q, *(one if group == 1 else one.repeat_interleave(group, dim=1) for one in (k, v)))


def probabilities(s: torch.Tensor) -> torch.Tensor:
    """Returns the softmax along the keys; 0 in rows of -inf alone."""
    return torch.softmax(s, dim=-1).nan_to_num_(nan=0.0)


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of o as attention does, over the seen keys; a score that is capped errs by 8 u of the cap more."""
    of = Scored(given_in(inputs))
    return of.of_heads(ref, lambda q, k, v: attention.rounding_of_scores(of.scores(q, k), of.sizes(q, k), v, of.more))


def rounding_of_lse(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    of = Scored(given_in(inputs))
    return of.of_heads(ref, lambda q, k, v: attention.rounding_of_largest(of.sizes(q, k), v, of.more))


def conversion(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L of o as attention does, over the seen keys."""
    of = Scored(given_in(inputs))
    rounded = of.of_heads(ref, lambda q, k, v: probabilities(of.scores(q, k)) @ v.abs())

    def divided_by_the_sum(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        s = of.scores(q, k)
        total = torch.exp(s - s.amax(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
        return (of.seen.to(v.dtype) @ v.abs() / total).nan_to_num_(nan=0.0)

    return rounded.mul_(1.1), of.of_heads(ref, divided_by_the_sum).mul_(1.1 / 2)


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the terms of o or lse as attention does, over the seen keys."""
    of = Scored(given_in(inputs))
    if ref.dim() == of.given.q.dim():
        return of.of_heads(ref, lambda q, k, v: probabilities(of.scores(q, k)) @ v.abs())
    return of.of_heads(ref, lambda q, k, v: of.sizes(q, k).amax(dim=-1)) + 1
