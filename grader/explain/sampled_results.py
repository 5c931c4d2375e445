"""Explains mistakes that a sample of a launch's programs shows in a result too large to be computed whole."""

from __future__ import annotations

import math

import torch

from grader.course.trial import short_dtype
from grader.explain.causes import Cause
from grader.explain.evidence import Evidence
from grader.explain.verdict import Verdict, failed
from grader.numerics.comparison import Comparison
from grader.sentences import Sentence


class Samples(Sentence):
    GRID_TOO_SMALL = "{name} is not covered by a grid of {grid} programs: has it been limited, or rounded down?"
    BLOCK_TOO_SHORT = "The end of each row of {name} is never written: the block ends before the row does."
    END_LEFT_OUT = "The last program does not write the end of {name}: does its mask compare offsets as whole numbers?"
    LEFT_FOR_THE_LAST = (
        "Other programs of the sample write {each:#element} each, one after the other. That leaves {left} for program "
        "{last}, which writes {count}."
    )
    AT_MOST = "Each program writes {each} elements of {name}, together {together} of {total} at most."
    PARTS_LEFT_OUT = "Parts of {name} are never written: some of a grid of {grid} programs write less than others."
    MISSING = (
        "Most of a sample of {sample} programs write {each:#element} each. Some write less, by {short} in all, and the "
        "whole grid has room for {room}."
    )
    NOTHING_DONE = "A program of a sample writes nothing to {name}, and loads nothing."
    OFFSETS_MEET = "Offsets in {name} meet each other."
    STORED_AGAIN = "{times} values are stored in {count:#element} of {name}: others get none."
    WRONG = "{name} is wrong in {count:#element} of {total} that program {program} writes, {dtype}."
    FIRST_WRONG = "First wrong element: {name}[{index:,}] is {yours:.9g}, expected {expected:.9g}."


def too_few(name: str, shape: list[int], grid: list[int], each: int) -> Verdict:
    """Returns the verdict on a grid whose programs, with `each` elements written by each, cannot fill the result."""
    programs = math.prod(grid)
    said = Samples.GRID_TOO_SMALL(name=name, grid=" x ".join(map(str, grid)))
    if len(shape) == 2 and programs == shape[0] and each < shape[1]:
        said = Samples.BLOCK_TOO_SHORT(name=name)
    at_most = Samples.AT_MOST(name=name, each=each, together=programs * each, total=math.prod(shape))
    return failed(Cause.UNWRITTEN, said, at_most, kind="memory")


def nothing_done(name: str) -> Verdict:
    """Returns the verdict on a program that a number which does not fit its type leads to no element at all."""
    return failed(Cause.UNWRITTEN, Samples.NOTHING_DONE(name=name), kind="memory")


def parts_left_out(name: str, grid: list[int], each: int, sample: int, short: int, room: int) -> Verdict:
    """Returns the verdict on programs that leave out parts of a result: in a sample `short` elements are missing of
    what others write, and in the whole grid no more than `room` may be."""
    said = Samples.PARTS_LEFT_OUT(name=name, grid=" x ".join(map(str, grid)))
    missing = Samples.MISSING(sample=sample, each=each, short=short, room=room)
    return failed(Cause.UNWRITTEN, said, missing, kind="memory")


def end_left_out(name: str, each: int, left: int, last: int, count: int) -> Verdict:
    """Returns the verdict on a last program that writes `count` of the `left` elements that remain for it.

    each: the elements that each program before the last writes. last: the number of the last program.
    """
    why = Samples.LEFT_FOR_THE_LAST(each=each, left=left, last=last, count=count)
    return failed(Cause.UNWRITTEN, Samples.END_LEFT_OUT(name=name), why, kind="memory")


def stored_again(name: str, times: int, stored: int) -> Verdict:
    """Returns the verdict on a launch that writes `times` values to `stored` elements, fewer than values."""
    shown = Samples.STORED_AGAIN(name=name, times=times, count=stored)
    return failed(Cause.UNWRITTEN, Samples.OFFSETS_MEET(name=name), shown, kind="memory")


def wrong_values(
    evidence: Evidence, program: tuple[int, ...], elements: int, comparison: Comparison, parts: list[torch.Tensor]
) -> Verdict:
    """Returns the verdict on wrong values of a program, which writes `elements` elements of the result.

    parts: for each dimension, the indices of the result that the comparison covers.
    """
    name, first = evidence.returns, comparison.first_wrong
    index = [int(part[at]) for part, at in zip(parts, first)]
    yours, expected = float(comparison.out[first]), float(comparison.expected[first])
    dtype = short_dtype(evidence.trial.dtype)
    return failed(
        Cause.WRONG_VALUES,
        Samples.WRONG(name=name, count=comparison.wrong_count, total=elements, program=program, dtype=dtype),
        Samples.FIRST_WRONG(name=name, index=index, yours=yours, expected=expected),
    )
