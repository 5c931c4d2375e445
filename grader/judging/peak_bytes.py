"""The most bytes that torch holds while it computes something, found on its meta device, where nothing is computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode


class PeakBytes(TorchDispatchMode):
    """`with PeakBytes() as memory:` memory.peak is the most that tensors made in there have held at a time, in bytes.

    Memory that a view shares with another tensor counts once; memory that an operation needs inside a kernel does not
    count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._living: dict[int, tuple[StorageWeakRef, int]] = {}  # by the storage's address: bytes

    def __torch_dispatch__(self, operation: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        self._living = {place: one for place, one in self._living.items() if not one[0].expired()}
        given = {one.untyped_storage()._cdata for one in _tensors([*args, *(kwargs or {}).values()])}
        for tensor in _tensors([result]):
            storage = tensor.untyped_storage()
            if storage._cdata not in given:  # a view, or what is changed in place, is its argument's memory
                self._living[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.peak = max(self.peak, sum(size for _, size in self._living.values()))
        return result


def _tensors(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
