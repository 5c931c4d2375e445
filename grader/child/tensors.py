"""What there is to say of a tensor: its dtype by name, its bytes."""

from __future__ import annotations

import numpy as np
import torch


def storage_bytes(tensor: torch.Tensor) -> np.ndarray:
    storage = tensor.untyped_storage()
    if not storage.nbytes():
        return np.empty(0, np.uint8)
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,)).numpy()


def has_no_memory(tensor: torch.Tensor) -> bool:
    """Whether it stands for a tensor on the GPU: asked of torch itself, past what it pretends to a host function."""
    with torch._C.DisableTorchFunction():
        return tensor.is_meta


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
