"""An exercise as its test file states it: the entry, its reference, its results, and their bounds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from grader.numerics.arguments import DataOrNumber
    from grader.numerics.bounds import Bound


TORCH = "torch"  # a bound


class Example:
    """A call small enough to be looked at element by element: data sets, and block sizes that cut them into tiles."""

    def __init__(self, *data: DataOrNumber, **constants: int) -> None:
        self.data, self.constants = data, constants


@dataclass(frozen=True)
class Result:
    """A result with its own dtype or bound; "" stands for the dtype of the run, and for the exercise's bound.

    A result that is an argument has that argument's dtype. Whole numbers are compared exactly.
    """

    name: str
    dtype: str = ""
    bound: Bound = ""


@dataclass(frozen=True)
class Exercise:
    """An exercise, as its test file states it.

    entry: the host function that is graded. reference: its meaning in torch, called with float64 tensors; with float32
    for a quick look at timed results, and with the call's own dtype for copies. Whole numbers come in int64, Python's
    numbers as they are. It returns the results in order, as a tuple where there are several.
    returns: the name of the result, or a tuple of several; where an argument has that name, the entry fills and returns
    this very argument. updates: arguments that are changed in place, whether they are returned or not; as results they
    come after the returned results. No other argument may change. unread: updated arguments that only get other values
    in some places: a call has no need to read them.
    bound: how much rounding a right kernel may show: "bits", "exact", a RoundingModel, or "torch": a multiple of what
    torch's own run of the reference errs, and then the formula has to be right where nothing is rounded.
    time_limit: seconds of a core for one call in the interpreter. example: what `course programs` shows.
    cut: the part of each input that a part of the result depends on, for samples of large calls: "a[m, :], b[:, n] ->
    c[m, n]". Dimensions with a letter are cut, dimensions with a colon are whole; see grader/course/cut.py.
    product: returns (M, K, N) of a matrix product that is as much work as a call, from the shapes of the call's
    arguments; the speed is compared with this product. None: the product of the first two arguments.
    strided_results: whether returned tensors may have any strides; else they have to be contiguous.
    has_kernels: False for an exercise without a kernel, whose entry measures.
    """

    entry: str
    reference: Callable
    bound: Bound
    minutes: int
    returns: str | Result | tuple[str | Result, ...] = "z"
    updates: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float32", "float16")
    presumes: tuple[str, ...] = ()
    time_limit: float = 10.0
    example: Example | None = None
    cut: str = ""
    product: Callable[..., tuple[int, int, int]] | None = None
    strided_results: bool = False
    has_kernels: bool = True

    @classmethod
    def that_measures(cls, entry: str, minutes: int, presumes: tuple[str, ...]) -> Exercise:
        """Returns an exercise without a kernel: its entry measures kernels that the judge simulates."""
        return cls(
            entry, lambda run, device: run.seconds, "exact", minutes, "seconds", presumes=presumes, has_kernels=False
        )

    def __post_init__(self) -> None:
        if not set(self.updates) <= set(self.arguments):
            raise ValueError(f"{self.entry}: updates={self.updates!r}: a tuple of names of arguments was expected.")

    @cached_property
    def arguments(self) -> list[str]:
        """The names of the entry's arguments: the reference has the same."""
        return list(inspect.signature(self.reference).parameters)

    @property
    def returned(self) -> tuple[Result, ...]:
        """The results that the entry returns, in order."""
        several = self.returns if isinstance(self.returns, tuple) else (self.returns,)
        return tuple(result if isinstance(result, Result) else Result(result) for result in several)

    @property
    def results(self) -> tuple[Result, ...]:
        """The results that a call is judged by: the returned results, then the other arguments that it updates."""
        names = [result.name for result in self.returned]
        return (*self.returned, *(Result(name) for name in self.updates if name not in names))

    @cached_property
    def bounds(self) -> dict[str, Bound]:
        """The bound of each result, by the result's name; "torch" is a model here."""
        return {one.name: self._bound(place, one.bound or self.bound) for place, one in enumerate(self.results)}

    def _bound(self, place: int, stated: Bound) -> Bound:
        if stated != TORCH:
            return stated
        from grader.numerics.torchs_rounding import of_torchs_run  # which imports torch

        return of_torchs_run(self.reference, place)

    @property
    def written(self) -> list[str]:
        """The names of the arguments that a call may change."""
        return [result.name for result in self.results if result.name in self.arguments]

    def expected(self, arguments: Sequence) -> list[torch.Tensor]:
        """Returns what the reference computes from these arguments, in the order of `results`."""
        results = self.reference(*arguments)
        return list(results) if isinstance(results, (tuple, list)) else [results]

    def as_product(self, shapes: Sequence[Sequence[int]]) -> tuple[int, int, int]:
        """Returns (M, K, N) of the matrix product that a call is timed against; `shapes`: of its tensor arguments."""
        if self.product is not None:
            return self.product(*shapes)
        (M, K), (_, N) = shapes[:2]
        return M, K, N

    @property
    def result_text(self) -> str:
        """The names of the returned results for a sentence: "z", or "z, mean and rstd"."""
        return in_words([result.name for result in self.returned])

    @property
    def fills_argument(self) -> bool:
        """True where the only result is an argument, which the entry fills and returns."""
        return self.returns in self.arguments


def in_words(names: list[str]) -> str:
    """Returns names as a sentence lists them: "x, y and z"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
