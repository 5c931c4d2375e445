"""A stated call with fewer rows: for a curve over sizes, and for a GPU with less memory than the call was made for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from grader.course.cut import Cut
from grader.course.exercise import Exercise
from grader.numerics.arguments import DataOrNumber, tensors_of, without_values
from grader.numerics.data_sets import Data
from grader.numerics.paged_draws import DRAWS_OF_PAGES, Step, step, with_sequences

# Memory held while a call is timed, in multiples of the bytes that it moves: four sets of buffers, four more of the
# anchor, and one call's inputs, results and reference in float64 where they are checked.
HELD = 16
SHARE_OF_MEMORY = 0.8
LEAST_BYTES = 32 << 10  # a call that moves less measures little but its launch


def resized(data: tuple[DataOrNumber, ...], size: int) -> tuple[DataOrNumber, ...]:
    """Returns the same call with `size` rows: the first axis of its first argument, and each axis as long, get this
    length, so that a square stays a square. Limits of indices shrink too, so that they point into what has shrunk;
    pages that have as many rows in all become fewer. Raises TypeError where the first argument is no tensor."""
    most = _rows(data)
    draws: dict[str, Callable[..., Step]] = {"below": _indices_below, "slots": _slots_below}
    draws |= {name: partial(_of_sequences, name) for name in DRAWS_OF_PAGES}

    def smaller(data: Data) -> Data:
        steps = (
            draws[name](size, most, *numbers) if name in draws else step(name, *numbers)
            for name, *numbers in data.steps
        )
        return replace(data, shape=shape_with(data, size, most), steps=tuple(steps))

    return tuple(smaller(stated) if isinstance(stated, Data) else stated for stated in data)


def _rows(data: tuple[DataOrNumber, ...]) -> int:
    """Returns the size of the first argument's first axis. Raises TypeError where that argument is no tensor."""
    return first_tensor(data).shape[0]


def first_tensor(data: tuple[DataOrNumber, ...]) -> Data:
    """Returns the data set of the first argument. Raises TypeError where that argument is no tensor."""
    first = data[0]
    if not isinstance(first, Data):
        raise TypeError(f"a call's first argument has to be a tensor, and it is {first!r}")
    return first


def _indices_below(size: int, most: int, below: int, *least: int) -> Step:
    """Returns the draw of indices into an axis that has shrunk from `most` to `size`."""
    fewer = [number * size // most for number in least]
    return step("below", max(below * size // most, *(number + 1 for number in (0, *fewer))), *fewer)


def _slots_below(size: int, most: int, below: int, nowhere: float) -> Step:
    return ("slots", max(1, below * size // most), nowhere)


def _of_sequences(name: str, size: int, most: int, *numbers: float) -> Step:
    return with_sequences(most, size, step(name, *numbers))


def shape_with(data: Data, size: int, most: int) -> tuple[int, ...]:
    pages, *page = data.shape or (0,)
    if len(page) > 1 and pages < most == pages * page[0]:
        return -(-size // page[0]), *page
    return tuple(size if axis == most else axis for axis in data.shape)


def sizes_below(exercise: Exercise, data: tuple[DataOrNumber, ...], dtype: torch.dtype) -> list[int]:
    """Returns powers of two for the first axis, below the size that the call has, and then that size. Powers with which
    the call moves less than LEAST_BYTES are left out."""
    most = _rows(data)
    powers = (1 << power for power in range(most.bit_length()))
    return [
        size for size in powers if size < most and _bytes_moved(exercise, resized(data, size), dtype) >= LEAST_BYTES
    ] + [most]


def fitting(
    exercise: Exercise, data: tuple[DataOrNumber, ...], dtype: torch.dtype, memory_bytes: int
) -> tuple[DataOrNumber, ...]:
    """Returns the call as it is stated, its rows halved until it can be timed in this much memory."""
    size = _rows(data)
    while size > 1 and HELD * _bytes_moved(exercise, resized(data, size), dtype) > SHARE_OF_MEMORY * memory_bytes:
        size = (size + 1) // 2
    return resized(data, size)


def _bytes_moved(exercise: Exercise, data: tuple[DataOrNumber, ...], dtype: torch.dtype) -> int:
    """Returns the bytes of the tensor arguments, and of the results whose shape the exercise's cut tells."""
    inputs = without_values(data, dtype)
    tensors, cut = dict(tensors_of(exercise.arguments, inputs)), Cut.of(exercise.cut)
    made = [result.name for result in exercise.results if result.name in cut.results and result.name not in tensors]
    results = sum(math.prod(cut.shape(name, tensors)) for name in made) * dtype.itemsize
    return results + sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
