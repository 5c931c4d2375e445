"""A loop whose counter leaves its type goes on behind its end: it is told, and not carried out."""

from __future__ import annotations

import pytest
import torch

from grader.wire.messages import COUNTER

LOOPS = """
@triton.jit
def kernel(z_ptr, first, last, step, only):
    if tl.program_id(0) >= only:
        total = 0
        for i in range(first, last, step):
            total += 1
        tl.store(z_ptr + tl.program_id(0), total)

def entry(x):
    z = torch.zeros(3, dtype=torch.int32, device=x.device)
    kernel[(3,)](z, {first}, {last}, {step}, {only})
    return z
"""
LARGEST = 2**31 - 1


@pytest.mark.parametrize(
    ("first", "last", "step", "turns", "wraps"),
    [
        (LARGEST - 40, LARGEST, 16, 3, True),
        (LARGEST - 40, LARGEST - 1, 8, 5, False),  # it ends at the largest number
        (LARGEST - 47, LARGEST - 15, 16, 2, False),
        (LARGEST - 47, LARGEST - 15, 17, 2, False),
        (LARGEST - 30, LARGEST - 15, 31, 1, True),
        (LARGEST, LARGEST, 16, 0, False),
        (-LARGEST, LARGEST, LARGEST, 2, False),
        (2**31 - 40, 2**31 + 40, 16, 5, False),  # in 64 bits
    ],
)
def test_a_counter_that_leaves_its_type_is_told(child, first, last, step, turns, wraps):
    child.load(LOOPS.format(first=first, last=last, step=step, only=0))
    reply = child.run("entry", x=torch.ones(1))
    assert reply.error is None and reply.output.tolist() == [turns] * 3
    line = child.line("for i in range")
    assert [(one["what"], one["line"], one["program"]) for one in reply.broken] == [(COUNTER, line, [0])] * wraps


def test_a_program_that_does_not_come_there_has_no_counter(child):
    child.load(LOOPS.format(first=LARGEST - 40, last=LARGEST, step=16, only=2))
    reply = child.run("entry", x=torch.ones(1))
    assert [one["program"] for one in reply.broken] == [[2]] and reply.output.tolist() == [0, 0, 3]
