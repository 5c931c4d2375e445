"""Programs that walk over several tiles: what they leave out, and what they carry from one tile to the next."""

from __future__ import annotations

import pytest

from grader import integers, normal
from grader.explain.verdict import FAIL, PASS
from tests.conftest import ROOT, mutant

ID = "22_persistent_matmul"
BLOCKS = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)


@pytest.mark.parametrize("processors", [2, 3, 4, 5])
def test_what_is_left_of_the_tile_before_is_told_whatever_the_number_of_programs(bench, processors):
    judged = bench(mutant(f"{ID}/accumulator_not_reset"), ID)
    assert judged.check(normal(32, 43), normal(43, 32), **BLOCKS, MULTIPROCESSORS=processors).outcome == PASS
    verdict = judged.check(normal(131, 43), normal(43, 203), **BLOCKS, MULTIPROCESSORS=processors)
    assert verdict.id == "carried-over" and verdict.lines[0].startswith("A tile of c also holds what its program")


def test_whole_numbers_of_the_tile_before_are_told_too(bench):
    judged = bench(mutant(f"{ID}/accumulator_not_reset"), ID)
    verdict = judged.check(integers(131, 75), integers(75, 99), bound="exact", **BLOCKS, MULTIPROCESSORS=5)
    assert verdict.id == "carried-over"


def test_other_wrong_values_are_not_taken_for_it(bench):
    text = (ROOT / f"solutions/{ID}/persistent_matmul.py").read_text()
    for old, new in (
        ("tl.store(c_ptrs, acc,", "tl.store(c_ptrs, acc + tile,"),
        ("acc = tl.dot(a", "acc = tl.dot(a + a"),
    ):
        verdict = bench(text.replace(old, new), ID).check(normal(131, 43), normal(43, 203), **BLOCKS, MULTIPROCESSORS=5)
        assert verdict.outcome == FAIL and verdict.id != "carried-over"


WALKS = {
    "first_tile_only": (5, "Each of 5 programs writes one tile of c, and c has more"),
    "floor_share": (4, "The walk of 4 programs leaves out tiles of c"),
    "half_the_programs": (4, "c has more tiles than 2 programs write, and the GPU has 4 multiprocessors"),
    "last_tile_missing": (35, "1 of 35 programs writes nothing to c: does the walk over tiles end too early"),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_that_leaves_tiles_out_is_told_as_one(bench, name):
    processors, said = WALKS[name]
    verdict = bench(mutant(f"{ID}/{name}"), ID).check(
        normal(131, 43), normal(43, 203), **BLOCKS, MULTIPROCESSORS=processors
    )
    assert verdict.id == "unwritten" and verdict.lines[0].startswith(said)
    assert verdict.case.endswith(f"a GPU with {processors} multiprocessors")


def test_a_walk_over_the_parts_of_a_vector_is_told_as_one(bench):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    verdict = bench(text.replace("triton.cdiv(N, BLOCK_N),", "2,")).check(
        normal(4096), normal(4096), MULTIPROCESSORS=2, BLOCK_N=256
    )
    assert verdict.id == "unwritten" and verdict.lines[0].startswith("Each of 2 programs writes one tile of z")
