"""The arguments of an entry: tensors, and numbers of Python's among them; None for an option that is not taken."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import torch

from grader.numerics.data_sets import Data

Number = bool | int | float | None
Argument = torch.Tensor | Number
Recipe = Data | Number  # what a test file states for an argument


def made(by: Callable[..., torch.Tensor], data: Data) -> Data:
    """A data set: what `by` makes of other arguments, as `lambda q, k: q @ k.mT`. It gets those before this one by
    their names, in float64, and by its own name what `data` draws.

    Where a call is too large for the interpreter, what `data` draws is taken as it is.
    """
    return replace(data, made_by=by, about=f"from {', '.join(_names(by))}")


def made_of(by: Callable[..., torch.Tensor], data: Data, run: torch.dtype, known: dict[str, Argument]) -> torch.Tensor:
    """The argument that `by` makes of others; `known`: by name those before it, and what `data` itself draws."""
    return data.holding(by(*exact(known[name] for name in _names(by))), run)


def _names(by: Callable) -> list[str]:
    return list(inspect.signature(by).parameters)


def exact(arguments: Iterable[Argument]) -> list[Argument]:
    """As a reference gets them: floats in float64, whole numbers in int64, bools and Python's numbers as they are."""
    return [in_precision(one, torch.float64) for one in arguments]


def in_precision(argument: Argument, precision: torch.dtype) -> Argument:
    """A tensor of floats in this dtype, one of whole numbers in int64; bools and Python's numbers as they are."""
    if not isinstance(argument, torch.Tensor) or argument.dtype == torch.bool:
        return argument
    return argument.to(precision if argument.is_floating_point() else torch.int64)


def without_values(recipes: Iterable[Recipe], run: torch.dtype) -> list[Argument]:
    """As an entry gets them in a run with this dtype, on torch's device without memory."""
    return [one.shape_on("meta", run) if isinstance(one, Data) else one for one in recipes]


def numbers_alone(recipes: Iterable[Recipe]) -> list[Argument]:
    """The arguments of a call as far as they are numbers; None where a tensor belongs."""
    return [None if isinstance(one, Data) else one for one in recipes]


def tensors_of(names: Sequence[str], arguments: Sequence[Argument]) -> Iterator[tuple[str, torch.Tensor]]:
    """Those of the arguments that are tensors, by name."""
    return ((name, one) for name, one in zip(names, arguments, strict=True) if isinstance(one, torch.Tensor))


def as_tensors(arguments: Sequence[Argument]) -> tuple[torch.Tensor, ...]:
    """The arguments, all of them tensors. Raises TypeError for a number of Python's."""
    return tuple(map(as_tensor, arguments))


def as_tensor(argument: Argument) -> torch.Tensor:
    """The argument, a tensor. Raises TypeError for a number of Python's."""
    if not isinstance(argument, torch.Tensor):
        raise TypeError(f"a tensor was expected, and the argument is {argument!r}")
    return argument


def as_number(argument: Argument) -> float:
    """The argument, a number of Python's. Raises TypeError for a tensor and for None."""
    if not isinstance(argument, int | float):
        raise TypeError(f"a number was expected, and the argument is {argument!r}")
    return argument


def to_json(recipe: Recipe) -> dict | Number:
    return recipe.to_json() if isinstance(recipe, Data) else recipe


def from_json(data: dict | Number) -> Recipe:
    return Data.from_json(data) if isinstance(data, dict) else data


def numbers_of(arguments: Sequence[Argument]) -> list[list]:
    """[place among the arguments, value] of each that is a number of Python's."""
    return [[place, one] for place, one in enumerate(arguments) if not isinstance(one, torch.Tensor)]
