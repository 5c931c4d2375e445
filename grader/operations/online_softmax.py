"""Softmax along rows that are walked in blocks, with a maximum and a sum so far: x [M, N] -> z [M, N].

Mistakes that have nothing to do with blocks are softmax's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.numerics.roundoff import U32
from grader.operations import softmax
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import lanes, turns
from grader.operations.mistakes.turns import Index, Loop
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

LEAST_BLOCK = 256  # columns that a right kernel takes at a time, of long rows
ROUNDINGS = 4  # of the sum, in each turn
FIRST_LOOP = "the first loop"

CAUSES = ("block-maximum", "finite-start", "too-early", "stand-in-kept", "old-maximum", "maximum-forgotten")
RANGE = ("maximum-forgotten",)
LOST_DIGITS = softmax.LOST_DIGITS


class OnlineSoftmax(Sentence):
    """Sentences about mistakes in the start, in rows that lie far below 0 or hold -inf, in rescaling, in the turns of
    both loops."""

    NAN_FROM_THE_START = (
        "{name} is NaN everywhere. Before the first block the maximum is -inf and the sum is 0: is the sum's factor "
        "exp(old maximum - new maximum), which is 0 then, and is the block itself measured against the new maximum?"
    )
    INFINITE_FROM_THE_START = (
        "{name} is infinite everywhere: after the first loop the maximum is still -inf, or the sum is 0. Does each "
        "turn keep its new maximum for the next one, and is the block's sum added after the sum so far has got its "
        "factor?"
    )
    NO_TURN = (
        "The first loop makes no turn for {columns} columns in blocks of {step}: a maximum of -inf and a sum of 0 make "
        "{name} infinite. The number of turns is rounded up."
    )
    STAND_IN_KEPT = (
        "The 0 that stands in for -inf in the subtraction is kept as the maximum: {name} is NaN in rows that lie far "
        "below 0 and hold a block of -inf alone. Such a row is measured against 0 from then on, and every exponential "
        "is 0. The maximum that is kept stays -inf until a finite number comes."
    )
    FIRST_BLOCK_EMPTY = (
        "{name} is NaN in rows whose first block holds -inf alone: the maximum so far is still -inf then, and (-inf) - "
        "(-inf) is NaN."
    )
    FINITE_START = (
        "{name} is NaN in rows that lie far below 0: every exponential is 0 there. They are measured against a number "
        "that these rows do not reach: does the maximum start at -inf, and are lanes past the end -inf?"
    )
    PADDING_TAKES_ALL = (
        "{name} is 0 in rows that lie far below 0: lanes past the end of each row hold more than the row, and take all "
        "of the probability. Fill them with -inf."
    )
    NOT_RESCALED = (
        "The sum is not rescaled when the maximum grows: what was added before was measured against a smaller maximum. "
        "Multiply the sum so far by exp(old maximum - new maximum). If that stands there, the old maximum was "
        "overwritten before, and the factor is exp(0) = 1."
    )
    RESCALE_INVERTED = (
        "The sum is rescaled the wrong way round: its factor is exp(old maximum - new maximum), which is at most 1."
    )
    BLOCK_MAXIMUM = (
        "The maximum of each block replaces the maximum so far, also by a smaller one: in rows that fall exp "
        "overflows. What is kept is the larger of the two."
    )
    OLD_MAXIMUM = (
        "The exponentials of a block are measured against the maximum before this block, and the sum so far against "
        "the new one: take exp(x - new maximum), and the factor exp(old maximum - new maximum) for the sum so far."
    )
    TOO_EARLY = (
        "Blocks are divided by the sum as it was when they were loaded: the maximum and the sum are known only when "
        "the row is done, and a second walk stores the results."
    )
    STORES_FIRST_BLOCK = (
        "The second loop stores the results of the first block again and again: it has to load its own."
    )
    STORES_LAST_BLOCK = "The second loop stores the results of the last block again and again: it has to load its own."


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns softmax's c S, and for each turn ROUNDINGS u |z| more: the sum is multiplied by an exponential, which
    errs by 2 u, and added to, at 1 u each.

    If the maximum does not grow, the factor is 1, and exact. In rows that rise slowly all errors have one sign: then
    they add up to the number of turns times 0.3 u, measured in numpy.
    """
    turns = as_tensor(inputs[0]).shape[-1] / LEAST_BLOCK
    return softmax.rounding(inputs, ref).add_(ref.abs(), alpha=ROUNDINGS * turns * U32)


@dataclass
class RowBlocks:
    """Rows block after block: the maximum of each block, and its sum of exp(x - that maximum); [M, blocks]."""

    x: torch.Tensor
    step: int
    maxima: torch.Tensor
    sums: torch.Tensor

    @property
    def so_far(self) -> torch.Tensor:
        """The maximum after each block, [M, blocks]."""
        return self.maxima.cummax(dim=1).values

    def measured_against(self, maxima: torch.Tensor) -> torch.Tensor:
        """Returns each block's sum of exp(x - maxima), [M, blocks]."""
        return self.sums * _exp(self.maxima - maxima)

    def results(self, maxima: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
        """Returns exp(x - maximum) / sum, [M, N]; `maxima` and `sums` hold a number for each block, [M, blocks], or for
        each row, [M, 1]."""
        blocks = self.maxima.shape[1]
        of_column = torch.arange(self.x.shape[1]) // self.step
        each = [one.expand(-1, blocks)[:, of_column] for one in (maxima, sums)]
        return _exp(self.x - each[0]) / each[1]


def walked(x: torch.Tensor, step: int) -> RowBlocks:
    blocks = x.split(step, dim=1)
    maxima = torch.stack([block.amax(dim=1) for block in blocks], dim=1)
    sums = torch.stack([_exp(block - block.amax(dim=1, keepdim=True)).sum(dim=1) for block in blocks], dim=1)
    return RowBlocks(x, step, maxima, sums)


def _exp(difference: torch.Tensor) -> torch.Tensor:
    """Returns exp of a difference, and 0 for -inf - -inf: a block without any finite number adds nothing."""
    return difference.exp().nan_to_num_(nan=0.0, posinf=torch.inf)


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 1:
        return  # several inputs: how x is made from them is not known here
    (x,), step = as_tensors(inputs), evidence.constants.get("BLOCK_N", 0)
    yield from _in_the_start(evidence, x, step)
    yield from softmax.empty_rows(evidence, x)
    if step > 0 and (padding := -x.shape[1] % step):
        yield _padding_counted(x, padding)
    if step > 0 and x.shape[1] and not bool(x.isnan().any() | (x == torch.inf).any()):
        walk = walked(x, step)
        yield _measured_against_the_old_maximum(walk)
        yield from _too_many_turns(x, step)
        if step < x.shape[1]:
            yield from _in_rescaling(walk)
            yield from _in_turns(evidence, walk)
    yield from softmax.mistakes(evidence, inputs)


def _padding_counted(x: torch.Tensor, padding: int) -> Hypothesis:
    shift = x.amax(dim=1, keepdim=True).clamp(min=0.0)  # the padding takes part in the maximum too
    e = torch.exp(x - shift)
    total = e.sum(dim=1, keepdim=True) + padding * torch.exp(-shift)
    said = lanes.counted(padding, rest=": exp of what they hold has to be 0.")
    return Hypothesis("padding-counted", said, e / total, held=0.0)


def _in_the_start(evidence: Compared, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields wrong starts of the maximum and the sum, which show in which rows hold nothing of use."""
    name, out, expected = evidence.returns, evidence.comparison.out, evidence.comparison.expected
    if not bool((evidence.comparison.wrong & expected.isfinite()).any()):
        return
    passed, finite = evidence.exercise.bound in evidence.right_before, bool(x.isfinite().all())
    moderate = finite and bool((x.abs() < -softmax.LOG_OF_SMALLEST).all())  # no exponential is 0 or infinite by itself
    if bool(out.isnan().all()) and not passed and moderate:
        yield Hypothesis("rescale-inverted", OnlineSoftmax.NAN_FROM_THE_START(name=name), None)
    if bool((out == torch.inf).all()) and not passed and moderate:
        yield Hypothesis("maximum-forgotten", OnlineSoftmax.INFINITE_FROM_THE_START(name=name), None)
    if passed and finite and x.shape[1] < step and bool((out == torch.inf).all()):
        sentence = OnlineSoftmax.NO_TURN(name=name, columns=x.shape[1], step=step)
        yield Hypothesis("blocks-left-out", sentence, None)
    if passed:
        yield from _in_rows_without_result(evidence, x, step)


def _in_rows_without_result(evidence: Compared, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields mistakes that make rows NaN, or 0, from end to end, after other calls were right."""
    name, out, wrong = evidence.returns, evidence.comparison.out, evidence.comparison.wrong.any(dim=1)
    nan, empty = out[wrong].isnan().all(), (x[:, : max(step, 1)] == -torch.inf).all(dim=1)
    if bool(nan) and bool(wrong.any()) and step > 0 and _stand_in_may_be_kept(evidence, x[wrong], step):
        yield Hypothesis("stand-in-kept", OnlineSoftmax.STAND_IN_KEPT(name=name), None)
    if bool(nan) and bool(empty[wrong].all()):
        yield Hypothesis("inf-minus-inf", OnlineSoftmax.FIRST_BLOCK_EMPTY(name=name), None)
    if not bool((x.amax(dim=1)[wrong] < softmax.LOG_OF_SMALLEST).all()) or not bool(x.isfinite().all()):
        return
    if bool(nan):
        yield Hypothesis("finite-start", OnlineSoftmax.FINITE_START(name=name), None)
    if not bool(out[wrong].any()):
        yield Hypothesis("padding-counted", OnlineSoftmax.PADDING_TAKES_ALL(name=name), None)


def _stand_in_may_be_kept(evidence: Compared, rows: torch.Tensor, step: int) -> bool:
    """Returns whether all of these rows lie far below 0 and hold a block of -inf, and calls with either alone have
    passed."""
    hollow = torch.stack([(block == -torch.inf).all(dim=1) for block in rows.split(step, dim=1)]).any(dim=0)
    far_below = rows.amax(dim=1) < softmax.LOG_OF_SMALLEST
    alone = softmax.right_with_hollow_blocks(evidence, step) and softmax.right_far_below_zero(evidence)
    return alone and bool((hollow & far_below).all())


def _in_rescaling(walk: RowBlocks) -> Iterator[Hypothesis]:
    """Yields mistakes that measure the sum so far against another maximum than what is added to it."""
    so_far = walk.so_far
    last, added = so_far[:, -1:], walk.measured_against(so_far)
    for sums in (added, walk.sums):
        result = walk.results(last, sums.sum(dim=1, keepdim=True))
        yield Hypothesis("not-rescaled", OnlineSoftmax.NOT_RESCALED(), result)
    result = walk.results(last, _rescaled(added, so_far, -1.0))
    yield Hypothesis("rescale-inverted", OnlineSoftmax.RESCALE_INVERTED(), result)
    own = walk.maxima.float()  # fp32, as in the kernel: it is right where nothing overflows
    narrow = torch.exp(walk.x.float() - own[:, -1:]) / _rescaled(walk.sums.float(), own, 1.0)
    if not bool(narrow.isfinite().all()):
        sentence = OnlineSoftmax.BLOCK_MAXIMUM()
        yield Hypothesis("block-maximum", sentence, narrow.double(), may_be_constant=True)


def _measured_against_the_old_maximum(walk: RowBlocks) -> Hypothesis:
    """Returns the mistake of adding exp(x - the maximum before the block) for each block. There -inf has a stand-in:
    else the first turn gives inf or NaN."""
    so_far = walk.so_far
    before = torch.cat([so_far.new_full((len(so_far), 1), -torch.inf), so_far[:, :-1]], dim=1)
    added = walk.measured_against(before.masked_fill(before == -torch.inf, 0.0))
    result = walk.results(so_far[:, -1:], _rescaled(added, so_far, 1.0))
    return Hypothesis("old-maximum", OnlineSoftmax.OLD_MAXIMUM(), result)


def _rescaled(added: torch.Tensor, maxima: torch.Tensor, sign: float) -> torch.Tensor:
    """Returns the sum after the last block, [M, 1]; each block's `added` is measured against its own of `maxima`.
    `sign` -1 inverts the factors."""
    total = added[:, 0]
    for turn in range(1, added.shape[1]):
        total = total * _exp(sign * (maxima[:, turn - 1] - maxima[:, turn])) + added[:, turn]
    return total[:, None]


def _too_many_turns(x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields first loops with too many turns, each of which adds the exponentials of a whole block."""
    e = _exp(x - x.amax(dim=1, keepdim=True))
    for said, times, made in turns.too_many(x.shape[1], step, FIRST_LOOP, " in the sum"):
        result = e / (e @ times)[:, None]
        yield Hypothesis("no-advance", said, result, result * (ROUNDINGS * made * U32))


def _in_turns(evidence: Compared, walk: RowBlocks) -> Iterator[Hypothesis]:
    """Yields turns that read the wrong block, loops that make too few turns, and results stored before the sum is
    known."""
    N, step, so_far = walk.x.shape[1], walk.step, walk.so_far
    blocks = so_far.shape[1]
    final = walk.measured_against(so_far[:, -1:])
    right = walk.results(so_far[:, -1:], final.sum(dim=1, keepdim=True))
    sums = torch.stack([walk.measured_against(so_far[:, k, None])[:, : k + 1].sum(dim=1) for k in range(blocks)], dim=1)
    yield Hypothesis("too-early", OnlineSoftmax.TOO_EARLY(), walk.results(so_far, sums))

    def of(columns: Index) -> torch.Tensor:
        """Returns z where the maximum and the sum are those of some columns."""
        part = walk.x[:, columns]
        return _exp(walk.x - part.amax(dim=1, keepdim=True)) / walked(part, part.shape[1]).sums

    terms, names = "columns of each row are in the maximum and the sum", (evidence.exercise.arguments[0],)
    loop = Loop(N, step, names, of, terms=terms, loop=FIRST_LOOP, rescales=True)
    yield from turns.only_last(loop)
    for found, reached in zip(turns.ends_too_early(loop), so_far.T):
        if bool(reached.isfinite().all()):  # else inf and NaN, which other mistakes give too
            # All of z is one number where x is one column, expanded; each end of the loop gives another one.
            yield replace(found, may_be_constant=True)
    yield from turns.no_advance(loop)
    columns = torch.arange(N)
    of_first, of_last = columns % step, (blocks - 1) * step + columns % step
    for source, stores in ((of_first, OnlineSoftmax.STORES_FIRST_BLOCK), (of_last, OnlineSoftmax.STORES_LAST_BLOCK)):
        if int(source.max()) < N:
            yield Hypothesis("no-advance", stores(), right[:, source])
