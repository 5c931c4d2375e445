"""Each operation that the text may hold is carried out, once, and no fact that others rely on is forgotten."""

from __future__ import annotations

import pytest

from grader.interpreter import known_operations
from grader.interpreter.dtypes import Unsupported
from grader.interpreter.registry import ENTRIES, carries_out
from grader.ttir.operation_table import OPERATIONS, TERMINATORS

FRAME = {"builtin.module", "tt.func"}
# They get the frame, and neither access memory nor have a region.
OF_THE_PROGRAM = {
    "tt.get_program_id", "tt.get_num_programs", "llvm.intr.assume", "tt.assert", "tt.print", "tt.gather",
}  # fmt: skip


def test_what_the_parser_lets_in_is_carried_out_and_nothing_else():
    assert set(ENTRIES) == set(OPERATIONS) - TERMINATORS - FRAME


def test_an_operation_that_nobody_carries_out_is_an_error():
    with pytest.raises(Unsupported, match=r"operation tt\.forgotten is not known here yet"):
        known_operations.entry_of("tt.forgotten")


def test_an_operation_that_two_carry_out_is_an_error():
    with pytest.raises(ValueError, match=r"tt\.load"):
        carries_out("tt.load")(lambda operation: operation)


def test_what_gets_the_frame_says_why():
    stateful = {name for name, entry in ENTRIES.items() if entry.stateful}
    others = {name for name, entry in ENTRIES.items() if entry.access or entry.fold or entry.control}
    assert others < stateful and stateful - others == OF_THE_PROGRAM


@pytest.mark.parametrize("name", known_operations.ACCESSES)
def test_the_operands_of_an_access_are_there(name):
    entry, (fewest, most) = ENTRIES[name], OPERATIONS[name].operands
    told = [*entry.others, *(at for at in (entry.stored, entry.mask) if at is not None)]
    assert len(set(told)) == len(told) and all(0 < at < most for at in told)
    assert entry.stored is None or entry.stored < fewest
