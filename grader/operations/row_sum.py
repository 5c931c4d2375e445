"""Sums along the rows of a matrix, kept in fp32: x [M, N] -> z [M]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis, total
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Compared

LEAST_PARTIAL_SUMS = 64  # the fewest that a right kernel may keep
LARGEST_IN_FP16 = 2048  # fp16 holds every whole number up to this

CAUSES = (
    "padding-counted", "half-accumulator", "blocks-left-out", "only-last-block", "no-advance", "last-column",
    "row-zero",
)  # fmt: skip
PLAIN_CAUSES = ("mean",)


class RowSum(Sentence):
    """Sentences about what is summed instead of a row."""

    MEAN = "{name} holds the mean of each row: its sum divided by N."
    ROW_ZERO = "Every element of {name} is the sum of row 0 of {argument}."
    PADDING_COUNTED = "The {lanes} lanes past the end of each row take part in the sum."
    LAST_COLUMN = "The last column is left out of the sum."
    ABOVE_2048 = (
        "Exact sums of whole numbers go wrong above 2048: they are kept in fp16, which holds only even numbers there. "
        "Keep them in fp32."
    )
    PARTIAL_BLOCK_LEFT_OUT = (
        "The last, partial block of each row is left out: the loop makes {made} of {turns} turns for {columns} columns "
        "in blocks of {step}."
    )
    ENDS_TOO_EARLY = (
        "Only the first {kept} of {columns} columns of each row are there: the loop, or its mask, ends too early."
    )
    ONLY_LAST_BLOCK = (
        "Only the last block of each row is left: each turn of the loop replaces the sum, none adds to it."
    )
    FIRST_BLOCK_LEFT_OUT = "The first block of each row is left out: the loop has to begin at column 0."
    NO_ADVANCE = "Every turn of the loop adds the same block, the first one: the columns do not move with the loop."
    TOO_MANY_TURNS = (
        "Columns count several times: the loop makes {made:#turn} for {columns:#column} in blocks of {step}, and "
        "{turns} {are} enough. Let its range step by BLOCK_N = {step}, and not by {apart}."
    )
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
    (M, N), total, step = x.shape, x.sum(dim=1), evidence.constants.get("BLOCK_N", 0)
    if bool(evidence.comparison.out.any()):  # 0 may be near a mean, or the sum of row 0, by chance
        yield Hypothesis("mean", RowSum.MEAN(name=name), total / N)
        sentence = RowSum.ROW_ZERO(name=name, argument=evidence.exercise.arguments[0])
        yield Hypothesis("row-zero", sentence, total[:1].expand(M), may_be_constant=True)
    if step > 0 and (padding := -N % step):
        yield Hypothesis("padding-counted", RowSum.PADDING_COUNTED(lanes=padding), total + padding)
    if N > 1:
        yield Hypothesis("last-column", RowSum.LAST_COLUMN(), x[:, :-1].sum(dim=1))
    if step > 0:
        yield from _blocks_left_out(evidence, x, step)
        yield from _too_many_turns(x, step)
    if 0 < step < N:
        yield from _wrong_turns(x, step)
        yield from _rounded_after_each_block(evidence, x, step)
    if _counts_past_2048(x) and "exact" in evidence.right_before:
        yield Hypothesis("half-accumulator", RowSum.ABOVE_2048(), None)


def _blocks_left_out(evidence: Compared, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields loops that make too few turns."""
    N = x.shape[1]
    whole = N // step * step
    if whole < N and (whole or evidence.exercise.bound in evidence.right_before):
        made, turns = whole // step, -(-N // step)
        sentence = RowSum.PARTIAL_BLOCK_LEFT_OUT(made=made, turns=turns, columns=N, step=step)
        yield Hypothesis("blocks-left-out", sentence, x[:, :whole].sum(dim=1), may_be_constant=True)
    for kept in range(step, N, step):
        sentence = RowSum.ENDS_TOO_EARLY(kept=kept, columns=N)
        yield Hypothesis("blocks-left-out", sentence, x[:, :kept].sum(dim=1))


def _too_many_turns(x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields loops that make too many turns, each of which adds a whole block."""
    for found, times in too_many_turns(x.shape[1], step):
        rounding = x.abs() @ times * (found["made"] * U32)  # a lane adds up as many numbers as the loop has turns
        yield Hypothesis("no-advance", RowSum.TOO_MANY_TURNS(**found), x @ times, rounding)


def too_many_turns(columns: int, step: int) -> Iterator[tuple[dict, torch.Tensor]]:
    """Yields the evidence of loops whose turns begin less than a block apart, 1 column in range(N), and how often each
    column counts then, [columns]. Loops of two turns are left out: columns that count twice may have another reason."""
    turns, apart = -(-columns // step), 1
    while apart < step and 2 * apart < columns:
        found = dict(columns=columns, step=step, turns=turns, are="is" if turns == 1 else "are", apart=apart)
        yield found | dict(made=-(-columns // apart)), times_counted(columns, step, apart).double()
        apart *= 2


def times_counted(columns: int, step: int, apart: int) -> torch.Tensor:
    """Returns how often each column counts, [columns], where blocks of `step` columns begin `apart` columns from one
    another."""
    column = torch.arange(columns)
    return column // apart - (column - step).div(apart, rounding_mode="floor").clamp(min=-1)


def _wrong_turns(x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields turns that replace what was summed, or read the wrong block."""
    N = x.shape[1]
    starts = range(0, N, step)
    yield Hypothesis("only-last-block", RowSum.ONLY_LAST_BLOCK(), x[:, starts[-1] :].sum(dim=1))
    yield Hypothesis("blocks-left-out", RowSum.FIRST_BLOCK_LEFT_OUT(), x[:, step:].sum(dim=1))
    sentence = RowSum.NO_ADVANCE()
    yield Hypothesis("no-advance", sentence, x[:, :step].sum(dim=1) * len(starts))
    again = total(x[:, : min(step, N - start)].sum(dim=1) for start in starts)
    yield Hypothesis("no-advance", sentence, again)  # where the mask moves and the address does not


def _rounded_after_each_block(evidence: Compared, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields a sum so far that goes through the dtype of the result after every block."""
    dtype = evidence.wanted.dtype
    if dtype == torch.float32:
        return
    sentence = RowSum.ROUNDED_AFTER_EACH_BLOCK(name=evidence.returns)
    sums = torch.stack([block.sum(dim=1) for block in x.split(step, dim=1)])
    for blocks in (sums, sums.to(dtype).double()):  # an atomic addition rounds what it adds, too
        so_far = torch.zeros_like(blocks[0])
        for block in blocks:
            so_far = (so_far + block).to(dtype).double()
        yield Hypothesis("half-accumulator", sentence, so_far, may_be_constant=True)


def _counts_past_2048(x: torch.Tensor) -> bool:
    """Returns whether all numbers are whole and a running sum is more than 2048, up to which fp16 is exact."""
    return torch.equal(x, x.round()) and bool(x.cumsum(dim=1).abs().max() > LARGEST_IN_FP16)
