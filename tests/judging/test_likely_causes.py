"""What a wrong call is put down to, beside the others of its run."""

from __future__ import annotations

import pytest

from grader import normal
from grader.explain.verdict import FAIL
from tests.conftest import ROOT, mutant

ID = "06_fused_outer"


def test_wrong_values_with_the_files_own_tile_say_more_than_another_tile_that_does_not_compile(bench):
    """A square tile hides that its axes are exchanged; with any other the shapes do not go together."""
    judged = bench(mutant(f"{ID}/axes_exchanged_in_square_tile"), ID)
    wrong = judged.check(normal(128), normal(128), dtypes=("float32",))
    refused = judged.check(normal(37), normal(53), dtypes=("float32",), BLOCK_M=16, BLOCK_N=8)
    assert (wrong.outcome, wrong.id) == (FAIL, "axes-exchanged")
    assert (refused.outcome, refused.id) == (FAIL, "does-not-compile")
    assert wrong.rank < refused.rank


def test_a_tile_that_does_not_compile_is_the_diagnosis_where_nothing_else_is_wrong(bench):
    judged = bench(mutant(f"{ID}/axes_exchanged_in_square_tile"), ID)
    refused = judged.check(normal(37), normal(53), dtypes=("float32",), BLOCK_M=16, BLOCK_N=8)
    assert refused.kind == "error"


START = "offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)"
BLAMED = (
    "Right with the block sizes of the file, wrong with BLOCK_N = 256: does a number, or another name, stand where one"
)


@pytest.mark.parametrize(
    ("start", "asked"),
    [
        (START.replace("* BLOCK_N", "* 1024"), True),
        (START.replace("* BLOCK_N", "* (1024 + 0 * 1024)"), True),
        (START.replace("* BLOCK_N", "* 1024") + " + 0 * (\n        1024)", False),  # two lines: nothing tells which
        (START.replace("* BLOCK_N", "* (1 << 10)"), False),
    ],
)
def test_a_number_in_place_of_a_block_size_is_asked_for_and_the_grid_is_not_blamed(bench, start, asked):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    assert text.count(START) == 1 and "BLOCK_N = 1024" in text
    judged = bench(text.replace(START, start))
    for size in (1024, 1025, 2048, 5000):
        judged.check(normal(size), normal(size), dtypes=("float32",))
    verdict = judged.check(normal(1009), normal(1009), dtypes=("float32",), BLOCK_N=256)
    line = 1 + text[: text.index(START)].count("\n")
    assert verdict.id == "unwritten" and verdict.lines[0].startswith(BLAMED), verdict.lines
    assert verdict.line == (line if asked else 0)
    assert verdict.lines[1:] == [f"Is it the 1024 in line {line}?"][: int(asked)] + [
        "753 of 1009 elements of z were never written; the first is z[256]."
    ]


def test_tiles_are_not_blamed_for_a_dtype_that_has_not_been_right_with_any(bench):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    assert text.count("x + y, mask") == 1
    judged = bench(text.replace("x + y, mask", "(x + y).to(tl.float16), mask"))
    for size in (1024, 1025, 2048, 5000):
        judged.check(normal(size), normal(size), dtypes=("float16",))
    verdict = judged.check(normal(1009), normal(1009), dtypes=("float32",), BLOCK_N=256)
    assert verdict.outcome == FAIL and not verdict.lines[0].startswith("Right with the block sizes")
