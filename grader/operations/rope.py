"""Rotary position embedding: q [B, H, S, D], cos and sin [P, D / 2], positions [B, S] -> z [B, H, S, D].

a and e are the halves of a head, c and n the rows of cos and sin at its position: z = (a c - e n, e c + a n).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis, reread, supposed

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence

CAUSES = ("neighbours-paired", "new-for-old", "position-is-s", "batch-zero", "head-zero")
PLAIN_CAUSES = ("rotated-back", "one-sign", "half-unrotated", "tables-swapped", "one-position")
LOST_DIGITS = "The tables are fp32: a tile in fp16 times one in fp32 is fp32, as long as nobody rounds it."


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Two products in fp32 and their sum, each rounded once: 2 u of |a c| + |e n|; a fused multiply-add takes less.

    Twice that: torch in fp32, which timed results are compared with first, rounds as often (0.99 of 2 u at 67 million).
    """
    return terms(inputs, ref).mul_(4 * U32)


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Of each sum that of its two |products|."""
    q, cos, sin, positions = inputs
    a, e = q.abs().chunk(2, dim=-1)
    c, n = (table[positions][:, None].abs() for table in (cos, sin))
    return torch.cat((a * c + e * n, e * c + a * n), dim=-1)


def mistakes(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    q, cos, sin, positions = inputs
    c, n = cos[positions][:, None], sin[positions][:, None]
    a, e = q.chunk(2, dim=-1)
    for id, sentence, first, second in _other_sums(evidence, a, e, c, n):
        yield _of_sums(id, sentence, first, second)
    sentence = (
        "Neighbours are paired, elements 2 i and 2 i + 1. Here element i belongs to element D / 2 + i: the halves of a "
        "head are paired."
    )
    even, odd = q[..., 0::2], q[..., 1::2]
    found = _of_sums("neighbours-paired", sentence, (even * c, -odd * n), (odd * c, even * n))
    yield found
    yield replace(found, result=_interleaved(found.result), rounding=_interleaved(found.rounding))
    yield from _other_rows(evidence, inputs)
    yield from _other_elements(evidence, inputs)
    yield from _tables_misread(evidence, inputs)


Sum = tuple[torch.Tensor, torch.Tensor]  # of two products


def _of_sums(id: str, sentence: str, first: Sum, second: Sum) -> Hypothesis:
    """A mistake that makes the halves of a head of these sums."""
    result = torch.cat((first[0] + first[1], second[0] + second[1]), dim=-1)
    sizes = torch.cat((first[0].abs() + first[1].abs(), second[0].abs() + second[1].abs()), dim=-1)
    return Hypothesis(id, sentence, result, rounding=2 * U32 * sizes)


def _interleaved(halves: torch.Tensor) -> torch.Tensor:
    return torch.stack(halves.chunk(2, dim=-1), dim=-1).flatten(-2)


def _other_sums(
    evidence: Evidence, a: torch.Tensor, e: torch.Tensor, c: torch.Tensor, n: torch.Tensor
) -> Iterator[tuple[str, str, Sum, Sum]]:
    """Signs, tables and halves exchanged, left out, or overwritten."""
    (q, cos, sin, _), z = evidence.exercise.arguments, evidence.returns
    first, second, nothing = (a * c, -e * n), (e * c, a * n), torch.zeros_like(a)
    yield "rotated-back", f"{z} is rotated the other way round: {sin} has the wrong sign in both halves.", (
        a * c, e * n), (e * c, -a * n)  # fmt: skip
    sentence = "In the second half a * n is subtracted; it has to be added: e * c + a * n."
    yield "one-sign", sentence, first, (e * c, -a * n)
    sentence = "In the first half e * n is added; it has to be subtracted: a * c - e * n."
    yield "one-sign", sentence, (a * c, e * n), second
    sentence = f"The second half of each head of {z} is not rotated: it is that of {q}."
    yield "half-unrotated", sentence, first, (e, nothing)
    sentence = f"The first half of each head of {z} is not rotated: it is that of {q}."
    yield "half-unrotated", sentence, (a, nothing), second
    sentence = f"{z} is made with {sin} where {cos} belongs, and the other way round."
    yield "tables-swapped", sentence, (a * n, -e * c), (e * n, a * c)
    sentence = (
        f"The second half of each head is made from the first half of {z}, not of {q}: a is overwritten before "
        "e * c + a * n uses it."
    )
    yield "new-for-old", sentence, first, (e * c, sum(first) * n)
    sentence = (
        f"The first half of each head is made from the second half of {z}, not of {q}: e is overwritten before "
        "a * c - e * n uses it."
    )
    yield "new-for-old", sentence, (a * c, -sum(second) * n), second


def _other_rows(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Rows of the tables that the positions do not ask for, or one table in place of the other."""
    q, cos, sin, positions = inputs
    name = evidence.exercise.arguments[3]
    in_order = torch.arange(positions.shape[1]).expand_as(positions)
    sentence = (
        f"Row s of the tables is used for q[:, :, s], whatever {name} says: a position is a number that a program has "
        "to load."
    )
    yield from supposed(evidence, "position-is-s", sentence, [q, cos, sin, in_order])
    sentence = f"Every batch is rotated by the {name} of batch 0."
    yield from supposed(evidence, "batch-zero", sentence, [q, cos, sin, positions[:1].expand_as(positions)])
    sentence = f"Every position of a batch is rotated by the first of its {name}."
    yield from supposed(evidence, "one-position", sentence, [q, cos, sin, positions[:, :1].expand_as(positions)])

    for used, left_out, tables in ((1, 2, [cos, cos]), (2, 1, [sin, sin])):
        names = evidence.exercise.arguments
        sentence = f"{evidence.returns} is made from {names[used]} twice: {names[left_out]} is not used."
        yield from supposed(evidence, "wrong-operand", sentence, [q, *tables, positions])


def _other_elements(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Elements of q that belong elsewhere in the result."""
    q, *others = inputs
    name, z = evidence.exercise.arguments[0], evidence.returns
    sentence = f"Every batch of {z} is made from batch 0 of {name}."
    yield from supposed(evidence, "batch-zero", sentence, [q[:1].expand_as(q), *others])
    sentence = f"Every head of {z} is made from head 0 of {name}."
    yield from supposed(evidence, "head-zero", sentence, [q[:, :1].expand_as(q), *others])
    sentence = f"Every position of {z} is made from position 0 of {name}."
    yield from supposed(evidence, "one-position", sentence, [q[:, :, :1].expand_as(q), *others])
    memory, (b, h, s, d) = evidence.inputs[0], evidence.inputs[0].stride()
    readings = (
        ("strides-swapped", (b, s, h, d), f"The strides of heads and of positions of {name} are exchanged."),
        ("stride-ignored", (b, h, s, 1), f"The stride of {name} within a head is not used: its elements lie apart."),
    )
    for id, strides, sentence in readings:
        misread = reread(memory, strides)
        if misread is not None and strides != memory.stride():
            yield from supposed(evidence, id, sentence, [misread.double(), *others])


def _tables_misread(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Both tables read with strides that are not theirs; with those of one alone it is a mistake of any operation."""
    q, cos, sin, positions = inputs
    tables = evidence.inputs[1:3]
    (row, column), columns = tables[0].stride(), tables[0].shape[1]
    names = " and ".join(evidence.exercise.arguments[1:3])
    readings = (
        ((columns, 1), f"The strides of {names} are not used: they are read as if contiguous."),
        ((row, 1), f"The column stride of {names} is not used."),
        ((columns, column), f"The row stride of {names} is not used."),
        ((2 * row, column), f"Every second row of {names} is used: a row holds D / 2 elements, not D."),
    )
    for strides, sentence in readings:
        misread = [reread(one, strides) for one in tables]
        if strides != (row, column) and all(one is not None for one in misread):
            cos, sin = (one.double() for one in misread)
            yield from supposed(evidence, "stride-ignored", sentence, [q, cos, sin, positions])
