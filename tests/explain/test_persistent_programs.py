"""Programs that loop over several tiles: what they leave out, and what they carry from one tile to the next."""

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
    assert judged.check(normal(32, 40), normal(40, 32), **BLOCKS, MULTIPROCESSORS=processors).outcome == PASS
    verdict = judged.check(normal(131, 40), normal(40, 200), **BLOCKS, MULTIPROCESSORS=processors)
    assert verdict.id == "carried-over" and verdict.lines[0].startswith("A tile of c also holds what its program")


def test_whole_numbers_of_the_tile_before_are_told_too(bench):
    judged = bench(mutant(f"{ID}/accumulator_not_reset"), ID)
    verdict = judged.check(integers(131, 72), integers(72, 104), bound="exact", **BLOCKS, MULTIPROCESSORS=5)
    assert verdict.id == "carried-over"


def test_other_wrong_values_are_not_taken_for_it(bench):
    text = (ROOT / f"solutions/{ID}/persistent_matmul.py").read_text()
    for old, new in (
        ("c_desc.store([m, n], acc.", "c_desc.store([m, n], (acc + tile)."),
        ("tl.dot(a_desc.load([m, k])", "tl.dot(2 * a_desc.load([m, k])"),
        ("acc.to(tl.float16)", "(acc * (tile < 5)).to(tl.float16)"),
    ):
        assert text.count(old) == 1
        verdict = bench(text.replace(old, new), ID).check(normal(131, 40), normal(40, 200), **BLOCKS, MULTIPROCESSORS=3)
        assert verdict.outcome == FAIL and verdict.id != "carried-over"


@pytest.mark.parametrize("processors", [2, 5])
def test_later_tiles_without_a_sum_are_told_as_such(bench, processors):
    verdict = bench(mutant(f"{ID}/k_not_reset"), ID).check(
        normal(131, 40), normal(40, 200), **BLOCKS, MULTIPROCESSORS=processors
    )
    assert verdict.id == "carried-over" and verdict.lines[0].startswith("Each program sums up its first tile")


OVERLAPS = {
    "begins_at_0": "Programs overlap: nothing in the kernel depends on tl.program_id(0)",
    "grid_of_all_tiles": "Programs overlap: each goes over several tiles",
    "step_of_one": "Programs overlap: each goes over several tiles",
    "tile_number_as_corner": "Programs overlap: corners in line",
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_a_tile_that_two_programs_do_is_told_from_corners_that_lie_too_close(bench, name):
    verdict = bench(mutant(f"{ID}/{name}"), ID).check(normal(131, 40), normal(40, 200), **BLOCKS, MULTIPROCESSORS=4)
    assert verdict.id == "double-write" and verdict.lines[0].startswith(OVERLAPS[name])


def test_a_part_of_each_tile_that_is_missing_is_not_taken_for_a_loop_that_ends_early(bench):
    judged = bench(mutant(f"{ID}/one_half_stored"), ID)
    for columns, processors in ((32, 5), (32, 1), (200, 5)):
        verdict = judged.check(normal(131, 40), normal(40, columns), **BLOCKS, MULTIPROCESSORS=processors)
        assert verdict.id == "unwritten" and "too early" not in verdict.lines[0]


SHAPES = {
    "c_block_is_half_a_tile": "c_desc stores tiles as large as its block, [32, 16], and this one is [32, 32].",
    "wider_tile_than_the_descriptors": "makes a tile of [32, 32] here, and this accumulator is [32, 64].",
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_tile_of_another_size_than_its_descriptor_is_told_with_both_sizes(bench, name):
    verdict = bench(mutant(f"{ID}/{name}"), ID).check(normal(32, 32), normal(32, 32), **BLOCKS, MULTIPROCESSORS=4)
    assert verdict.id == "does-not-compile" and SHAPES[name] in verdict.lines[0]


WALKS = {
    "first_tile_only": (5, "Each of 5 programs writes one tile of c, and c has more"),
    "floor_share": (4, "The loop of 4 programs leaves out tiles of c"),
    "half_the_programs": (4, "c has more tiles than 2 programs write, and the GPU has 4 multiprocessors"),
    "last_tile_missing": (35, "1 of 35 programs writes nothing to c: does the loop over tiles end too early"),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_loop_that_leaves_tiles_out_is_told_as_one(bench, name):
    processors, said = WALKS[name]
    verdict = bench(mutant(f"{ID}/{name}"), ID).check(
        normal(131, 40), normal(40, 200), **BLOCKS, MULTIPROCESSORS=processors
    )
    assert verdict.id == "unwritten" and verdict.lines[0].startswith(said)
    assert verdict.case.endswith(f"a GPU with {processors} multiprocessors")


def test_a_loop_over_the_parts_of_a_vector_is_told_as_one(bench):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    verdict = bench(text.replace("triton.cdiv(N, BLOCK_N),", "2,")).check(
        normal(4096), normal(4096), MULTIPROCESSORS=2, BLOCK_N=256
    )
    assert verdict.id == "unwritten" and verdict.lines[0].startswith("Each of 2 programs writes one tile of z")
