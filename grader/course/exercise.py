"""What an exercise is, where its files lie, and which of its marked regions a submission has filled in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from grader.numerics.arguments import Recipe


class Example:
    """A call small enough to be looked at element by element: data sets, and block sizes that cut them into tiles."""

    def __init__(self, *data: Recipe, **constants: int) -> None:
        self.data, self.constants = data, constants


@dataclass(frozen=True)
class Result:
    """A result with a dtype or a bound of its own; "" is the dtype of the run, and the exercise's bound.

    A result that is an argument has that argument's dtype. Whole numbers are compared exactly.
    """

    name: str
    dtype: str = ""
    bound: str = ""


@dataclass(frozen=True)
class Exercise:
    """What a test file states about its exercise.

    entry: the host function that is graded. reference: its meaning in torch, called with float64 tensors; for a quick
    look at timed results with float32, for copies with the call's own dtype. Whole numbers come in int64, numbers of
    Python's as they are. It gives the results in order, a tuple of them where there are several.
    returns: the result's name, or those of several; where an argument has that name, the entry fills and returns this
    very argument. updates: arguments that are changed in place, whether they are returned or not; as results they come
    after those returned. No other argument may change. unread: of these, what only gets other values in some places: a
    call has no need to read it.
    bound: how much rounding a right kernel may show: "bits", "exact", or the name of one of `grader.operations`.
    operation: that of `grader.operations` whose mistakes are named, in every result; "" stands for that of each bound.
    time_limit: seconds of a core for one call in the interpreter. example: what `course programs` shows.
    cut: which part of each input a part of the result is made of, for samples of large calls: "a[m, :], b[:, n] ->
    c[m, n]". Dimensions with a letter are cut, those with a colon are whole.
    product: (M, K, N) of a matrix product that is as much work as a call, from the shapes of the call's arguments: with
    it the speed is compared. None: the product of the first two.
    """

    entry: str
    reference: Callable
    bound: str
    minutes: int
    returns: str | Result | tuple[str | Result, ...] = "z"
    updates: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float32", "float16")
    presumes: tuple[str, ...] = ()
    time_limit: float = 10.0
    example: Example | None = None
    cut: str = ""
    operation: str = ""
    product: Callable[..., tuple[int, int, int]] | None = None

    def __post_init__(self) -> None:
        if not set(self.updates) <= set(self.arguments):
            raise ValueError(f"{self.entry}: updates={self.updates!r}: a tuple of names of arguments was expected.")

    @cached_property
    def arguments(self) -> list[str]:
        """The names of the entry's arguments."""
        return list(inspect.signature(self.reference).parameters)

    @property
    def returned(self) -> tuple[Result, ...]:
        """What the entry returns, in order."""
        several = self.returns if isinstance(self.returns, tuple) else (self.returns,)
        return tuple(one if isinstance(one, Result) else Result(one) for one in several)

    @property
    def results(self) -> tuple[Result, ...]:
        """What a call is judged by: what it returns, then the arguments that it updates."""
        names = [one.name for one in self.returned]
        return (*self.returned, *(Result(name) for name in self.updates if name not in names))

    @property
    def written(self) -> list[str]:
        """The arguments that a call may change."""
        return [one.name for one in self.results if one.name in self.arguments]

    def expected(self, arguments: Sequence) -> list[torch.Tensor]:
        """What the reference makes of these arguments, in the order of `results`."""
        results = self.reference(*arguments)
        return list(results) if isinstance(results, (tuple, list)) else [results]

    def as_product(self, shapes: Sequence[Sequence[int]]) -> tuple[int, int, int]:
        """(M, K, N) of the matrix product that a call is timed against; `shapes`: of its arguments that are tensors."""
        if self.product is not None:
            return self.product(*shapes)
        (M, K), (_, N) = shapes[:2]
        return M, K, N

    @property
    def result_text(self) -> str:
        """ "z", or "z, mean and rstd": what the entry returns, for a sentence."""
        return in_words([one.name for one in self.returned])

    @property
    def fills_argument(self) -> bool:
        """Whether the one result is an argument that is filled and returned."""
        return self.returns in self.arguments


def in_words(names: list[str]) -> str:
    """ "x, y and z" """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
