"""Sums along the rows of a matrix, kept in fp32: x [M, N] -> z [M]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import first_of_all, half_precision, lanes, turns
from grader.operations.mistakes.half_precision import rounded
from grader.operations.mistakes.turns import Loop
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

LEAST_PARTIAL_SUMS = 64  # the fewest that a right kernel may keep

PLAIN_CAUSES = ("mean",)


class RowSum(Sentence):
    """Sentences about what is summed instead of a row."""

    MEAN = "{name} holds the mean of each row: its sum divided by N."
    PARTIAL_BLOCK_LEFT_OUT = (
        "The last, partial block of each row is left out: the loop makes {made} of {turns} turns for {columns} columns "
        "in blocks of {step}."
    )
    FIRST_BLOCK_LEFT_OUT = "The first block of each row is left out: the loop has to begin at column 0."
    ROUNDED_AFTER_EACH_BLOCK = (
        "The sum so far is rounded to {name}'s dtype after each block, or a block is added up in it: keep the sum in "
        "fp32 until the row is done, and convert a block to fp32 before tl.sum."
    )
    LOST_DIGITS = (
        "Many partial sums, added up when the row is done, lose less than one number that everything is added to."
    )


LOST_DIGITS = RowSum.LOST_DIGITS()


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S, [M]: a sum errs by at most u times the sum of the |terms| for each addition on the longest way
    through it (Higham, chapter 4). With 64 partial sums this way has N / 64 additions, and 6 to add these sums up in
    pairs; 2 more pay for what is of second order. More partial sums make the way no longer: 2048 take 11 to be added
    up, and 8 + N / 64 is 40 once each of them has a term."""
    (x,) = as_tensors(inputs)
    return x.abs().sum(dim=-1).mul_((8 + x.shape[-1] / LEAST_PARTIAL_SUMS) * U32)


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the |terms| of each row, [M]."""
    (x,) = as_tensors(inputs)
    return x.abs().sum(dim=-1)


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 1:
        return  # of a sum alone
    (x,), name = as_tensors(inputs), evidence.returns
    N, sums, step = x.shape[1], x.sum(dim=1), evidence.constants.get("BLOCK_N", 0)
    if bool(evidence.comparison.out.any()):  # 0 may be near a mean, or the sum of row 0, by chance
        yield Hypothesis("mean", RowSum.MEAN(name=name), sums / N)
        for found in first_of_all.mistakes(evidence, inputs, "row-zero"):
            yield replace(found, may_be_constant=True)
    if step > 0 and (padding := -N % step):
        yield Hypothesis("padding-counted", lanes.counted(padding), sums + padding, held=1.0)
    if N > 1:
        yield turns.last_left_out("column", x[:, :-1].sum(dim=1))
    if step > 0:
        loop = Loop(N, step, (evidence.exercise.arguments[0],), lambda columns: x[:, columns].sum(dim=1))
        yield from _partial_block_left_out(evidence, x, step)
        yield from turns.ends_too_early(loop)
        for said, times, made in turns.too_many(N, step):
            rounding = x.abs() @ times * (made * U32)  # a lane adds up as many numbers as the loop has turns
            yield Hypothesis("no-advance", said, x @ times, rounding)
    if 0 < step < N:
        yield from turns.only_last(loop)
        yield Hypothesis("blocks-left-out", RowSum.FIRST_BLOCK_LEFT_OUT(), x[:, step:].sum(dim=1))
        yield from turns.no_advance(loop)
        yield from _rounded_after_each_block(evidence, x, step)
    yield from half_precision.above_2048(evidence, x)


def _partial_block_left_out(evidence: Compared, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields a loop whose number of turns is rounded down."""
    N = x.shape[1]
    whole = N // step * step
    if whole < N and (whole or evidence.exercise.bound in evidence.right_before):
        made, needed = whole // step, -(-N // step)
        sentence = RowSum.PARTIAL_BLOCK_LEFT_OUT(made=made, turns=needed, columns=N, step=step)
        yield Hypothesis("blocks-left-out", sentence, x[:, :whole].sum(dim=1), may_be_constant=True)


def _rounded_after_each_block(evidence: Compared, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields a sum so far that goes through the dtype of the result after every block."""
    dtype = evidence.wanted.dtype
    if dtype == torch.float32:
        return
    sums = torch.stack([block.sum(dim=1) for block in x.split(step, dim=1)])
    for blocks in (sums, rounded(sums, dtype)):  # an atomic addition rounds what it adds, too
        so_far = torch.zeros_like(blocks[0])
        for block in blocks:
            so_far = rounded(so_far + block, dtype)
        said = RowSum.ROUNDED_AFTER_EACH_BLOCK(name=evidence.returns)
        yield Hypothesis("half-accumulator", said, so_far, may_be_constant=True)
