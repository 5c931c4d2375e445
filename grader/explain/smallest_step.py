"""The smallest step from a call that is right to one that is wrong: what nothing else explains begins there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from grader.course.trial import Trial
from grader.numerics.data_sets import Data
from grader.sentences import Said, Sentence


class SmallestStep(Sentence):
    STEP = "Right for {right}, wrong for {wrong}."


def smallest_step(right: Sequence[Trial], wrong: Sequence[Trial]) -> Said | None:
    """Returns the sentence about two calls that differ in one respect alone: a size, the layouts, or the values; None
    where no two calls do."""
    told_wrong = {other.data_label for other in wrong}  # a right call in the same words would be called wrong, too
    named = [one for one in right if one.data_label not in told_wrong]
    pairs = ((_distance(one, other), one, other) for one, other in product(named, wrong))
    near = [(distance, one, other) for distance, one, other in pairs if distance is not None]
    if not near:
        return None
    _, one, other = min(near, key=lambda pair: pair[0])
    return SmallestStep.STEP(right=one.data_label, wrong=other.data_label)


def _memory_of(data: Data) -> tuple[str, str, int]:
    return data.same_as, data.part_of, data.part_at


def _distance(one: Trial, other: Trial) -> tuple[int, int] | None:
    """Returns how far two calls lie apart, a change of sizes first; None where they differ in several respects, or a
    learner would read no difference."""
    alike = (one.dtype, one.constants, len(one.data)) == (other.dtype, other.constants, len(other.data))
    if not alike or one.data_label == other.data_label:
        return None
    sizes: set[tuple[int, int]] = set()
    layouts = values = False
    for mine, theirs in zip(one.data, other.data):
        if not isinstance(mine, Data) or not isinstance(theirs, Data) or len(mine.shape) != len(theirs.shape):
            values |= mine != theirs
            continue
        sizes |= {(a, b) for a, b in zip(mine.shape, theirs.shape) if a != b}
        layouts |= mine.layout != theirs.layout
        values |= (mine.steps, *_memory_of(mine)) != (theirs.steps, *_memory_of(theirs))
    if len(sizes) + layouts + values != 1:
        return None
    return (0, abs(next(iter(sizes))[0] - next(iter(sizes))[1])) if sizes else (1 + values, 0)
