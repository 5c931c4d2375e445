"""Every operation that the text may hold is carried out by somebody, and nothing waits for what no text may hold."""

from __future__ import annotations

from grader.interpreter import accesses, blocks, control, promises
from grader.interpreter.pure_operations import APPROXIMATE, KNOWN
from grader.ttir.operation_table import OPERATIONS, TERMINATORS

WITH_STATE = {*accesses.HANDLERS, *blocks.HANDLERS, *control.HANDLERS, *promises.HANDLERS}
FRAME = {"builtin.module", "tt.func"}


def test_each_known_operation_has_one_place():
    assert not KNOWN & WITH_STATE
    assert set(OPERATIONS) - set(TERMINATORS) - FRAME <= KNOWN | WITH_STATE


def test_no_operation_is_prepared_that_the_parser_refuses():
    assert not KNOWN - set(OPERATIONS)
    assert APPROXIMATE <= KNOWN
