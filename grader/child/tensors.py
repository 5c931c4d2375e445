"""What there is to say of a tensor: its dtype by name, its bytes."""

from __future__ import annotations

import numpy as np
import torch


def storage_bytes(tensor: torch.Tensor) -> np.ndarray:
    storage = tensor.untyped_storage()
    if not storage.nbytes():
        return np.empty(0, np.uint8)
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,)).numpy()


def poison(tensor: torch.Tensor) -> None:
    """All bits of the storage: NaN for floats, -1 for integers. Fresh memory is often 0, which would hide mistakes."""
    storage_bytes(tensor)[...] = 0xFF


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
