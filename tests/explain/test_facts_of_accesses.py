"""What is said of an access that leaves its tensor: its mask and its place are told as the compiler has them."""

from __future__ import annotations

import pytest

from grader import normal
from tests.conftest import ROOT

SOLUTION = (ROOT / "solutions/01_masked_add/masked_add.py").read_text(encoding="utf-8")
REGION = SOLUTION[SOLUTION.index("    ### BEGIN SOLUTION") : SOLUTION.index("    ### END SOLUTION")]
HEAD = """    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
"""
X, Y = "x = tl.load(x_ptr + offsets, mask=mask)", "y = tl.load(y_ptr + offsets, mask=mask)"
STORE = "tl.store(z_ptr + offsets, x + y, mask=mask)"
HELPER = "@triton.jit\ndef get(p, offsets, mask):\n    return tl.load(p + offsets, mask=mask)\n\n\n"
FIRST = 1 + SOLUTION[: SOLUTION.index(REGION)].count("\n") + HEAD.count("\n")


@pytest.fixture
def told(bench):
    """told(*lines): the verdict's line, counted from the first of these lines, and its sentences."""

    def told(*lines: str, before: str = "") -> tuple[int, list[str]]:
        text = SOLUTION.replace(REGION, HEAD + "".join(f"    {line}\n" for line in lines), 1)
        text = text.replace("@triton.jit", before + "@triton.jit", 1)
        verdict = bench(text).check(normal(1025), normal(1025), dtypes=("float32",))
        return verdict.line - FIRST - before.count("\n"), verdict.lines

    return told


@pytest.mark.parametrize("mask", ["", ", None", ", mask=None"])
def test_a_mask_of_none_is_no_mask(told, mask):
    line, said = told(X, f"y = tl.load(y_ptr + offsets{mask})", STORE)
    assert (
        line == 1
        and said[0] == f"The tl.load in line {FIRST + 1} has no mask: lanes past the end of y take part in it."
    )


@pytest.mark.parametrize("mask", ["offsets <= N", "mask=offsets <= N"])
def test_a_mask_by_its_place_is_a_mask(told, mask):
    line, said = told(X, f"y = tl.load(y_ptr + offsets, {mask})", STORE)
    assert line == 1 and said[0].startswith(
        f"The mask of the load in line {FIRST + 1} lets lanes outside of y through."
    )


def test_of_two_loads_in_a_line_the_one_without_a_mask_is_told(told):
    both = "tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets), mask=mask)"
    line, said = told(both)
    column = 5 + both.index("tl.load(y_ptr")
    assert line == 0 and said[0].startswith(
        f"The tl.load in line {FIRST}, column {column}, has no mask: lanes past the end of y"
    )
    assert said[2] == f"Line {FIRST}:  {both}"


@pytest.mark.parametrize(
    ("lines", "function", "at"),
    [
        ((X, "y = tl.load(", "    y_ptr", "    + offsets,", ")", STORE), "load", 1),
        ((X, Y, "tl.store(", "    z_ptr + offsets,", "    x", "    + y,", ")"), "store", 2),
    ],
)
def test_an_access_of_several_lines_is_told_by_its_first(told, lines, function, at):
    line, said = told(*lines)
    assert line == at and said[0].startswith(f"The tl.{function} in line {FIRST + at} has no mask: lanes past the end")
    assert said[2] == f"Line {FIRST + at}:  {lines[at]}"


def test_a_helper_is_told_with_the_line_that_calls_it(told):
    lines = "x = get(x_ptr, offsets, mask)", "y = get(y_ptr, offsets, None)", STORE
    line, said = told(*lines, before=HELPER)
    calling, helper = FIRST + HELPER.count("\n") + 1, SOLUTION[: SOLUTION.index("@triton.jit")].count("\n") + 3
    assert said[0].startswith(
        f"The tl.load in line {helper}, called in line {calling}, has no mask: lanes past the end"
    )
    assert said[2:] == [f"Line {helper}:  return tl.load(p + offsets, mask=mask)", f"Line {calling}:  {lines[1]}"]


def test_one_address_is_no_block(told):
    _, said = told(X, Y, STORE, "tl.store(z_ptr + N, 0.0)")
    assert said[0].startswith(f"The address in line {FIRST + 3} leads outside of z. It is one address, no block")


def test_an_address_made_with_a_loaded_number_is_told_with_it(told):
    far = "far = (tl.load(x_ptr + offsets, mask=mask, other=0.0) * 0).to(tl.int32) - 5000"
    _, said = told(X, far, "y = tl.load(y_ptr + offsets + far + 10000, mask=mask)", STORE)
    assert said[0].startswith("The address leads outside of y. It is made with far, which was loaded: are its values")
