"""Facts about a call that hold whatever its values: shapes, strides and dtypes of tensors, and numbers.

A size may be an array of numbers: then all that follows from it is an array, too, an entry for each number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Size = Any  # int, or an array of int64


class TensorFacts(NamedTuple):
    """Shape and strides of a tensor in elements, and its dtype by name, "float16"; "" if that is not known.

    memory: the argument whose memory it is; "" for a tensor that the file makes. offset: of its first element there, in
    elements.
    """

    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    dtype: str = ""
    memory: str = ""
    offset: Size = 0

    @property
    def elements(self) -> Size:
        return math.prod(self.shape)


def contiguous_facts(shape: tuple[Size, ...], dtype: str = "") -> TensorFacts:
    """Returns the facts of a contiguous tensor."""
    strides = tuple(math.prod(shape[dimension + 1 :]) for dimension in range(len(shape)))
    return TensorFacts(shape, strides, dtype)


@dataclass(frozen=True)
class CallFacts:
    """The arguments of a call by name: tensors, numbers and None. `constants`: numbers of the file that it replaces."""

    arguments: Mapping[str, Any]
    constants: Mapping[str, int]
