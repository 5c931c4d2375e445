"""An access is led to memory by its address, corner and mask, and by no value that it moves or compares with."""

from __future__ import annotations

import numpy as np
import pytest

from grader.interpreter.batch import Batch
from grader.interpreter.frame import Frame
from grader.interpreter.memory import CheckedMemory
from grader.interpreter.offset_checks import leading_to_memory, with_checks
from grader.ttir.module import Block, Function, Module, Operation, SourcePlace, Type
from tests.interpreter.made import kind

POINTER, DESCRIPTOR = Type("i32", (), "pointer"), Type("si32", (4, 4), "descriptor")
# By operation: the types of its operands, and which of them lead it.
ACCESSES = {
    "tt.load": ((POINTER, "i1", "i32"), [0, 1]),
    "tt.store": ((POINTER, "i32", "i1"), [0, 2]),
    "tt.atomic_load": ((POINTER, "i1"), [0, 1]),
    "tt.atomic_store": ((POINTER, "i32", "i1"), [0, 2]),
    "tt.atomic_rmw": ((POINTER, "i32", "i1"), [0, 2]),
    "tt.atomic_cas": ((POINTER, "i32", "i32"), [0]),
    "tt.atomic_poll": ((POINTER, "i32", "i64"), [0]),
    "tt.descriptor_load": ((DESCRIPTOR, "i32", "i32"), [0, 1, 2]),
    "tt.descriptor_store": ((DESCRIPTOR, "4x4xi32", "i32", "i32"), [0, 2, 3]),
    "tt.descriptor_reduce": ((DESCRIPTOR, "4x4xi32", "i32", "i32"), [0, 2, 3]),
    "tt.descriptor_gather": ((DESCRIPTOR, "8xi16", "i32"), [0, 1, 2]),
    "tt.descriptor_scatter": ((DESCRIPTOR, "8xi16", "i32", "8x4xi32"), [0, 1, 2]),
}


def access(name: str) -> Operation:
    types = tuple(one if isinstance(one, Type) else kind(one) for one in ACCESSES[name][0])
    return Operation(name, tuple(range(len(types))), (), types)


@pytest.mark.parametrize("name", ACCESSES)
def test_numbers_are_followed_to_what_leads_an_access(name):
    made = access(name)
    block = Block(made.operands, made.operand_types, (made, Operation("tt.return")))
    function = Function("f", True, (), (block,), (), len(made.operands))
    assert sorted(number for _, number in leading_to_memory(Module({"f": function}))) == ACCESSES[name][1]


@pytest.mark.parametrize("name", ACCESSES)
def test_a_lost_number_that_leads_an_access_is_noted_and_no_other(name):
    made, noted = access(name), []
    run = with_checks(made, lambda frame, *operands: None, True, False)
    for lost in made.operands:
        batch = Batch(CheckedMemory(), (1, 1, 1))
        operands = [np.ones(1, bool) if one.element == "i1" else np.zeros(1, np.int32) for one in made.operand_types]
        batch.lost.note(operands[lost], ("int32", SourcePlace(3)), np.ones(1, bool))
        if run is not None:
            run(Frame(batch, []), *operands)
        noted += [lost] * len(batch.overflows)
    assert noted == ACCESSES[name][1]
