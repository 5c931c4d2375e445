"""The arguments of an entry: tensors, Python numbers, and None for an option that is not taken."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import torch

from grader.numerics.data_sets import Data

Number = bool | int | float | None
Argument = torch.Tensor | Number
DataOrNumber = Data | Number  # what a test file states for an argument


def made(by: Callable[..., torch.Tensor], data: Data) -> Data:
    """Returns a data set of what `by` computes from other arguments, as `lambda q, k: q @ k.mT`.

    `by` gets the arguments before this one by their names, in float64, and what `data` draws by this argument's name.
    In a call that is too large for the interpreter, what `data` draws is taken as it is.
    """
    return replace(data, made_by=by, about=f"from {', '.join(_names(by))}")


def made_of(by: Callable[..., torch.Tensor], data: Data, run: torch.dtype, known: dict[str, Argument]) -> torch.Tensor:
    """Returns the tensor that `by` computes from other arguments, in the layout of `data`. `known`: by name, the
    arguments before it and what `data` itself draws. `run`: the dtype of the run."""
    return data.holding(by(*exact(known[name] for name in _names(by))), run)


def _names(by: Callable) -> list[str]:
    return list(inspect.signature(by).parameters)


def exact(arguments: Iterable[Argument]) -> list[Argument]:
    """Returns arguments as a reference gets them: floats in float64, whole numbers in int64, bools and Python's numbers
    as they are."""
    return [in_precision(argument, torch.float64) for argument in arguments]


def in_precision(argument: Argument, precision: torch.dtype) -> Argument:
    """Returns a tensor of floats in this dtype, of whole numbers in int64; bools and Python's numbers as they are."""
    if not isinstance(argument, torch.Tensor) or argument.dtype == torch.bool:
        return argument
    return argument.to(precision if argument.is_floating_point() else torch.int64)


def without_values(all_stated: Iterable[DataOrNumber], run: torch.dtype) -> list[Argument]:
    """Returns arguments as an entry gets them in a run with this dtype, on torch's meta device, which has no memory."""
    return [stated.shape_on("meta", run) if isinstance(stated, Data) else stated for stated in all_stated]


def numbers_alone(all_stated: Iterable[DataOrNumber]) -> list[Argument]:
    """Returns the arguments of a call with None in the place of each tensor: its numbers alone."""
    return [None if isinstance(stated, Data) else stated for stated in all_stated]


def tensors_of(names: Sequence[str], arguments: Sequence[Argument]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields the name and the argument for each argument that is a tensor."""
    return ((name, one) for name, one in zip(names, arguments, strict=True) if isinstance(one, torch.Tensor))


def as_tensors(arguments: Sequence[Argument]) -> tuple[torch.Tensor, ...]:
    """Returns the arguments, all of which have to be tensors. Raises TypeError for a Python number and for None."""
    return tuple(map(as_tensor, arguments))


def as_tensor(argument: Argument) -> torch.Tensor:
    """Returns the argument, which has to be a tensor. Raises TypeError for a Python number and for None."""
    if not isinstance(argument, torch.Tensor):
        raise TypeError(f"a tensor was expected, and the argument is {argument!r}")
    return argument


def as_number(argument: Argument) -> float:
    """Returns the argument, which has to be a Python number. Raises TypeError for a tensor and for None."""
    if not isinstance(argument, int | float):
        raise TypeError(f"a number was expected, and the argument is {argument!r}")
    return argument


def to_json(stated: DataOrNumber) -> dict | Number:
    return stated.to_json() if isinstance(stated, Data) else stated


def from_json(data: dict | Number) -> DataOrNumber:
    return Data.from_json(data) if isinstance(data, dict) else data


def numbers_of(arguments: Sequence[Argument]) -> list[list]:
    """Returns [place among the arguments, value] for each argument that is no tensor."""
    return [[place, argument] for place, argument in enumerate(arguments) if not isinstance(argument, torch.Tensor)]
