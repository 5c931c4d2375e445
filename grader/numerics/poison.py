"""Poison: bits that no right kernel makes, in the holes of a view and in outputs that nobody has written yet."""

from __future__ import annotations

import torch

# Fills the holes of a view and outputs not yet written. A NaN for floats, so that reading it spoils the result, with a
# payload that no arithmetic makes.
POISON_BITS = {
    torch.float64: 0x7FF8_DEAD_0000_0BAD,
    torch.float32: 0x7FC0_0BAD,
    torch.float16: 0x7EAD,
    torch.bfloat16: 0x7FAD,
    torch.int64: 0x7FC0_0BAD_7FC0_0BAD,
    torch.int32: 0x7FC0_0BAD,
    torch.int16: 0x7EAD,
    torch.int8: 0x5A,
    torch.uint8: 0x5A,
    torch.bool: 1,
    torch.float8_e4m3fn: 0x7F,
    torch.float8_e5m2: 0x7F,
}
BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # integer dtype by bytes


def poison_(tensor: torch.Tensor) -> torch.Tensor:
    """Fills a contiguous tensor with the poison of its dtype, and returns it."""
    tensor.view(BITS[tensor.element_size()]).fill_(POISON_BITS[tensor.dtype])
    return tensor


def is_poison(tensor: torch.Tensor) -> torch.Tensor:
    """Returns which elements hold the poison bits; [same shape], bool."""
    return tensor.contiguous().view(BITS[tensor.element_size()]) == POISON_BITS[tensor.dtype]
