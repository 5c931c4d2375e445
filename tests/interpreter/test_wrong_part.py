"""The part of a wrong call with which tries begin: its programs, and the values that are equal in it."""

from __future__ import annotations

import numpy as np
import pytest

from grader.interpreter.batch import Batch
from grader.interpreter.memory import CheckedMemory
from grader.interpreter.mends import PatchedKernel
from grader.interpreter.wrong_part import ComputedValues, WrongPart, some_of
from grader.ttir.edits import edits

PART = WrongPart(0, ((1, 0, 0), (2, 3, 1)), frozenset({0}))
TEXT = """#loc = loc("a.py":1:1)
"builtin.module"() ({
  "tt.func"() <{function_type = (i32, i32, i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%x: i32 loc(unknown), %y: i32 loc(unknown), %z: i32 loc(unknown)):
    %0 = "arith.addi"(%x, %y) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc)
    "tt.return"() : () -> () loc(#loc)
  }) : () -> () loc(#loc)
}) : () -> () loc(#loc)
"""


def test_programs_have_numbers_in_another_grid_as_far_as_it_has_them():
    assert PART.numbers((3, 4, 2)) == [1, 2 + 3 * (3 + 4 * 1)]
    assert PART.numbers((2, 4, 2)) == [1]


def test_programs_are_found_in_a_map_of_writers():
    grid = (3, 4, 2)
    writers = np.array([-1, 1 * 8, (2 * 4 + 3) * 2 + 1, 5], np.int32)
    assert PART.wrote(writers, grid).tolist() == [False, True, True, False]
    assert some_of(writers, grid) == [(0, 2, 1), (1, 0, 0), (2, 3, 1)]
    assert some_of(np.array([-1], np.int32), grid) == []


@pytest.fixture
def tried() -> dict[str, object]:
    """What is equal for edits that do the same, by words, where x is 2, y is 3 and z is 3."""
    kernel = PatchedKernel(TEXT, "a.py", 1, {})
    computed = ComputedValues(kernel.kernel.module)
    values = [np.array([2], np.int32), np.array([3], np.int32), np.array([3], np.int32)]
    kernel.kernel.entry.call(Batch(CheckedMemory(), (1, 1, 1)), values, None, 1, computed)
    found = [edit for level in (0, 1) for edit in edits(kernel.editable, level, kernel.editable.groups)]
    return {edit.words: computed.done_by(edit) for edit in found}


def test_an_edit_with_an_equal_value_does_nothing(tried):
    assert tried["`z` in the place of `y`"] is None
    assert tried["`z` in the place of `x`"] is not None


def test_edits_with_equal_values_do_the_same(tried):
    assert tried["`z` in the place of `x`"] == tried["`y` in the place of `x`"]
    assert tried["`x` in the place of `y`"] != tried["`y` in the place of `x`"]
