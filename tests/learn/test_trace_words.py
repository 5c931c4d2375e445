"""Steps of a traced program in words, and as stops at statements."""

from __future__ import annotations

import ast

import pytest

from grader.course.folder import all_folders
from grader.learn.trace.stops import first_of, stops_of
from grader.learn.trace.words import full, legend, plain, short
from grader.wire.traced_program import TracedStep as Step
from tests.conftest import ROOT

TILE = {"dtype": "fp32", "shape": [2, 2], "numbers": ["1", "2.5", "inf", "0"], "marks": "..?m", "masked": 1, "empty": 1}
LOAD = TILE | {"argument": "x", "box": [1, 2, 0, 4], "elements": 4}
WIDE = {"dtype": "fp16", "shape": [64], "low": "-1", "high": "2"}


@pytest.mark.parametrize(
    ("name", "step", "lines"),
    [
        ("row", Step("value", dtype="int32", numbers=["7"], marks="."), ["row = 7  int32"]),
        ("i > 2", Step("value", dtype="bool", numbers=["0"], marks="."), ["i > 2 = false  bool"]),
        ("best", Step("value", dtype="fp32", numbers=["4"], marks="?"), ["best = ?  fp32"]),
        ("x_ptr", Step("parameter", dtype="pointer", numbers=["0"], marks=".", argument="x"), ["x_ptr -> x"]),
        ("p", Step("value", dtype="pointer", shape=[2], numbers=["4", "6"], marks="..", argument="x"), [
            "p -> x + [4 6]"]),
        ("p", Step("value", dtype="pointer", shape=[64], low="4", high="67"), ["p -> memory + 4 .. 67"]),
        ("d", Step("parameter", dtype="descriptor", shape=[8]), ["d = a descriptor of [8]"]),
        ("d", Step("value", dtype="descriptor", shape=[2, 8], numbers=["5", "7", "16", "1"], marks="...."), [
            "d = a descriptor of [2, 8] from shape [5, 7], strides [16, 1]"]),
        ("x", Step("load", **LOAD), [
            "x = [  1 2.5]  fp32 [2, 2], from 4 elements within x[1:3, 0:5], 1 of 4 lanes masked off",
            "    [  ? (0)]"]),
        ("", Step("store", **TILE | {"argument": "z"}), [
            "nothing of z <- [  1 2.5]  fp32 [2, 2], 1 of 4 lanes masked off",
            "                [  ? (0)]"]),
        ("x", Step("value", **WIDE, nans=2, empty=3), ["x = -1 .. 2  fp16 [64], 3 of 64 lanes hold nothing, 2 NaN"]),
        ("x", Step("value", dtype="fp16", shape=[64], low="2", high="2", outside=64), [
            "x = 2  fp16 [64], 64 of 64 lanes out of bounds"]),
        ("mask", Step("value", dtype="bool", shape=[64], elements=40), ["mask = true in 40 of 64 lanes  bool [64]"]),
        ("rows", Step("value", dtype="int32", shape=[3, 1], numbers=["0", "1", "2"], marks="..."), [
            "rows = [0 1 2]  int32 [3, 1]"]),
        ("tl.max", Step("value", operation="tl.max", dtype="fp32", numbers=["1"], marks="."), ["tl.max: 1  fp32"]),
        ("sum", Step("printed", dtype="fp32", numbers=["1"], marks="."), ["printed sum 1  fp32"]),
    ],
)  # fmt: skip
def test_a_step_in_words(name, step, lines):
    assert [plain(line) for line in full(name, step)] == lines


def test_beside_the_source_a_tile_takes_one_line():
    assert plain(short("x", Step("load", **LOAD))) == "x = [[1 2.5] [? (0)]]"
    numbers = {"numbers": [str(n) for n in range(64)], "marks": "." * 64}
    assert plain(short("x", Step("value", dtype="int32", shape=[64], **numbers))).endswith("14 15] ...]")
    assert plain(short("x", Step("value", **WIDE, nans=2))) == "x = -1 .. 2, 2 NaN"


def test_marks_are_explained_where_they_occur():
    assert [plain(line)[:5] for line in legend([Step("load", **LOAD)])] == ["(v) a", "? hol"]
    assert legend([Step("value", **WIDE)]) == []


SOURCE = """
def helper(v):
    w = v * 2
    return w

def kernel(x):
    a = 1
    b = helper(
        x)
    if b > 0:
        c = 2
    else:
        c = 3
    d = b + 1
"""


def value(line: int, variable: str = "", kind: str = "value", **more) -> Step:
    return Step(kind, line, variable, "+", dtype="int32", numbers=["1"], marks=".", **more)


def stops(*steps: Step):
    return stops_of(list(steps), ast.parse(SOURCE))


@pytest.mark.parametrize("folder", all_folders(ROOT), ids=lambda folder: folder.id)
def test_every_line_of_every_solution_belongs_to_a_statement(folder):
    """Also where a function has no parameters, as the one that lists configurations."""
    text = folder.solution_file.read_text(encoding="utf-8")
    steps = [Step("value", line=number) for number in range(1, len(text.splitlines()) + 1)]
    for stop in stops_of(steps, ast.parse(text)):
        assert 0 < stop.line <= stop.steps[-1].line <= stop.statement.end


def test_a_call_is_a_stop_before_and_after_what_it_runs():
    found = stops(value(6, "x", "parameter"), value(3, "w", calls=[8]), value(14, "d"))
    assert [(stop.line, stop.calls, stop.note) for stop in found] == [
        (6, (), ""), (8, (), "calls"), (3, (8,), ""), (8, (), "returned"), (14, (), ""),
    ]  # fmt: skip
    assert [name for name, _ in found[3].told] == ["b"] and found[3].statement.end == 9


def test_constants_stand_where_they_are_written_and_only_in_the_branch_that_runs():
    constants = [value(line, name, "constant") for line, name in ((7, "a"), (11, "c"), (13, "c"))]
    found = stops(value(6, "x", "parameter"), *constants, value(8, "b"), value(10), value(14, "d"))
    assert [stop.line for stop in found] == [6, 7, 8, 10, 14]


def test_a_condition_is_named_as_it_is_written():
    (stop,) = stops(Step("value", 10, "", ">", dtype="bool", numbers=["1"], marks="."))
    assert [name for name, _ in stop.told] == ["b > 0"]


def test_the_first_stop_of_a_line_is_that_of_its_statement():
    found = stops(value(6, "x", "parameter"), value(8, "b"), value(14, "d"))
    assert [first_of(found, line) for line in (0, 9, 14, 99)] == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("line", "operations", "shown"),
    [
        ("a, b = tl.cdiv(M, 2), tl.cdiv(N, 2)", ["+", "//", "+", "//"], ["tl.cdiv", "tl.cdiv"]),
        ("a, b = tl.cdiv(M + 3, 2), N + 1", ["+", "+", "//", "+"], ["+", "tl.cdiv", "+"]),
        ("a, b = tl.cdiv(M, 2), N // 2", ["+", "//", "//"], ["+", "//", "//"]),  # which one is it?
    ],
)
def test_a_division_that_rounds_up_is_named_as_it_is_written(line, operations, shown):
    steps = [Step("value", 2, "", name, dtype="int32", numbers=["1"], marks=".") for name in operations]
    (stop,) = stops_of(steps, ast.parse(f"def kernel(M, N):\n    {line}\n"))
    assert [name for name, _ in stop.told] == shown
