"""Mistakes of a loop over blocks of what is summed up: turns too few or too many, turns that read or keep the wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from grader.operations.hypothesis import Hypothesis, Result
from grader.sentences import Fields, Said, Sentence

CAUSES = ("last-left-out", "blocks-left-out", "only-last-block", "no-advance")
Index = slice | torch.Tensor  # numbers of terms, [terms], int64


class Turns(Sentence):
    """Sentences about loops: {terms} says which terms there are, and {last} what there is of a last block."""

    LAST_LEFT_OUT = "The last {term} is left out of the sum."
    ENDS_TOO_EARLY = "Only the first {kept} of {count} {terms}: {loop}, or its mask, ends too early."
    ENDS_WITH_OTHERS = (
        "Only the first {kept} of {count} {terms}: {loop} ends with the {others}, of which there are {there}. It has "
        "to walk over the {walked}."
    )
    ONLY_LAST_BLOCK = "Only the last {last}, as where each turn of the loop replaces the sum and none adds to it."
    ONLY_LAST_RESCALED = (
        "Only the last {last}, as where each turn of the loop replaces the sum and none adds to it. So it is, too, "
        "where the maximum so far stays -inf: then the factor of the sum is 0 in every turn."
    )
    NO_ADVANCE = "Every turn of {loop} reads the first block of {names}, whose addresses do not move with the loop."
    TOO_MANY_TURNS = (
        "Columns count several times{where}: {loop} makes {made:#turn} for {columns:#column} in blocks of {step}, and "
        "{turns} {are} enough. Let its range step by BLOCK_N = {step}, and not by {apart}."
    )


@dataclass(frozen=True)
class Loop:
    """A loop that adds up `count` terms, `step` in a turn, and what a kernel computes from some of the terms alone."""

    count: int
    step: int
    names: tuple[str, ...]  # of the tensors that it walks over
    of: Callable[..., Result]  # takes an Index for each of these
    terms: str = "columns of each row are there"
    last: str = "block of each row is left"
    loop: str = "the loop"
    others: tuple[str, int] = ("", 0)  # what another loop of the kernel walks over, and how many there are
    rescales: bool = False  # what is summed up is multiplied by a factor in each turn

    def of_terms(self, index: Index) -> Result:
        return self.of(*(index for _ in self.names))


def ends_too_early(loop: Loop) -> Iterator[Hypothesis]:
    """Yields loops that make too few turns."""
    for kept in range(loop.step, loop.count, loop.step):
        others, there = loop.others
        found: Fields = dict(kept=kept, count=loop.count, terms=loop.terms, loop=loop.loop)
        said = Turns.ENDS_TOO_EARLY(**found)
        if kept == -(-there // loop.step) * loop.step and there < loop.count:
            said = Turns.ENDS_WITH_OTHERS(**found, others=others, there=there, walked=loop.terms.partition(" ")[0])
        yield Hypothesis("blocks-left-out", said, loop.of_terms(slice(kept)))


def only_last(loop: Loop) -> Iterator[Hypothesis]:
    """Yields turns that replace what was summed up."""
    sentence = Turns.ONLY_LAST_RESCALED if loop.rescales else Turns.ONLY_LAST_BLOCK
    last = slice((loop.count - 1) // loop.step * loop.step, loop.count)
    yield Hypothesis("only-last-block", sentence(last=loop.last), loop.of_terms(last))


def no_advance(loop: Loop, still: tuple[tuple[str, ...], ...] = ()) -> Iterator[Hypothesis]:
    """Yields turns that read the first block again: of the tensors in each of `still`, or of all, and of each alone."""
    alone = tuple((name,) for name in loop.names) if len(loop.names) > 1 else ()
    first = torch.arange(loop.count) % loop.step
    for names in still or (loop.names, *alone):
        said = reads_first_block(names, loop.loop)
        if names == loop.names and loop.count % loop.step:  # where the mask does not move with the loop either
            unmasked = torch.arange(loop.count + -loop.count % loop.step) % loop.step
            yield Hypothesis("no-advance", said, loop.of_terms(unmasked))
        result = loop.of(*(first if name in names else slice(None) for name in loop.names))
        yield Hypothesis("no-advance", said, result)


def reads_first_block(names: tuple[str, ...], loop: str) -> Said:
    """Returns what is said of turns that read the first block of these tensors."""
    return Turns.NO_ADVANCE(names=", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1], loop=loop)


def too_many(
    columns: int, step: int, loop: str = "the loop", where: str = ""
) -> Iterator[tuple[Said, torch.Tensor, int]]:
    """Yields loops whose turns begin less than a block apart, 1 column in range(N): what is said of each, how often
    each column counts, [columns], and the number of turns.

    Loops of two turns are left out: columns that count twice may have another reason.
    """
    turns, apart = -(-columns // step), 1
    while apart < step and 2 * apart < columns:
        made, are = -(-columns // apart), "is" if turns == 1 else "are"
        found: Fields = dict(columns=columns, step=step, turns=turns, are=are, apart=apart, made=made)
        said = Turns.TOO_MANY_TURNS(**found, loop=loop, where=where)
        yield said, times_counted(columns, step, apart).double(), made
        apart *= 2


def last_left_out(term: str, result: Result | None) -> Hypothesis:
    """Returns the mistake of a sum that lacks its last term."""
    return Hypothesis("last-left-out", Turns.LAST_LEFT_OUT(term=term), result)


def times_counted(columns: int, step: int, apart: int) -> torch.Tensor:
    """Returns how often each column counts, [columns], where blocks of `step` columns begin `apart` columns from one
    another."""
    column = torch.arange(columns)
    return column // apart - (column - step).div(apart, rounding_mode="floor").clamp(min=-1)
