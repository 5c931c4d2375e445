"""Calls in which one condition of one argument is broken: each is refused by the solution, and by nothing less."""

from __future__ import annotations

import pytest

from grader import aligned_rows, any_strides, upto
from grader.course.folder import all_folders
from grader.course.promise import stated
from grader.course.unpromised_draws import unpromised_draws
from grader.explain.verdict import FAIL, PASS
from tests.conftest import ROOT
from tests.course.test_drawn import promise_of, verdict_on

ID = "23_descriptor_matmul"
SOLUTION = (ROOT / "solutions/23_descriptor_matmul/descriptor_matmul.py").read_text()


@pytest.mark.parametrize("seed", range(20))
def test_each_condition_is_broken_alone_in_one_row_and_in_several(seed):
    sizes = {"M": upto(160, BLOCK_M=128), "K": upto(160, BLOCK_K=64), "N": upto(40, block=32)}
    options = dict(sizes=sizes, a=aligned_rows("M", "K"), b=any_strides("K", "8*N"), refuses="ValueError")
    promise = stated(["a", "b"], ("float16",), options)
    found = unpromised_draws(promise, seed, "test", 32)
    assert [one.call.number for one in found] == list(range(33, 39))
    assert sorted(one.call.sizes["M"] == 1 for one in found) == [False] * 3 + [True] * 3
    for one in found:
        a, b = promise.data(one.call)
        (row, column), _ = a.layout.strides(a.shape)
        broken = {
            f"a begins {2 * a.layout.offset} bytes after a multiple of 16": a.layout.offset % 8 > 0,
            f"rows of a begin {2 * row} bytes apart, no multiple of 16": row % 8 > 0,
            f"neighbours in a row of a lie {column} elements apart": column != 1,
        }
        assert sum(broken.values()) == 1 and broken[one.because] and b.layout.name == ""


GIVEN = "if x.stride(0) * x.element_size() % 16 or x.data_ptr() % 16:"
ONE_ROW = GIVEN.replace("if ", "if x.shape[0] > 1 and ").replace(" or x.data_ptr() % 16", "")
CHANGES = {
    "right": ("", ""),
    "one row": (GIVEN, ONE_ROW),
    "beginnings": (GIVEN, GIVEN.replace(" or x.data_ptr() % 16", "")),
    "columns of b": ("if x.stride(1) != 1:", 'if x.stride(1) != 1 and name != "b":'),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_not_refused_is_told_by_the_condition_that_is_broken(bench, name):
    folder = next(folder for folder in all_folders(ROOT) if folder.id == ID)
    promise, test = promise_of(folder)
    verdict = verdict_on(bench(SOLUTION.replace(*CHANGES[name]), ID).judge, promise, test)
    assert verdict.outcome == (PASS if name == "right" else FAIL)
    if name != "right":
        assert verdict.lines[0].startswith("matmul ") and verdict.id == "not-refused"
