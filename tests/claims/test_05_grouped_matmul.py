"""Lesson 05: what the compiler makes of the product, which strips a wave needs, and that the parts are all tests."""

from __future__ import annotations

import re

import pytest
from triton.backends.nvidia.compiler import CUDAOptions

from grader.course.folder import Folder, load_test_file
from grader.wire.cubin import read_cubin
from tests.claims.products import TILES, kernel_of, with_pointers
from tests.conftest import ROOT

ID = "05_grouped_matmul"
LESSON_FILE = ROOT / "exercises" / ID / "README.md"
LESSON = LESSON_FILE.read_text(encoding="utf-8")
WAVE = 132  # programs of 128 x 256 tiles that an H200 runs at a time
# 8192 × 2048 × 8192 | 34 MB | 8 | 17 + 8; 20 + 8 |
ROW = re.compile(r"^\| (\d+) × (\d+) × \d+ \| \d+ MB \| (\d+) \| (\d+) \+ (\d+); (\d+) \+ (\d+) \|", re.MULTILINE)
NAMED = re.findall(r"^pytest exercises/05_grouped_matmul -k \"?(.+?)\"?$", LESSON, re.MULTILINE)  # names of tests
SAID = re.findall(r"\*Right so far: (\d+) of 23 tests were run\*", LESSON)


def precise(folder, precision: str):
    return kernel_of(ID, folder, '"tf32x3"', f'"{precision}"')


def test_tl_dot_takes_five_precisions_and_tf32_unless_told_otherwise():
    assert {*CUDAOptions.allowed_dot_input_precisions} == {"tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"}
    assert CUDAOptions.default_dot_input_precision == "tf32"


def test_products_of_fp16_are_the_same_with_each_precision(tmp_path):
    def code(precision: str) -> str:
        ptx = with_pointers(precise(tmp_path, precision), "fp16").asm["ptx"]
        return "\n".join(line for line in ptx.splitlines() if not re.search(r"\.loc|\.file|\.b8|//|section", line))

    assert code("tf32") == code("tf32x3") == code("ieee") == code("bf16x6")


@pytest.mark.parametrize("contiguous_b, copies", [(True, {"0x4": 128, "0x10": 16}), (False, {"0x10": 16 + 32})])
def test_a_contiguous_b_of_tf32_is_copied_4_bytes_at_a_time(tmp_path, contiguous_b, copies):
    ptx = with_pointers(precise(tmp_path, "tf32"), "fp32", contiguous_b, BLOCK_K=32).asm["ptx"]
    bytes_of = re.findall(r"cp\.async\.\w+\.shared\.global \[.*?\], \[.*?\], (0x\w+)", ptx)
    assert {size: bytes_of.count(size) for size in bytes_of} == copies


@pytest.mark.parametrize("capability, bytes_", [(90, 196608), (80, 147456)])
def test_four_stages_take_this_shared_memory(tmp_path, capability, bytes_):
    assert with_pointers(kernel_of(ID, tmp_path), "fp16", capability=capability).metadata.shared == bytes_


@pytest.mark.parametrize("stages", [3, 4])
def test_one_program_fits_on_a_multiprocessor(tmp_path, stages):
    """A second one finds neither shared memory nor registers, with three stages as with four."""
    made = with_pointers(kernel_of(ID, tmp_path), "fp16", stages=stages)
    assert 2 * made.metadata.shared > 232448 and 2 * 8 * 32 * read_cubin(made.asm["cubin"]).registers > 65536


def test_loads_of_2_bytes_are_not_copied_ahead(tmp_path):
    made = [with_pointers(kernel_of(ID, tmp_path), "fp16", odd=odd) for odd in (False, True)]
    assert ["cp.async" in one.asm["ptx"] for one in made] == [True, False]
    assert [one.metadata.shared for one in made] == [4 * 49152, 49152]  # four stages, and one


def test_one_instruction_makes_64_x_256_sums(tmp_path):
    assert "wgmma.mma_async.sync.aligned.m64n256k16" in with_pointers(kernel_of(ID, tmp_path), "fp16").asm["ptx"]


def first_wave(rows: int, columns: int, group: int) -> set[tuple[int, int]]:
    """Returns row and column of the tiles of the first wave, as the solution numbers them."""
    tiles = set()
    for pid in range(min(WAVE, rows * columns)):
        first = pid // (group * columns) * group
        height = min(rows - first, group)
        tiles.add((first + pid % (group * columns) % height, pid % (group * columns) // height))
    return tiles


def test_waves_need_the_strips_that_the_lesson_states():
    rows = ROW.findall(LESSON)
    assert len(rows) == 5
    for M, N, in_a_row, *strips in (map(int, row) for row in rows):
        high, wide = M // TILES["BLOCK_M"], N // TILES["BLOCK_N"]
        assert wide == in_a_row
        waves = first_wave(high, wide, 1), first_wave(high, wide, 8)
        assert strips == [len({tile[axis] for tile in wave}) for wave in waves for axis in (0, 1)]


def test_at_4096_both_orders_begin_with_nearly_the_same_tiles():
    assert len(first_wave(32, 16, 1) & first_wave(32, 16, 8)) == 129 and "129 of the first 132 tiles" in " ".join(
        LESSON.split()
    )


def test_the_parts_of_the_lesson_are_all_its_tests():
    tests = {name: one for name, one in vars(load_test_file(Folder(LESSON_FILE.parent))).items() if "test_" in name}
    first = [
        name for name, one in tests.items() if "step" not in {mark.name for mark in getattr(one, "pytestmark", [])}
    ]
    others = [[name for name in tests if any(word in name for word in words.split(" or "))] for words in NAMED]
    assert 'grouped_matmul -m "not step"\n' in LESSON and sorted(sum(others, first)) == sorted(tests)
    assert [len(part) for part in (first, *others)] == [int(count) for count in SAID]
