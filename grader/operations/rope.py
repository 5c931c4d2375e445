"""Rotary position embedding: q [B, H, S, D], cos and sin [P, D / 2], positions [B, S] -> z [B, H, S, D].

a and e are the halves of a head, c and n the rows of cos and sin at its position: z = (a c - e n, e c + a n).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis, supposed
from grader.operations.mistakes import first_of_all, operands, strides
from grader.sentences import Said, Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Compared

CAUSES = ("neighbours-paired", "new-for-old", "position-is-s")
PLAIN_CAUSES = ("rotated-back", "one-sign", "half-unrotated", "tables-swapped", "one-position")


class Rope(Sentence):
    """Sentences about what is paired, added or read instead of what a rotation takes."""

    NEIGHBOURS_PAIRED = (
        "Neighbours are paired, elements 2 i and 2 i + 1. Here element i belongs to element D / 2 + i: the halves of a "
        "head are paired."
    )

    ROTATED_BACK = "{z} is rotated the other way round: {sin} has the wrong sign in both halves."
    SUBTRACTED_IN_SECOND = "In the second half a * n is subtracted; it has to be added: e * c + a * n."
    ADDED_IN_FIRST = "In the first half e * n is added; it has to be subtracted: a * c - e * n."
    SECOND_UNROTATED = "The second half of each head of {z} is not rotated: it is that of {q}."
    FIRST_UNROTATED = "The first half of each head of {z} is not rotated: it is that of {q}."
    TABLES_SWAPPED = "{z} is made with {sin} where {cos} belongs, and the other way round."
    NEW_FIRST_USED = (
        "The second half of each head is made from the first half of {z}, not of {q}: a is overwritten before "
        "e * c + a * n uses it."
    )
    NEW_SECOND_USED = (
        "The first half of each head is made from the second half of {z}, not of {q}: e is overwritten before "
        "a * c - e * n uses it."
    )

    POSITION_IS_S = (
        "Row s of the tables is used for q[:, :, s], whatever {positions} says: a position is a number that a program "
        "has to load."
    )
    POSITIONS_OF_BATCH_ZERO = "Every batch is rotated by the {positions} of batch 0."
    FIRST_OF_POSITIONS = "Every position of a batch is rotated by the first of its {positions}."
    FIRST_OF_ALL = "Every token is rotated by the first of all {positions}: a pointer alone loads one number."

    STRIDES_EXCHANGED = "The strides of heads and of positions of {q} are exchanged."
    HEAD_STRIDE_IGNORED = "The stride of {q} within a head is not used: its elements lie apart."

    TABLES_AS_CONTIGUOUS = "The strides of {cos} and {sin} are not used: they are read as if contiguous."
    COLUMN_STRIDE_IGNORED = "The column stride of {cos} and {sin} is not used."
    ROW_STRIDE_IGNORED = "The row stride of {cos} and {sin} is not used."
    EVERY_SECOND_ROW = "Every second row of {cos} and {sin} is used: a row holds D / 2 elements, not D."

    LOST_DIGITS = "The tables are fp32: a tile in fp16 times one in fp32 is fp32, as long as nobody rounds it."


LOST_DIGITS = Rope.LOST_DIGITS()


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S, [B, H, S, D]: twice the error of two products in fp32 and their sum, each rounded once. This error
    is 2 u of |a c| + |e n|; a fused multiply-add takes less.

    It counts twice since torch in fp32, with which timed results are compared first, rounds as often: in 67 million
    elements it took up to 0.99 of 2 u.
    """
    return terms(inputs, ref).mul_(4 * U32)


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the two |products| of each element, [B, H, S, D]."""
    q, cos, sin, positions = as_tensors(inputs)
    a, e = q.abs().chunk(2, dim=-1)
    c, n = (table[positions][:, None].abs() for table in (cos, sin))
    return torch.cat((a * c + e * n, e * c + a * n), dim=-1)


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    q, cos, sin, positions = given = as_tensors(inputs)
    c, n = cos[positions][:, None], sin[positions][:, None]
    a, e = q.chunk(2, dim=-1)
    for id, said, first, second in _other_sums(evidence, a, e, c, n):
        result, rounding = _halves(first, second)
        yield Hypothesis(id, said, result, rounding)
    even, odd = q[..., 0::2], q[..., 1::2]
    result, rounding = _halves((even * c, -odd * n), (odd * c, even * n))
    yield Hypothesis("neighbours-paired", Rope.NEIGHBOURS_PAIRED(), result, rounding)
    yield Hypothesis("neighbours-paired", Rope.NEIGHBOURS_PAIRED(), _interleaved(result), _interleaved(rounding))
    yield from _other_rows(evidence, given)
    yield from _other_elements(evidence, given)
    yield from _tables_misread(evidence, given)


Sum = tuple[torch.Tensor, torch.Tensor]  # of two products


def _halves(first: Sum, second: Sum) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns heads whose halves are these sums, and what arithmetic may add to their error."""
    result = torch.cat((first[0] + first[1], second[0] + second[1]), dim=-1)
    sizes = torch.cat((first[0].abs() + first[1].abs(), second[0].abs() + second[1].abs()), dim=-1)
    return result, 2 * U32 * sizes


def _interleaved(halves: torch.Tensor) -> torch.Tensor:
    return torch.stack(halves.chunk(2, dim=-1), dim=-1).flatten(-2)


def _other_sums(
    evidence: Compared, a: torch.Tensor, e: torch.Tensor, c: torch.Tensor, n: torch.Tensor
) -> Iterator[tuple[str, Said, Sum, Sum]]:
    """Yields id, sentence and the sums of both halves: signs, tables or halves exchanged, left out or overwritten."""
    (q, cos, sin, _), z = evidence.exercise.arguments, evidence.returns
    first, second, nothing = (a * c, -e * n), (e * c, a * n), torch.zeros_like(a)
    yield "rotated-back", Rope.ROTATED_BACK(z=z, sin=sin), (a * c, e * n), (e * c, -a * n)
    yield "one-sign", Rope.SUBTRACTED_IN_SECOND(), first, (e * c, -a * n)
    yield "one-sign", Rope.ADDED_IN_FIRST(), (a * c, e * n), second
    yield "half-unrotated", Rope.SECOND_UNROTATED(z=z, q=q), first, (e, nothing)
    yield "half-unrotated", Rope.FIRST_UNROTATED(z=z, q=q), (a, nothing), second
    yield "tables-swapped", Rope.TABLES_SWAPPED(z=z, sin=sin, cos=cos), (a * n, -e * c), (e * n, a * c)
    yield "new-for-old", Rope.NEW_FIRST_USED(z=z, q=q), first, (e * c, (first[0] + first[1]) * n)
    yield "new-for-old", Rope.NEW_SECOND_USED(z=z, q=q), (a * c, -(second[0] + second[1]) * n), second


def _other_rows(evidence: Compared, inputs: Sequence[torch.Tensor]) -> Iterator[Hypothesis]:
    """Yields rows of the tables that the positions do not ask for, and one table used for both."""
    q, cos, sin, positions = inputs
    name = evidence.exercise.arguments[3]
    in_order = torch.arange(positions.shape[1]).expand_as(positions)
    yield from supposed(evidence, "position-is-s", Rope.POSITION_IS_S(positions=name), [q, cos, sin, in_order])
    said = Rope.POSITIONS_OF_BATCH_ZERO(positions=name)
    yield from supposed(evidence, "batch-zero", said, [q, cos, sin, positions[:1].expand_as(positions)])
    said = Rope.FIRST_OF_POSITIONS(positions=name)
    yield from supposed(evidence, "one-position", said, [q, cos, sin, positions[:, :1].expand_as(positions)])
    said = Rope.FIRST_OF_ALL(positions=name)
    yield from supposed(evidence, "one-position", said, [q, cos, sin, positions[:1, :1].expand_as(positions)])

    for used, left_out in ((1, 2), (2, 1)):
        yield from operands.used_twice(evidence, inputs, used, left_out)


def _other_elements(evidence: Compared, inputs: Sequence[torch.Tensor]) -> Iterator[Hypothesis]:
    """Yields elements of q that belong elsewhere in the result."""
    name = evidence.exercise.arguments[0]
    for axis, id, part in ((0, "batch-zero", "batch"), (1, "head-zero", "head"), (2, "one-position", "position")):
        yield from first_of_all.mistakes(evidence, inputs, id, axis, part)
    b, h, s, d = as_tensor(evidence.inputs[0]).stride()
    for id, used, sentence in (
        ("strides-swapped", (b, s, h, d), Rope.STRIDES_EXCHANGED),
        ("stride-ignored", (b, h, s, 1), Rope.HEAD_STRIDE_IGNORED),
    ):
        yield from strides.misread(evidence, inputs, id, sentence(q=name), {0: used})


def _tables_misread(evidence: Compared, inputs: Sequence[torch.Tensor]) -> Iterator[Hypothesis]:
    """Yields both tables read with wrong strides; a single table read in this way is a mistake of any operation."""
    table = as_tensor(evidence.inputs[1])
    (row, column), columns = table.stride(), table.shape[1]
    cos_name, sin_name = evidence.exercise.arguments[1:3]
    readings = (
        ((columns, 1), Rope.TABLES_AS_CONTIGUOUS),
        ((row, 1), Rope.COLUMN_STRIDE_IGNORED),
        ((columns, column), Rope.ROW_STRIDE_IGNORED),
        ((2 * row, column), Rope.EVERY_SECOND_ROW),
    )
    for used, sentence in readings:
        said = sentence(cos=cos_name, sin=sin_name)
        yield from strides.misread(evidence, inputs, "stride-ignored", said, {1: used, 2: used})
