"""Softmax along rows that are walked in blocks, with a maximum and a sum so far: x [M, N] -> z [M, N].

Mistakes that have nothing to do with blocks are softmax's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.numerics.roundoff import U32
from grader.operations import softmax
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import exponentials, joining, lanes, turns
from grader.operations.mistakes.joining import Joining, Walk, falls, folded, running
from grader.operations.mistakes.turns import Index, Loop
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Compared

LEAST_BLOCK = 256  # columns that a right kernel takes at a time, of long rows
ROUNDINGS = 4  # of the sum, in each turn
FIRST_LOOP = "the first loop"

CAUSES = ("too-early", "old-maximum", "maximum-forgotten")
LOST_DIGITS = softmax.LOST_DIGITS


class OnlineSoftmax(Sentence):
    """Sentences about mistakes in the start, in rows that hold -inf, in measuring, in the turns of both loops."""

    INFINITE_FROM_THE_START = (
        "{name} is infinite everywhere: after the first loop the maximum is still -inf, or the sum is 0. Does each "
        "turn keep its new maximum for the next one, and is the block's sum added after the sum so far has got its "
        "factor?"
    )
    FIRST_BLOCK_EMPTY = (
        "{name} is NaN in rows whose first block holds -inf alone: the maximum so far is still -inf then, and (-inf) - "
        "(-inf) is NaN."
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


def _results(walk: Walk, maxima: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
    """Returns exp(x - maximum) / sum, [M, N]; `maxima` and `sums` hold a number for each block, [M, blocks], or for
    each row, [M, 1]."""
    blocks = walk.own.shape[1]
    of_column = torch.arange(walk.s.shape[1]) // walk.step
    of_rows, sums_of_rows = (one.expand(-1, blocks)[:, of_column] for one in (maxima, sums))
    return _exp(walk.s - of_rows) / sums_of_rows


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
        e, total, _ = exponentials.with_lanes(x, padding)
        said = lanes.counted(padding, rest=": exp of what they hold has to be 0.")
        yield Hypothesis("padding-counted", said, e / total)
    if step > 0 and x.shape[1] and not bool(x.isnan().any() | (x == torch.inf).any()):
        walk = Walk(x, step)
        yield _measured_against_the_old_maximum(walk)
        yield from _too_many_turns(x, step)
        if step < x.shape[1]:
            yield from _in_rescaling(walk)
            yield from _in_turns(evidence, walk)
    yield from softmax.mistakes(evidence, inputs)


def _in_the_start(evidence: Compared, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields wrong starts of the maximum and the sum, which show in which rows hold nothing of use."""
    name, out, expected = evidence.returns, evidence.comparison.out, evidence.comparison.expected
    if not bool((evidence.comparison.wrong & expected.isfinite()).any()):
        return
    passed, finite = exponentials.passed_before(evidence), bool(x.isfinite().all())
    yield from joining.nan_from_the_start(evidence, x, "x")
    if bool((out == torch.inf).all()) and not passed and joining.is_moderate(x):
        yield Hypothesis("maximum-forgotten", OnlineSoftmax.INFINITE_FROM_THE_START(name=name), None)
    if passed and finite and x.shape[1] < step and bool((out == torch.inf).all()):
        yield Hypothesis(
            "blocks-left-out", Joining.NO_TURN(name=name, loop=FIRST_LOOP, count=x.shape[1], step=step), None
        )
    if passed:
        yield from _in_rows_without_result(evidence, x, step)


def _in_rows_without_result(evidence: Compared, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields mistakes that make rows NaN, or 0, from end to end, after other calls were right."""
    name, out, wrong = evidence.returns, evidence.comparison.out, evidence.comparison.wrong.any(dim=1)
    nan, empty = out[wrong].isnan().all(), (x[:, : max(step, 1)] == -torch.inf).all(dim=1)
    if step > 0:
        yield from joining.stand_in_kept(evidence, Walk(x, step), wrong)
    if bool(nan) and bool(empty[wrong].all()):
        yield Hypothesis("inf-minus-inf", OnlineSoftmax.FIRST_BLOCK_EMPTY(name=name), None)
    if bool(x.isfinite().all()):
        yield from joining.far_below_zero(evidence, x.amax(dim=1), wrong, numbers="numbers of a row")


def _in_rescaling(walk: Walk) -> Iterator[Hypothesis]:
    """Yields mistakes that measure the sum so far against another maximum than what is added to it."""
    last, added = walk.so_far[:, -1:], walk.sums(walk.so_far)
    for id, said, of in joining.rescaling("the sum"):
        yield Hypothesis(id, said, _results(walk, last, folded(added, of(walk.right)[0])[:, None]))
    unscaled = _results(walk, last, walk.sums(walk.own).sum(dim=1, keepdim=True))
    yield Hypothesis("not-rescaled", Joining.NOTHING_RESCALED(sums="the sum"), unscaled)
    own = walk.own.float()  # fp32, as in the kernel: it is right where nothing overflows
    total = folded(walk.sums(walk.own).float(), torch.exp(falls(own)))
    narrow = torch.exp(walk.s.float() - own[:, -1:]) / total[:, None]
    if not bool(narrow.isfinite().all()):
        yield Hypothesis("block-maximum", Joining.BLOCK_MAXIMUM(), narrow.double(), may_be_constant=True)


def _measured_against_the_old_maximum(walk: Walk) -> Hypothesis:
    """Returns the mistake of adding exp(x - the maximum before the block) for each block. There -inf has a stand-in:
    else the first turn gives inf or NaN."""
    so_far = walk.so_far
    before = torch.cat([so_far.new_full((len(so_far), 1), -torch.inf), so_far[:, :-1]], dim=1)
    added = walk.sums(before.masked_fill(before == -torch.inf, 0.0))
    result = _results(walk, so_far[:, -1:], folded(added, walk.right)[:, None])
    return Hypothesis("old-maximum", OnlineSoftmax.OLD_MAXIMUM(), result)


def _too_many_turns(x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields first loops with too many turns, each of which adds the exponentials of a whole block."""
    e = _exp(x - x.amax(dim=1, keepdim=True))
    for said, times, made in turns.too_many(x.shape[1], step, FIRST_LOOP, " in the sum"):
        result = e / (e @ times)[:, None]
        yield Hypothesis("no-advance", said, result, result * (ROUNDINGS * made * U32))


def _in_turns(evidence: Compared, walk: Walk) -> Iterator[Hypothesis]:
    """Yields turns that read the wrong block, loops that make too few turns, and results stored before the sum is
    known."""
    N, step, so_far = walk.s.shape[1], walk.step, walk.so_far
    blocks = so_far.shape[1]
    totals = torch.stack(running(walk.sums(so_far), walk.right), dim=1)
    yield Hypothesis("too-early", OnlineSoftmax.TOO_EARLY(), _results(walk, so_far, totals))
    right = _results(walk, so_far[:, -1:], totals[:, -1:])

    def of(columns: Index) -> torch.Tensor:
        """Returns z where the maximum and the sum are those of some columns."""
        greatest = walk.s[:, columns].amax(dim=1, keepdim=True)
        return _exp(walk.s - greatest) / _exp(walk.s[:, columns] - greatest).sum(dim=1, keepdim=True)

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
