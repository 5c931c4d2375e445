"""Sums so far along the rows of a matrix, kept in fp32: x [M, N] -> z [M, N], z[m, n] = x[m, 0] + ... + x[m, n]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32, UNIT_ROUNDOFF
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import first_of_all, turns
from grader.operations.mistakes.half_precision import rounded
from grader.operations.mistakes.turns import Loop
from grader.sentences import Said, Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

LEAST_BLOCK = 64  # the fewest columns that a right kernel takes at a time
LEAST_EFFECT = 8  # roundings to bf16

CAUSES = (
    "no-carry", "carry-replaced", "carry-too-early", "carry-counted-twice", "carry-of-one-element", "carry-by-lane",
    "carry-of-sums", "carry-scanned", "half-carry",
)  # fmt: skip
PLAIN_CAUSES = ("exclusive", "reversed", "not-scanned", "total-everywhere")
DIGITS = ("half-carry",)

Computes = Callable[[torch.Tensor], torch.Tensor]  # takes x in float64, [M, N], and returns what a mistake makes of it
# Takes the carry, [M, 1], and the scan of a block by itself, [M, columns], and returns the next carry.
NextCarry = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class PrefixSum(Sentence):
    """Sentences about what stands in z in the place of the sums so far, and about the carry from block to block."""

    EXCLUSIVE = "Each element of {name} lacks its own column: it holds the sum of the columns before it."
    REVERSED = "{name} holds the sums from each column to the end of its block: the scan runs the wrong way."
    NOT_SCANNED = "{name} holds x itself, plus what comes from the blocks before: the block is never scanned."
    TOTAL_EVERYWHERE = "{name} holds one number for a whole block: the sum of all its columns, not the sum so far."
    DOWN_THE_COLUMNS = "{name} holds the sums down the columns; the sums along the rows were expected."
    NO_CARRY = "Each block of {step} columns begins at 0 again: the sum of the columns before it is added nowhere."
    CARRY_REPLACED = (
        "Block 2 knows of the block before it alone: what is carried on is the sum of one block. Each turn has "
        "to add its block's sum to the carry, not to put it there."
    )
    TOO_EARLY = (
        "Each element of {name} has the sum of its whole block on top: the carry is raised before the block is stored. "
        "It is raised for the next block, and so after the store."
    )
    COUNTED_TWICE = (
        "The columns before a block are counted again in each turn: the last number of {name}'s block holds the carry "
        "already. Either add the block's own sum to the carry, or replace the carry by that number."
    )
    OF_ONE_ELEMENT = "The carry grows by the last element of x in each block, and not by the sum of the block."
    LARGEST = (
        "The carry is the largest of the block's sums so far. That is the last sum only where no number is negative."
    )
    BY_LANE = (
        "Each lane carries on its own columns of the blocks before, like a partial sum. A block needs one number: the "
        "sum of all lanes, for each of its lanes."
    )
    OF_SUMS = (
        "The carry grows by the sum of the block's sums so far. It has to grow by the sum of what was loaded, in which "
        "each column counts once."
    )
    SCANNED = (
        "The carry is added before the scan, so that each column of the block adds it once more. Add it to what "
        "the scan gives."
    )
    HALF_CARRY = (
        "The sum so far is rounded to {name}'s dtype from block to block, and each block adds a rounding: keep the "
        "carry in fp32, and do not take it from what was stored."
    )
    HALF_SCAN = (
        "The scan of a block is rounded to {name}'s dtype before the carry is added: convert x to fp32 before "
        "tl.cumsum, and round once, at the store."
    )
    LOST_DIGITS = (
        "A sum so far goes through one addition for each block before it, and through a few in its own: a carry in "
        "fp32, and whole blocks at a time, lose the fewest digits."
    )


LOST_DIGITS = PrefixSum.LOST_DIGITS()


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S, [M, N]: a sum errs by at most u times the sum of the |terms| so far for each addition on the longest
    way through it (Higham, chapter 4). A block is scanned in twice log2 of its columns at most, and a carry goes
    through an addition for each block before."""
    (x,) = as_tensors(inputs)
    return x.abs().cumsum(dim=-1).mul_(_additions(x) * U32)


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the |terms| so far, [M, N]."""
    (x,) = as_tensors(inputs)
    return x.abs().cumsum(dim=-1)


def _additions(x: torch.Tensor) -> torch.Tensor:
    """Returns the additions on the longest way to each column, [N]: 2 log2 of the columns so far, one for each
    LEAST_BLOCK of them, and 2 for what is of second order."""
    so_far = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    return 2 + 2 * so_far.log2() + so_far / LEAST_BLOCK


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 1:
        return  # of a scan alone
    (x,), name, step = as_tensors(inputs), evidence.returns, evidence.constants.get("BLOCK_N", 0)
    if not x.numel():
        return
    if bool(evidence.comparison.out.any()):
        yield _made("wrong-axis", PrefixSum.DOWN_THE_COLUMNS(name=name), x, lambda x: x.cumsum(dim=0))
        for found in first_of_all.mistakes(evidence, inputs, "row-zero"):
            yield replace(found, may_be_constant=True)
    yield _made("exclusive", PrefixSum.EXCLUSIVE(name=name), x, lambda x: x.cumsum(dim=1) - x)
    if step > 0:
        yield from _in_the_block(name, x, step)
        yield from _in_the_carry(name, x, step)
        yield from _in_half_precision(evidence, x, step)
        yield from _in_turns(evidence, x, step)


def _made(id: str, said: Said, x: torch.Tensor, computes: Computes) -> Hypothesis:
    """Returns the mistake of computing this; its rounding is that of the same sums of |x|."""
    return Hypothesis(id, said, computes(x), computes(x.abs()) * (_additions(x)[-1] * U32))


def _scanned(x: torch.Tensor, step: int) -> torch.Tensor:
    """Returns the sums so far of each block by itself, [M, N]."""
    return torch.cat([block.cumsum(dim=1) for block in x.split(step, dim=1)], dim=1)


def _sums(x: torch.Tensor, step: int) -> torch.Tensor:
    """Returns the sum of each block, [M, blocks]."""
    return torch.stack([block.sum(dim=1) for block in x.split(step, dim=1)], dim=1)


def _before(sums: torch.Tensor) -> torch.Tensor:
    """Returns the sum of all blocks before each block, [M, blocks]."""
    return torch.cat([torch.zeros_like(sums[:, :1]), sums.cumsum(dim=1)[:, :-1]], dim=1)


def _spread(of_block: torch.Tensor, columns: int, step: int) -> torch.Tensor:
    """Returns for each column the number of its block, [M, columns]."""
    return of_block.repeat_interleave(step, dim=1)[:, :columns]


def _in_the_block(name: str, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields blocks in which something else stands than the sums so far; the carry is right."""

    def carry(x: torch.Tensor) -> torch.Tensor:
        return _spread(_before(_sums(x, step)), x.shape[1], step)

    def backwards(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([block.flip(1).cumsum(dim=1).flip(1) for block in x.split(step, dim=1)], dim=1)

    yield _made("reversed", PrefixSum.REVERSED(name=name), x, lambda x: backwards(x) + carry(x))
    yield _made("not-scanned", PrefixSum.NOT_SCANNED(name=name), x, lambda x: x + carry(x))
    yield _made(
        "total-everywhere",
        PrefixSum.TOTAL_EVERYWHERE(name=name),
        x,
        lambda x: _spread(_sums(x, step).cumsum(dim=1), x.shape[1], step),
    )


def _lifted(x: torch.Tensor, step: int, next_carry: NextCarry) -> torch.Tensor:
    """Returns the scan of each block, lifted by a carry that begins at 0 and becomes what `next_carry` says, [M, N]."""
    carry, found = torch.zeros_like(x[:, :1]), []
    for scan in _scanned(x, step).split(step, dim=1):
        found.append(scan + carry)
        carry = next_carry(carry, scan)
    return torch.cat(found, dim=1)


def _in_the_carry(name: str, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields carries that hold something else than the sum of all columns before the block."""
    N = x.shape[1]

    def with_next(id: str, said: Said, next_carry: NextCarry) -> Hypothesis:
        return _made(id, said, x, lambda x: _lifted(x, step, next_carry))

    def too_early(x: torch.Tensor) -> torch.Tensor:
        return _scanned(x, step) + _spread(_sums(x, step).cumsum(dim=1), N, step)

    def of_last(x: torch.Tensor) -> torch.Tensor:
        last = torch.stack([block[:, -1] for block in x.split(step, dim=1)], dim=1)
        return _scanned(x, step) + _spread(_before(last), N, step)

    def by_lane(x: torch.Tensor) -> torch.Tensor:
        lanes = torch.nn.functional.pad(x, (0, -N % step)).unflatten(1, (-1, step))
        return _scanned(x, step) + (lanes.cumsum(dim=1) - lanes).flatten(1)[:, :N]

    def scanned(x: torch.Tensor) -> torch.Tensor:
        times = torch.arange(N, device=x.device) % step + 1
        return _scanned(x, step) + _spread(_before(_sums(x, step)), N, step) * times

    yield _made("carry-too-early", PrefixSum.TOO_EARLY(name=name), x, too_early)
    if step < N:
        yield with_next("no-carry", PrefixSum.NO_CARRY(step=step), lambda carry, scan: torch.zeros_like(carry))
        yield _made("carry-of-one-element", PrefixSum.OF_ONE_ELEMENT(), x, of_last)
        yield with_next("carry-of-one-element", PrefixSum.LARGEST(), lambda carry, scan: _largest(carry + scan))
        yield _made("carry-by-lane", PrefixSum.BY_LANE(), x, by_lane)
        yield with_next("carry-of-sums", PrefixSum.OF_SUMS(), lambda carry, scan: carry + _total(scan))
        yield with_next("carry-of-sums", PrefixSum.OF_SUMS(), lambda carry, scan: carry + _total(carry + scan))
        yield _made("carry-scanned", PrefixSum.SCANNED(), x, scanned)
    if 2 * step < N:
        twice = PrefixSum.COUNTED_TWICE(name=name)
        yield with_next("carry-replaced", PrefixSum.CARRY_REPLACED(), lambda carry, scan: scan[:, -1:])
        yield with_next("carry-counted-twice", twice, lambda carry, scan: carry + carry + scan[:, -1:])


def _largest(block: torch.Tensor) -> torch.Tensor:
    return block.amax(dim=1, keepdim=True)


def _total(block: torch.Tensor) -> torch.Tensor:
    return block.sum(dim=1, keepdim=True)


def _in_half_precision(evidence: Compared, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields carries and scans that go through the 16 bits of the result."""
    dtype, name, N = evidence.wanted.dtype, evidence.returns, x.shape[1]
    if dtype == torch.float32 or step >= N:
        return

    def rounded_carry(carry: torch.Tensor, scan: torch.Tensor) -> torch.Tensor:
        return rounded(carry + scan[:, -1:], dtype)

    def rounded_sum_too(carry: torch.Tensor, scan: torch.Tensor) -> torch.Tensor:
        return rounded(carry + rounded(scan[:, -1:], dtype), dtype)

    for next_carry in (rounded_carry, rounded_sum_too):
        yield Hypothesis("half-carry", PrefixSum.HALF_CARRY(name=name), _lifted(x, step, next_carry))
    result = rounded(_scanned(x, step), dtype) + _spread(_before(_sums(x, step)), N, step)
    yield Hypothesis("half-carry", PrefixSum.HALF_SCAN(name=name), result)


def _in_turns(evidence: Compared, x: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields turns that read the first block again, and turns that begin at each column."""
    N = x.shape[1]
    if step < N:
        loop = Loop(N, step, (evidence.exercise.arguments[0],), lambda columns: x[:, columns].cumsum(dim=1)[:, :N])
        # Where numbers are alike, the first block is like any other, and a rounding may look like it.
        least = LEAST_EFFECT * UNIT_ROUNDOFF[torch.bfloat16] * x.abs().cumsum(dim=1)
        for found in turns.no_advance(loop):
            result = found.result
            if isinstance(result, torch.Tensor) and bool(((result - x.cumsum(dim=1)).abs() > least).any()):
                yield found
    if N > 2:
        for said, _, _ in islice(turns.too_many(N, step, where=" in the carry"), 1):
            yield _made("no-advance", said, x, lambda x: _before(_windows(x, step)) + x)


def _windows(x: torch.Tensor, step: int) -> torch.Tensor:
    """Returns the sum of `step` columns from each column on, [M, N]; past the end of the row there is nothing."""
    so_far = torch.cat([torch.zeros_like(x[:, :1]), x.cumsum(dim=1)], dim=1)
    columns = torch.arange(x.shape[1], device=x.device)
    return so_far[:, (columns + step).clamp(max=x.shape[1])] - so_far[:, columns]
