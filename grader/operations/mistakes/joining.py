"""Mistakes in joining blocks of a softmax, each measured against a maximum so far: their factors, and the start."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from grader.numerics.data_sets import Data
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes.exponentials import LOG_OF_SMALLEST, passed_before
from grader.operations.mistakes.scores import LN_2, LOG2_E
from grader.sentences import Said, Sentence

if TYPE_CHECKING:
    from grader.course.trial import Trial
    from grader.explain.evidence import Compared

CAUSES = (
    "not-rescaled", "rescale-inverted", "block-maximum", "bases-mixed", "finite-start", "stand-in-kept",
)  # fmt: skip
Of = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]  # factors of l and of acc, from the right factors


class Joining(Sentence):
    """Sentences about a loop over blocks; {sums} says what it adds up."""

    NAN_FROM_THE_START = (
        "{name} is NaN everywhere, as where 0 meets infinity. Before the first block the maximum is -inf, and what is "
        "added up is 0: its factor is exp(old maximum - new maximum), which is 0 then. Turned round it is infinite, "
        "and so is exp({x} - old maximum): a block is measured against the new maximum."
    )
    FINITE_START = (
        "{name} is {found} where all {numbers} lie far below 0. They are measured against a number that they do not "
        "reach: does the maximum start at -inf, and are lanes past the end -inf?"
    )
    PADDING_TAKES_ALL = (
        "{name} is 0 where all {numbers} lie far below 0: lanes past the end hold more than these, and take all of the "
        "probability. Fill them with -inf."
    )
    NO_TURN = (
        "No turn is made by {loop} for {count:#number} in blocks of {step}: {name} is made of a maximum of -inf and a "
        "sum of 0. The number of turns is rounded up."
    )
    ACC_NOT_RESCALED = (
        "acc is not rescaled when the maximum grows, and l is: each row of acc needs the same factor, "
        "exp(old maximum - new maximum)."
    )
    SUM_NOT_RESCALED = (
        "l is not rescaled when the maximum grows, and acc is: both need the factor exp(old maximum - new maximum)."
    )
    NOTHING_RESCALED = (
        "The factor of {sums} is 1 in every turn, as where it is left out, or where it is made after the maximum has "
        "its new value. What was added before was measured against a smaller one: its factor is "
        "exp(old maximum - new maximum)."
    )
    RESCALE_INVERTED = (
        "The factor of {sums} is the wrong way round: it is exp(old maximum - new maximum), which is at most 1."
    )
    BASES_MIXED = (
        "The factor of {sums} is a power of {wrong}, and what is added is made of powers of {right}: both have to be "
        "of the same base, as the maximum is."
    )
    STAND_IN_KEPT = (
        "The 0 that stands in for -inf in the subtraction is kept as the maximum: {name} is NaN where numbers lie far "
        "below 0 and a block holds -inf alone. They are measured against 0 then, and every exponential is 0. A block "
        "of -inf alone leaves the maximum -inf."
    )
    BLOCK_MAXIMUM = (
        "The maximum of each block replaces the maximum so far, also by a smaller one: in rows that fall exp "
        "overflows. What is kept is the larger of the two."
    )


@dataclass
class Walk:
    """Rows of numbers block after block, with fewer numbers in the last block: s [..., N]."""

    s: torch.Tensor
    step: int

    @cached_property
    def blocks(self) -> tuple[torch.Tensor, ...]:
        return self.s.split(self.step, dim=-1)

    @cached_property
    def own(self) -> torch.Tensor:
        """The maximum of each block, [..., blocks]."""
        return torch.stack([s.amax(dim=-1) for s in self.blocks], dim=-1)

    @cached_property
    def so_far(self) -> torch.Tensor:
        """The maximum of all blocks up to each block, [..., blocks]."""
        return self.own.cummax(dim=-1).values

    @cached_property
    def right(self) -> torch.Tensor:
        """The right factor of what is added up before each block, [..., blocks]."""
        return torch.exp(falls(self.so_far))

    @property
    def padding(self) -> int:
        """The number of lanes of the last block that lie past the end."""
        return -self.s.shape[-1] % self.step

    def sums(self, at: torch.Tensor) -> torch.Tensor:
        """Returns each block's sum of exp(s - at); `at` and the result are [..., blocks]."""
        return torch.stack([e.sum(dim=-1) for e in self.exponentials(at)], dim=-1)

    def exponentials(self, at: torch.Tensor) -> Iterator[torch.Tensor]:
        """Yields exp(s - at) of each block, and 0 for -inf: a block of -inf alone adds nothing."""
        for turn, s in enumerate(self.blocks):
            yield torch.exp(s - at[..., turn, None]).masked_fill_(s == -torch.inf, 0.0)


def running(parts: torch.Tensor, factors: torch.Tensor) -> list[torch.Tensor]:
    """Returns what is added up after each block of parts, [..., blocks], where each factor multiplies what was added up
    before its block."""
    found = [parts[..., 0]]
    for part, factor in zip(parts.unbind(-1)[1:], factors.unbind(-1)[1:]):
        found.append(found[-1] * factor + part)
    return found


def folded(parts: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """Returns what is added up after the last block."""
    return running(parts, factors)[-1]


def falls(maxima: torch.Tensor) -> torch.Tensor:
    """Returns old maximum - new maximum for each turn, and 0 for the first turn; [..., blocks], as `maxima`."""
    differences = maxima[..., :-1] - maxima[..., 1:]
    return torch.cat([torch.zeros_like(maxima[..., :1]), differences.nan_to_num(nan=0.0, posinf=torch.inf)], dim=-1)


def rescaling(*sums: str) -> Iterator[tuple[str, Said, Of]]:
    """Yields id, sentence and wrong factors of a loop that adds up l, or l and acc; `sums` is what they are called."""
    if len(sums) > 1:
        yield "not-rescaled", Joining.ACC_NOT_RESCALED(), lambda right: (right, torch.ones_like(right))
        yield "not-rescaled", Joining.SUM_NOT_RESCALED(), lambda right: (torch.ones_like(right), right)
    named = " and ".join(sums)
    yield "not-rescaled", Joining.NOTHING_RESCALED(sums=named), _power(0.0)
    for power, wrong, of in ((LOG2_E, "e", "2"), (LN_2, "2", "e")):
        yield "bases-mixed", Joining.BASES_MIXED(sums=named, wrong=wrong, right=of), _power(power)
    yield "rescale-inverted", Joining.RESCALE_INVERTED(sums=named), _power(-1.0)


def _power(power: float) -> Of:
    return lambda right: (right**power, right**power)


def nan_from_the_start(evidence: Compared, s: torch.Tensor, x: str) -> Iterator[Hypothesis]:
    """Yields the wrong factor, or the wrong exponential, that makes all NaN in the first turn, before any call was
    right. `x` is the name of the numbers `s`."""
    if bool(evidence.comparison.out.isnan().all()) and not passed_before(evidence) and is_moderate(s):
        yield Hypothesis("rescale-inverted", Joining.NAN_FROM_THE_START(name=evidence.returns, x=x), None)


def is_moderate(s: torch.Tensor) -> bool:
    """Returns whether no exponential of these numbers is 0 or infinite by itself."""
    return bool((s.abs() < -LOG_OF_SMALLEST).all())


def far_below_zero(
    evidence: Compared, greatest: torch.Tensor, wrong: torch.Tensor, numbers: str, kept: bool = False
) -> Iterator[Hypothesis]:
    """Yields the mistakes that make rows NaN, or 0, where all numbers lie far below 0. `greatest` is the maximum of
    each row, `wrong` marks wrong rows. `kept`: the maximum was stored, and lanes past the end did not win it."""
    out = evidence.comparison.out[wrong]
    if not bool((greatest[wrong] < LOG_OF_SMALLEST).all()):
        return
    found = "NaN" if bool(out.isnan().all()) else "" if bool(out.any()) else "0"
    if found == "NaN" or found and kept:
        said = Joining.FINITE_START(name=evidence.returns, found=found, numbers=numbers)
        yield Hypothesis("finite-start", said, None)
    elif found:
        yield Hypothesis("padding-counted", Joining.PADDING_TAKES_ALL(name=evidence.returns, numbers=numbers), None)


def stand_in_kept(evidence: Compared, walk: Walk, rows: torch.Tensor, longer_than: int = 0) -> Iterator[Hypothesis]:
    """Yields the mistake where all of these rows are NaN, lie far below 0 and hold a block of -inf, if calls with
    either alone have passed, the second with rows of more than `longer_than` numbers."""
    greatest, hollow = walk.so_far[..., -1][rows], (walk.own == -torch.inf).any(dim=-1)[rows]
    fits = hollow & (greatest < LOG_OF_SMALLEST) & greatest.isfinite()
    shown = bool(evidence.comparison.out[rows].isnan().all()) and len(fits) > 0 and bool(fits.all())
    if shown and right_with_hollow_blocks(evidence, walk.step) and _right_far_below_zero(evidence, longer_than):
        yield Hypothesis("stand-in-kept", Joining.STAND_IN_KEPT(name=evidence.returns), None)


def right_with_hollow_blocks(evidence: Compared, step: int) -> bool:
    """Returns whether a call has passed whose rows began with a block of `step` columns that held nothing but -inf."""
    steps = ("leading", -math.inf)
    return any(
        steps in data.steps and data.shape[-1] // 2 >= step for trial in evidence.right_trials for data in _drawn(trial)
    )


def _right_far_below_zero(evidence: Compared, longer_than: int) -> bool:
    """Returns whether a call has passed whose exponentials are all 0 unless a maximum is subtracted, and whose rows
    have more than `longer_than` columns."""
    return any(
        _moved_by(data) < 2 * LOG_OF_SMALLEST and data.shape[-1] > longer_than
        for trial in evidence.right_trials
        for data in _drawn(trial)
    )


def _drawn(trial: Trial) -> Iterator[Data]:
    return (data for data in trial.data if isinstance(data, Data))


def _moved_by(data: Data) -> float:
    """Returns the sum of the numbers that a data set adds to values that are drawn around 0."""
    return sum(number for name, *numbers in data.steps if name == "add" for number in numbers)
