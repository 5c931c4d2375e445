"""Values and operations are written as in the file that the text comes from."""

from __future__ import annotations

import math

import pytest

from grader.ttir.editable import Editable
from grader.ttir.module import Dense
from grader.ttir.written import MOST, UNKNOWN, instead, number, written
from tests.ttir.test_edits import all_edits


@pytest.mark.parametrize(
    ("name", "operands", "attributes", "expected"),
    [
        ("arith.muli", ["rows", "stride"], {}, "rows * stride"),
        ("arith.addi", ["rows * xm", "cols"], {}, "(rows * xm) + cols"),
        ("arith.cmpi", ["cols", "N"], {"predicate": 2}, "cols < N"),
        ("arith.cmpi", ["cols", "N"], {"predicate": 6}, "cols < N"),
        ("arith.cmpf", ["x", "y"], {"predicate": 3}, "x >= y"),
        ("arith.cmpf", ["x", "y"], {"predicate": 13}, "x != y"),
        ("tt.broadcast", ["cols"], {}, "cols"),
        ("arith.maxnumf", ["x", "0.0"], {}, "tl.maximum(x, 0.0)"),
        ("tt.get_program_id", [], {"axis": 1}, "tl.program_id(1)"),
        ("tt.make_range", [], {"start": 0, "end": 16}, "tl.arange(0, 16)"),
        ("arith.constant", [], {"value": Dense((-math.inf,))}, '-float("inf")'),
        ("arith.constant", [], {"value": 0.5}, "0.5"),
        ("tt.no_such", ["x"], {}, UNKNOWN),
        ("arith.addi", ["x" * MOST, "y"], {}, UNKNOWN),
    ],
)
def test_an_operation_is_an_expression(name, operands, attributes, expected):
    assert written(name, operands, attributes) == expected


def test_what_stands_in_the_place_of_what():
    assert instead("N", "M") == "`N` in the place of `M`"
    assert instead("N", UNKNOWN) == "`N` in the place of what is there"
    assert instead("x", "x") == "`x` as an earlier line made it"
    assert number(1e300) == "1e+300" and number(2) == "2" and number(0.0) == "0.0"


def test_values_of_a_text_have_the_names_of_the_file(texts):
    """Names that no file could hold are those of the text."""
    seen = set()
    for text in texts.values():
        for edit in all_edits(Editable(text, "kernels.py", {})):
            assert "%" not in edit.words.replace(" % ", ""), edit.words
            seen.add(edit.words)
    assert sum(UNKNOWN in words for words in seen) < len(seen) / 2
