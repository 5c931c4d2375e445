"""The result of an entry, as data: tensors without memory are described by their views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from grader.child.tensors import has_no_memory
from grader.wire.frames import JsonObject

MOST_ITEMS, MOST_DEPTH = 64, 4
EARLIER = "the result of an earlier call"


class Description:
    """Describes results of one call.

    `view_of` gives a tensor's view of a buffer of the call, None if it lies in none. `arguments`: the call's tensors,
    by name. `earlier`: results of the calls before it.
    """

    def __init__(
        self,
        view_of: Callable[[torch.Tensor], JsonObject | None],
        arguments: dict[str, torch.Tensor],
        earlier: Iterable[Any],
    ):
        self.view_of, self.arguments = view_of, arguments
        self._earlier = {_storage(tensor) for result in earlier for tensor in tensors_in(result)}

    def of(self, result: Any, depth: int = 0) -> JsonObject:
        described: dict[str, Any] = {
            "type": type(result).__name__, "device": "", "dtype": "", "same_as": "", "shares_with": "",
        }  # fmt: skip
        if isinstance(result, torch.Tensor):
            return described | self._of_tensor(result)
        if isinstance(result, (list, tuple)) and depth < MOST_DEPTH:
            described["items"] = [self.of(item, depth + 1) for item in result[:MOST_ITEMS]]
        return described

    def _of_tensor(self, tensor: torch.Tensor) -> JsonObject:
        device = "cuda" if has_no_memory(tensor) else tensor.device.type
        described = {"device": device, "dtype": str(tensor.dtype).removeprefix("torch.")}
        if type(tensor) is not torch.Tensor or tensor.layout != torch.strided:
            return described
        if _storage(tensor) in self._earlier:
            described["shares_with"] = EARLIER
        for name, argument in self.arguments.items():
            if _storage(argument) == _storage(tensor):
                described["shares_with"] = name
                described["same_as"] = name if _place(argument) == _place(tensor) else ""
        return described | {"view": self.view_of(tensor)}


def tensors_in(result: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    if isinstance(result, torch.Tensor) and result.layout == torch.strided:
        yield result
    elif isinstance(result, (list, tuple)) and depth < MOST_DEPTH:
        for item in result[:MOST_ITEMS]:
            yield from tensors_in(item, depth + 1)


def _storage(tensor: torch.Tensor) -> int:
    place: int = tensor.untyped_storage()._cdata
    return place


def _place(tensor: torch.Tensor) -> tuple[torch.dtype, int, torch.Size, tuple[int, ...]]:
    return tensor.dtype, int(tensor.storage_offset()), tensor.shape, tensor.stride()
