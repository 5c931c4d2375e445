"""Facts about a tensor: its dtype by name, its storage's bytes, and whether it has memory."""

from __future__ import annotations

import numpy as np
import torch


def storage_bytes(tensor: torch.Tensor) -> np.ndarray:
    storage = tensor.untyped_storage()
    if not storage.nbytes():
        return np.empty(0, np.uint8)
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,)).numpy()


def has_no_memory(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor stands for a tensor on the GPU. Asks torch itself, not the pretended GPU."""
    with torch._C.DisableTorchFunction():
        return tensor.is_meta


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
