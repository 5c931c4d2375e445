"""Calls drawn toward branches of a file that no other call of a run comes to, and within branches that ask for layouts.

A call is changed step by step, in a size, a layout, the dtype, a number or the blocks, as long as more conditions of
the branch hold. A size is tried at all its values at once, so that a condition such as `N % 1009 == 77` is met, too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np

from grader.course import drawn_layouts
from grader.course.drawn_calls import MOST_LANES, carried_out, lanes_of_each
from grader.course.promise import Between, DrawnCall, FixedNumber, Promised, StatedPromise, length
from grader.numerics.call_facts import CallFacts, TensorFacts
from grader.numerics.data_sets import seed_for
from grader.numerics.layouts import CONTIGUOUS, Layout

MOST_CALLS = 3  # toward branches, in a run
MOST_WITHIN = 6  # calls of a run within branches that ask for layouts
EACH = 2  # of them, within one branch
MOST_CHANGED = 3  # calls that come to a branch, until it counts as one that asks for no layout; most branches are such
MOST_LAYOUTS = 12  # that are tried of an argument, for a call within a branch
MOST_SEARCHED = 8  # branches for which a call is looked for; the seed takes them out of those that are as far away
# Calls that are tried for a branch, and calls that are changed. Of 200 searches, 25 seeds for each condition of
# test_calls_toward.py, 300 and 12 find a call in all, 100 and 6 in 184, in the same time.
MOST_TRIED, MOST_BEGUN = 300, 12
MOST_CHANGES = 6  # of a call
MOST_ELEMENTS = 1 << 22  # of a call's sizes, multiplied, if any of them is larger than usual
AT_ONCE = 1 << 12  # calls with other sizes, or another number, that are tried at once
FIRST = 16  # sizes that meet a condition: from the smallest of them the seed takes one
NO_FACTS = CallFacts({}, {})  # a condition that is false even where nothing is known of the call is never true


class FilePart(Protocol):
    """A part of a file that only some calls come to."""

    def missing(self, facts: CallFacts) -> Any:
        """Returns the number of conditions that do not hold; an array for a call whose sizes are arrays. May raise
        OutOfBudget."""


def calls_toward(
    promise: StatedPromise, seed: int, test: str, calls: Sequence[DrawnCall], branches: Sequence[FilePart]
) -> list[DrawnCall]:
    """Returns calls that come to branches to which none of `calls` comes; their numbers follow those of `calls`.

    A branch that the promise leaves out, or that a few changes do not lead to, gets no call. Raises OutOfBudget where
    the file's conditions take long to read.
    """
    begun = [
        call
        for call in calls
        if not call.belongs_together and all(call.sizes.values()) and not _is_one_element(promise, call)
    ]
    known = [_facts(promise, call) for call in begun]
    closest = {branch: min((int(branch.missing(facts)) for facts in known), default=0) for branch in branches}
    numbers, found = random.Random(seed_for(seed, test, "toward")), list[DrawnCall]()
    # A call to a branch within others comes to these others, too: branches that miss the most conditions come first.
    far = [branch for branch in branches if closest[branch] and not branch.missing(NO_FACTS)]
    far = sorted(numbers.sample(far, len(far)), key=lambda one: -closest[one])[:MOST_SEARCHED]
    for number in range(MOST_CALLS):
        for branch in list(far):
            if number or all(branch.missing(_facts(promise, call)) for call in found):
                call = _Search(promise, branch, numbers).from_any_of(begun, ordinary=not number)
                if call is None:
                    far.remove(branch)
                else:
                    found.append(replace(call, number=len(calls) + len(found) + 1))
            if len(found) == MOST_CALLS:
                return found
    return found


def calls_within(
    promise: StatedPromise, seed: int, test: str, calls: Sequence[DrawnCall], branches: Sequence[FilePart]
) -> list[DrawnCall]:
    """Returns calls that come to branches whose conditions ask for layouts, with all layouts changed that may be; their
    numbers follow those of `calls`.

    Of the calls that come to such a branch, as where one stride is that of a contiguous matrix, most have all other
    strides as usual, too: they do not show what the branch forgets. Raises OutOfBudget.
    """
    numbers, found = random.Random(seed_for(seed, test, "within")), list[DrawnCall]()
    begun = [call for call in calls if not call.belongs_together]
    begun = sorted(numbers.sample(begun, len(begun)), key=lambda call: min(call.sizes.values(), default=2) < 2)
    searches = [_Search(promise, branch, numbers) for branch in numbers.sample(branches, len(branches))]
    for search in searches:
        # A tensor of one row may have no other layout: then the next call that comes to the branch is changed.
        there = islice((call for call in begun if not search.missing(call)), MOST_CHANGED)
        found += next(filter(None, map(search.with_other_layouts, there)), [])
        if len(found) >= MOST_WITHIN:
            break
    return [replace(call, number=number) for number, call in enumerate(found[:MOST_WITHIN], len(calls) + 1)]


def _is_one_element(promise: StatedPromise, call: DrawnCall) -> bool:
    """Returns whether an argument is one element, seen at every index: many a mistake changes no result of these."""
    ranks = {name: len(argument.shape) for name, argument in promise.arguments.items() if argument.shape}
    return any(len(call.layouts[name].repeated) == rank for name, rank in ranks.items() if name in call.layouts)


def _facts(promise: StatedPromise, call: DrawnCall, **instead: Any) -> CallFacts:
    arguments = {name: _argument(promise, call, name) for name in promise.arguments}
    return CallFacts(arguments | instead, call.constants)


def _argument(promise: StatedPromise, call: DrawnCall, name: str) -> Any:
    promised, origin = promise.arguments[name], call.same.get(name, name)
    kind = call.values[origin]
    if isinstance(kind, FixedNumber):
        return call.sizes[kind.number] if isinstance(kind.number, str) else kind.number
    shape = tuple(length(dimension, call.sizes) for dimension in promised.shape)
    layout, dtype = call.layouts[origin], promised.dtype or call.dtype
    offset = layout.offset + call.places.get(origin, 0)
    return TensorFacts(shape, layout.strides(shape)[0], dtype, call.parts.get(origin, origin), offset)


@dataclass
class _Search:
    """Looks for a call that comes to a branch."""

    promise: StatedPromise
    branch: FilePart
    numbers: random.Random
    tried: int = 0  # calls

    def from_any_of(self, calls: Sequence[DrawnCall], ordinary: bool) -> DrawnCall | None:
        """Returns a call made of one of `calls`, of those that miss the fewest conditions first; None if none is.

        ordinary: whether its tensors have ordinary values.
        """
        shuffled = self.numbers.sample(calls, len(calls))
        begun = sorted(shuffled, key=lambda call: (self.missing(call), 1 in call.sizes.values()))[:MOST_BEGUN]
        self.tried = 0
        found = next(filter(None, map(self._changed, chain(begun, map(self._with_small_sizes, begun)))), None)
        if found is None:
            return None
        kinds = {name: one.values[0] for name, one in self.promise.arguments.items() if one.shape and ordinary}
        found = self._with_more_elements(replace(found, values=found.values | kinds))
        return self._with_larger_sizes(found) if ordinary else found

    def with_other_layouts(self, call: DrawnCall) -> list[DrawnCall]:
        """Returns calls that come to the branch as this call does, with other layouts of all arguments that may have
        them; none where every layout leads there: the branch asks for none."""
        kinds = {name: argument.values[0] for name, argument in self.promise.arguments.items() if argument.shape}
        call, asks = replace(call, values=call.values | kinds), False
        calls = []
        for _ in range(EACH):
            varied = call
            for name in self._in_any_order(call.layouts):
                for layout in self._layouts_of(name):
                    changed = replace(varied, layouts=varied.layouts | {name: layout})
                    if not self.missing(changed):
                        varied = changed
                        break
                    asks = True
            if varied is call:
                varied = self._with_one_layout_for_all(call) or call
            calls += [varied] * (varied is not call)
        return calls if asks else []

    def _layouts_of(self, name: str) -> Iterator[Layout]:
        argument = self.promise.arguments[name]
        for family in self.numbers.sample(argument.families, min(MOST_LAYOUTS, len(argument.families))):
            if family is not drawn_layouts.contiguous:
                yield family(self.numbers, len(argument.shape))

    def _with_one_layout_for_all(self, call: DrawnCall) -> DrawnCall | None:
        """Returns the call with layouts of one family and the same numbers, as a branch needs where strides are equal;
        None if there is none."""
        ranks = {name: len(argument.shape) for name, argument in self.promise.arguments.items() if argument.shape}
        families = {family for name in ranks for family in self.promise.arguments[name].families}
        for family in self.numbers.sample(sorted(families, key=lambda family: family.__name__), len(families)):
            state = self.numbers.getrandbits(30)
            alike = {
                name: family(random.Random(state), rank)
                for name, rank in ranks.items()
                if family in self.promise.arguments[name].families
            }
            changed = replace(call, layouts=call.layouts | alike)
            if family is not drawn_layouts.contiguous and not self.missing(changed):
                return changed
        return None

    def _with_more_elements(self, call: DrawnCall) -> DrawnCall:
        """Returns the call with layouts that show no element twice, where the branch does not ask for such layouts: in
        equal elements a mistake is easily missed."""
        for name, layout in call.layouts.items():
            families = self.promise.arguments[name].families if layout.shares_elements else ()
            for family in families:  # layouts in which each element has its own place come first
                other = family(self.numbers, len(self.promise.arguments[name].shape))
                changed = replace(call, layouts=call.layouts | {name: other})
                if not self.missing(changed):
                    call = changed
                    break
        return call

    def _with_larger_sizes(self, call: DrawnCall) -> DrawnCall:
        """Returns the call with sizes of several blocks, where the branch lets them grow: it may be wrong in these
        alone, as a group of tiles that is not full."""
        call = self._with_small_sizes(call)
        for name, one in sorted(self.promise.sizes.items(), key=lambda item: (item[1].only, -item[1].most)):
            most = self.numbers.randint(one.most // 2 + 1, one.most)
            for size in (one.fitting(most), one.fitting(most // 2), one.fitting(most // 4)):
                changed = replace(call, sizes=call.sizes | {name: size})
                is_larger = size > call.sizes[name] and _is_small(self.promise, changed.sizes, call.constants)
                if is_larger and not self.missing(changed):
                    call = changed
                    break
        return call

    def _with_small_sizes(self, call: DrawnCall) -> DrawnCall:
        """Returns the call with sizes of 1 wherever no more conditions are missing then: others have room to grow."""
        missing = self.missing(call)
        for name in self._in_any_order(call.sizes):
            changed = replace(call, sizes=call.sizes | {name: self.promise.sizes[name].fitting(1)})
            if self.missing(changed) <= missing:
                call = changed
        return call

    def missing(self, call: DrawnCall) -> int:
        self.tried += 1
        return int(self.branch.missing(_facts(self.promise, call)))

    def _changed(self, call: DrawnCall) -> DrawnCall | None:
        missing = self.missing(call)
        for _ in range(MOST_CHANGES):
            better = next((change for change in self._changes(call) if self.missing(change) < missing), None)
            if better is None or self.tried > MOST_TRIED:
                return None
            call, missing = better, self.missing(better)
            if not missing:
                return call
        return None

    def _changes(self, call: DrawnCall) -> Iterator[DrawnCall]:
        """Yields calls that differ in one thing; of all values of a size those that miss the fewest conditions."""
        for name in self._in_any_order(call.sizes) if self.tried <= MOST_TRIED else ():
            yield from self._with_other_sizes(call, self._values_of(name, call))
        for name in self._in_any_order(call.layouts):
            for family in self.promise.arguments[name].families:
                layout = family(self.numbers, len(self.promise.arguments[name].shape))
                yield replace(call, layouts=call.layouts | {name: layout})
        yield from (replace(call, dtype=dtype) for dtype in self.promise.dtypes)
        for constants in ({}, *self.promise.blocks):
            if _is_small(self.promise, call.sizes, constants):
                yield replace(call, constants=constants)
        for name, promised in self.promise.arguments.items():
            for number in self._numbers_of(name, promised, call):
                yield replace(call, values=call.values | {name: FixedNumber(number)})
        yield from self._with_other_addresses(call)
        if len(call.sizes) > 1:
            yield from self._with_other_sizes(call, self._all_sizes(call))

    def _with_other_addresses(self, call: DrawnCall) -> Iterator[DrawnCall]:
        """Yields the call in each dtype with a tensor that begins some elements into its memory: for each tensor, where
        the fewest conditions are missing."""
        offsets = np.arange(1, 16)
        for name in self._in_any_order(call.layouts):
            if drawn_layouts.begins_later not in self.promise.arguments[name].families:
                continue
            for dtype in self.promise.dtypes:
                changed = replace(call, dtype=dtype, layouts=call.layouts | {name: CONTIGUOUS})
                argument = _argument(self.promise, changed, name)
                if isinstance(argument, TensorFacts):
                    moved = {name: argument._replace(offset=offsets)}
                    missing = self.branch.missing(_facts(self.promise, changed, **moved))
                    layout = CONTIGUOUS.at(int(offsets[np.broadcast_to(missing, offsets.shape).argmin()]))
                    yield replace(changed, layouts=call.layouts | {name: layout})

    def _in_any_order(self, names: dict[str, Any]) -> list[str]:
        return self.numbers.sample(list(names), len(names))

    def _values_of(self, name: str, call: DrawnCall) -> dict[str, Any]:
        size = self.promise.sizes[name]
        values = size.only or range(max(1, size.least), carried_out(size) + 1)
        return call.sizes | {name: np.array(values, np.int64)}

    def _all_sizes(self, call: DrawnCall) -> dict[str, Any]:
        """Returns many values of all sizes; each power of two is as likely as any other. A third are 1, or the least
        that there is, so that others may be large."""
        found, draw = {}, np.random.default_rng(self.numbers.getrandbits(32))
        for name, one in self.promise.sizes.items():
            least, most = math.log(max(1, one.least)), math.log(carried_out(one) + 1)
            drawn = np.exp(draw.uniform(least, most, AT_ONCE)).astype(int)
            sizes = draw.choice(one.only, AT_ONCE) if one.only else drawn
            found[name] = np.where(draw.random(AT_ONCE) < 1 / 3, one.fitting(1), sizes)
        return found

    def _with_other_sizes(self, call: DrawnCall, sizes: dict[str, Any]) -> Iterator[DrawnCall]:
        """Yields a call with sizes out of these arrays, for which the fewest conditions are missing."""
        for constants in _first_and(call.constants, self.promise.blocks):
            small = _is_small(self.promise, sizes, constants)
            missing = self.branch.missing(_facts(self.promise, replace(call, sizes=sizes, constants=constants)))
            missing = np.broadcast_to(missing, np.shape(small))
            is_long = np.all([np.broadcast_to(size, small.shape) > 1 for size in sizes.values()], axis=0)
            if small.any():
                (places,) = np.nonzero(small & (missing == missing[small].min()))
                places = places[is_long[places]] if is_long[places].any() else places
                place = self.numbers.choice(places[:FIRST].tolist())
                chosen = {name: int(np.broadcast_to(size, small.shape)[place]) for name, size in sizes.items()}
                yield replace(call, sizes=chosen, constants=constants)

    def _numbers_of(self, name: str, promised: Promised, call: DrawnCall) -> Iterator[Any]:
        """Yields numbers that an argument may be, if it is one; of a range of many those that miss the fewest
        conditions."""
        for kind in promised.values:
            if isinstance(kind, FixedNumber):
                yield kind.number
            elif isinstance(kind, Between):
                several = np.sort([kind.given(self.numbers).number for _ in range(AT_ONCE // 8)])
                if several.dtype.kind == "i":  # a whole number is asked for by its multiples, as a size is
                    several = np.union1d(several, np.arange(kind.low, min(kind.low + AT_ONCE, kind.high) + 1))
                missing = self.branch.missing(_facts(self.promise, call, **{name: several}))
                (places,) = np.nonzero(np.broadcast_to(missing, several.shape) == np.min(missing))
                yield several[self.numbers.choice(places[:FIRST].tolist())].item()


def _first_and(constants: dict[str, int], blocks: Sequence[dict[str, int]]) -> list[dict[str, int]]:
    return [constants, *(setting for setting in ({}, *blocks) if setting != constants)]


def _is_small(promise: StatedPromise, sizes: dict[str, Any], constants: dict[str, int]) -> Any:
    """Returns whether a call of these sizes may be carried out in full; a bool for each entry of the arrays."""
    most = reduce(np.maximum, lanes_of_each(promise, sizes, constants))
    usual = np.array(True)
    for name, one in promise.sizes.items():
        usual = usual & (sizes[name] <= one.most)
    return (usual | (math.prod(sizes.values()) <= MOST_ELEMENTS)) & (most <= MOST_LANES)
