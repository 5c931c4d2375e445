"""Decoding against a cache in pages: q [B, H, D], caches [P, page, HK, D], a table [B, T], lengths [B] -> o [B, H, D].

Key n of sequence b is row n % page of page table[b, n // page]. Each sequence is attention of a few queries, the heads
of a group, to its keys: so its bound is attention's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.operations import attention


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S as attention does: to join splits is to join tiles, once more."""
    return _by_sequences(inputs, ref, attention.rounding)


def conversion(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L as attention does: p is rounded to the dtype of v."""
    rounded = _by_sequences(inputs, ref, lambda *of: attention.conversion(*of)[0])
    return rounded, _by_sequences(inputs, ref, lambda *of: attention.conversion(*of)[1])


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of p |v|, [B, H, D]."""
    return _by_sequences(inputs, ref, attention.terms)


def _by_sequences(inputs: Sequence[Argument], ref: torch.Tensor, of_heads: attention.Heads) -> torch.Tensor:
    """Returns what `of_heads` makes of each sequence as attention of one batch, [B, H, D]; 0 where it has no key."""
    found = torch.zeros_like(ref)
    for b, (q, k, v) in enumerate(_sequences(inputs)):
        if k.shape[1]:
            of = of_heads([q[None], k[None], v[None]], ref[b].view(1, *q.shape))
            found[b] = of.reshape(found[b].shape)
    return found


def _sequences(inputs: Sequence[Argument]) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Yields q [HK, G, D], k and v [HK, N, D] of each sequence."""
    q, k_cache, v_cache, table, lengths = as_tensors(inputs)
    page, HK = k_cache.shape[1:3]
    for b, length in enumerate(lengths.tolist()):
        at_most = table.shape[1] * page  # a number that is no length may be anything
        n = torch.arange(min(max(length, 0), at_most), device=table.device)
        at = table[b, n // page], n % page
        yield q[b].unflatten(0, (HK, -1)), k_cache[at].transpose(0, 1), v_cache[at].transpose(0, 1)
