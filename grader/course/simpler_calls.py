"""Finds the simplest call that fails as a drawn call did: all that the failure does not need is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from grader.course.promise import Between, DrawnCall, Kind, OfSequences, StatedPromise


def simpler(promise: StatedPromise, call: DrawnCall) -> Iterator[DrawnCall]:
    """Yields calls that differ from this call by something left out; a call that leaves out more comes first."""
    plain = {name: argument.plain_layout for name, argument in promise.arguments.items()}
    strided = [name for name, layout in call.layouts.items() if layout != plain[name]]
    ordinary = {name: argument.values[0] for name, argument in promise.arguments.items()}
    kinds = {name: kind for name, kind in call.values.items() if not (isinstance(kind, OfSequences) and kind.lengths)}
    unusual = [name for name, kind in kinds.items() if kind is not ordinary[name] and _is_a_kind(ordinary[name])]
    if call.same:
        yield replace(call, same={})
    if call.parts:
        yield replace(call, parts={}, places={})
    else:
        yield from _plainer(call, "layouts", strided, plain.get)
    yield from _plainer(call, "values", unusual, lambda name: ordinary[name])
    if call.constants:
        yield replace(call, constants={})
    if call.dtype != promise.dtypes[0]:
        yield replace(call, dtype=promise.dtypes[0])
    if call.belongs_together:  # a part has to stay within the other one's memory, and one tensor has one shape
        return
    for smaller in (lambda size: 1, lambda size: size // 2, lambda size: size - 1):
        for name, size in call.sizes.items():
            less = promise.sizes[name].fitting(smaller(size))
            if 1 <= less < size:
                yield replace(call, sizes=call.sizes | {name: less})


def _is_a_kind(kind: Kind) -> bool:
    """Returns False for a range, in which no number is simpler than another; True for any other kind."""
    return not isinstance(kind, Between)


def _plainer(call: DrawnCall, what: str, names: list[str], ordinary: Callable) -> Iterator[DrawnCall]:
    """Yields the call with the ordinary layout or values for all of these arguments, then for each of them alone.
    `what`: "layouts" or "values", the field of the call."""
    now = getattr(call, what)
    groups = [names, *([name] for name in names)] if len(names) > 1 else [names] if names else []
    for group in groups:
        yield replace(call, **{what: now | {name: ordinary(name) for name in group}})


def smallest(promise: StatedPromise, call: DrawnCall, fails: Callable[[DrawnCall], bool], tries: int) -> DrawnCall:
    """Returns the simplest call that still fails, as far as at most `tries` further calls tell; the same each time."""
    tried, simplest = {repr(call)}, call
    while tries > 0:
        fresh = (one for one in simpler(promise, simplest) if repr(one) not in tried)
        for candidate in islice(fresh, tries):
            tried.add(repr(candidate))
            tries -= 1
            if fails(candidate):
                simplest = candidate
                break
        else:
            break
    return simplest
