"""What `course check` asks of the promises that an exercise's tests state: a limit for each size, and calls that have
every kind of values in every dtype."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from grader.course.drawn_calls import drawn_calls
from grader.course.folder import Folder, load_test_file
from grader.course.large_calls import large_calls
from grader.course.promise import Between, DrawnCall, FixedNumber, Kind, StatedPromise
from grader.judging.uses import DrawnUse, uses_asked

SEEDS = range(12)  # of runs whose calls are looked at, none of them judged


def complaints(folder: Folder) -> list[str]:
    module = load_test_file(folder)
    promises = [(use.test, use.promise(module.exercise)) for use in uses_asked(module, DrawnUse)]
    return [f"{test}: {told}" for test, promise in promises for told in _complaints(promise, test)]


def _complaints(promise: StatedPromise, test: str) -> Iterator[str]:
    yield from _without_limit(promise)
    yield from _never_drawn(promise, test)


def _without_limit(promise: StatedPromise) -> Iterator[str]:
    for name, size in promise.sizes.items():
        if not size.limit and not size.only:
            yield (
                f"the size {name} has no limit, so nothing tells a learner, or the judge, how large it may be: "
                f"upto({size.most}, limit=...), and the same number in the lesson"
            )


def _never_drawn(promise: StatedPromise, test: str) -> Iterator[str]:
    """Yields what the promise allows for an argument in a dtype, and no call of these seeds has."""
    drawn = [call for seed in SEEDS for call in _calls(promise, seed, test)]
    for name, argument in promise.arguments.items():
        for dtype in promise.dtypes:
            met = {call.values[call.same.get(name, name)] for call in drawn if call.dtype == dtype}
            for kind in argument.values:
                if not any(map(partial(_is_of, kind), met)):
                    told = getattr(kind, "__name__", kind)
                    yield f"{name} may hold {told} in {dtype}, and no call of {len(SEEDS)} seeds does"


def _is_of(kind: Kind, drawn: Kind) -> bool:
    """Returns whether a call with the kind `drawn` has this kind of values: of a range, it has one of the numbers."""
    if isinstance(kind, Between) and isinstance(drawn, FixedNumber) and isinstance(drawn.number, int | float):
        return kind.low <= drawn.number <= kind.high
    return drawn == kind


def _calls(promise: StatedPromise, seed: int, test: str) -> list[DrawnCall]:
    calls = drawn_calls(promise, seed, test)
    return calls + large_calls(promise, seed, test, len(calls))
