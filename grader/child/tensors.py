"""Tensors as the frames carry them: a view of a storage whose bytes lie in the blob."""

from __future__ import annotations

import numpy as np
import torch

from grader.child.geometry import span_of
from grader.protocol import DTYPE_BYTES, TensorSpec

MOST_ELEMENTS = 1 << 26
WASTE = 16  # a storage this many times larger than the view on it is not sent whole


def from_spec(spec: TensorSpec, blob: bytes) -> torch.Tensor:
    """A tensor on a storage of its own, which holds at least one byte so that its address is its own too."""
    storage = torch.empty(max(spec.size, 1), dtype=torch.uint8)
    if spec.size:
        storage.numpy()[: spec.size] = np.frombuffer(blob, np.uint8, spec.size, spec.start)
    tensor = torch.empty(0, dtype=getattr(torch, spec.dtype))
    return tensor.set_(storage.untyped_storage(), spec.offset, spec.shape, spec.strides)


def changed(tensor: torch.Tensor, spec: TensorSpec, blob: bytes) -> bool:
    """Does the storage hold other bytes than it was made with?"""
    now = storage_bytes(tensor)[: spec.size]
    return not np.array_equal(now, np.frombuffer(blob, np.uint8, spec.size, spec.start))


def storage_bytes(tensor: torch.Tensor) -> np.ndarray:
    storage = tensor.untyped_storage()
    if not storage.nbytes():
        return np.empty(0, np.uint8)
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,)).numpy()


def poison(tensor: torch.Tensor) -> None:
    """All bits of the storage: NaN for floats, -1 for integers. Fresh memory is often 0, which would hide mistakes."""
    storage_bytes(tensor)[...] = 0xFF


def is_plain(tensor: object) -> bool:
    """Can it be sent: an ordinary tensor in CPU memory, of a dtype that the frames know?"""
    if type(tensor) is not torch.Tensor or tensor.device.type != "cpu" or tensor.layout != torch.strided:
        return False
    fits = tensor.dim() <= 8 and tensor.numel() <= MOST_ELEMENTS and all(s >= 0 for s in tensor.stride())
    return fits and dtype_name(tensor) in DTYPE_BYTES


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def to_spec(name: str, tensor: torch.Tensor, start: int) -> tuple[TensorSpec, bytes]:
    """The tensor's description and the bytes that belong at `start` of the blob."""
    data, offset = storage_bytes(tensor), tensor.storage_offset()
    item, shape, strides = tensor.element_size(), tuple(tensor.shape), tuple(tensor.stride())
    span = span_of(shape, strides)
    if data.size > WASTE * span * item:
        data, offset = data[offset * item : (offset + span) * item], 0
    return TensorSpec(name, dtype_name(tensor), shape, strides, offset, start, data.size), data.tobytes()
