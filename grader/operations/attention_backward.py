"""Backward pass of attention: q, do [B, H, M, D], k, v [B, H, N, D], o, lse as `attention` gives them -> dq, dk, dv.

P = exp(s - lse), delta = sum of o do in each row, dS = P (do v^T - delta), dv = P^T do, dk = dS^T q / sqrt(D),
dq = dS k / sqrt(D). Tensor cores multiply tiles of one dtype, so P and dS are rounded to it; nothing else is.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument, as_tensor
from grader.operations import attention
from grader.operations._attention_backward import Pairs
from grader.operations.attention import by_heads

SLACK = 1.25  # where a sum has one term, all of the error may be two roundings: of P or dS, and of the result


def rounding_of_dv(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of dv, [B, H, N, D]: 2 sum of the errors of P times |do|; half of it is for the sum itself."""
    return by_heads(inputs, ref, lambda *given: 2 * (pairs := Pairs(*given)).of_p.mT @ pairs.do.abs())


def rounding_of_dk(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: 2 * (pairs := Pairs(*given)).scale * pairs.of_ds.mT @ pairs.q.abs())


def rounding_of_dq(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: 2 * (pairs := Pairs(*given)).scale * pairs.of_ds @ pairs.k.abs())


def conversion_of_dv(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L of dv: P is rounded to the dtype of do. R is SLACK sum P |do|; L pays for P below the normal
    numbers."""
    return terms_of_dv(inputs, ref).mul_(SLACK), _of_each(inputs, ref, 5)


def conversion_of_dk(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L of dk: dS is rounded to the dtype of q, before the scale or after it."""
    return terms_of_dk(inputs, ref).mul_(SLACK), _of_each(inputs, ref, 0)


def conversion_of_dq(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return terms_of_dq(inputs, ref).mul_(SLACK), _of_each(inputs, ref, 1)


def _of_each(inputs: Sequence[Argument], ref: torch.Tensor, place: int) -> torch.Tensor:
    """Returns L, [shape of ref], for a factor that is rounded and multiplied with the argument at `place`: SLACK / 2
    times the sum of that argument's |numbers| over all its rows, as each rounded number may lose half of eta."""
    return as_tensor(inputs[place]).abs().sum(dim=-2, keepdim=True).mul(SLACK / 2).expand(ref.shape).contiguous()


def terms_of_dv(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: (pairs := Pairs(*given)).p.mT @ pairs.do.abs())


def terms_of_dk(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: (pairs := Pairs(*given)).scale * pairs.ds.abs().mT @ pairs.q.abs())


def terms_of_dq(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: (pairs := Pairs(*given)).scale * pairs.ds.abs() @ pairs.k.abs())


def held(shapes: Sequence[Sequence[int]]) -> int:
    """Returns how many numbers the bounds keep: twice as many for each score as attention keeps."""
    return 2 * attention.held(shapes)
