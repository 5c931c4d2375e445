"""What is counted of a call that is too large to carry out: a few of its programs stand for all."""

from __future__ import annotations

import pytest

from grader.course.folder import load_test_file
from grader.course.trial import trial_of
from grader.learn.ladder.counts import Counts, counts_of, with_sizes
from grader.numerics.data_sets import indices, normal
from tests.conftest import ROOT


@pytest.fixture
def counted(bench):
    """counted(path, *data, change): what is counted of the file with one change, in the first dtype."""

    def counted(path: str, *data, change=("", ""), sizes=None) -> Counts:
        text = (ROOT / path).read_text()
        one = bench(text.replace(*change, 1), path.split("/")[1])
        exercise = load_test_file(one.run.folder).exercise
        return counts_of(one.run, trial_of(exercise, "test", data, exercise.dtypes[0]), sizes)

    return counted


def test_neighbours_are_moved_once(counted):
    found = counted("solutions/01_masked_add/masked_add.py", normal(1 << 27), normal(1 << 27))
    assert (found.moved, found.programs, found.launches) == (1, 1 << 17, 1)
    assert found.widths == [16] and found.spilled == found.shared == 0 and found.opcodes == ""
    assert 10 < found.registers < 40 and 20 < found.instructions < 60


def test_scattered_stores_move_whole_sectors(counted):
    tile = ("BLOCK_M, BLOCK_N = 128, 64", "BLOCK_M, BLOCK_N = 1, 1024")
    found = counted("solutions/04_transpose/transpose.py", normal(8192, 8192), change=tile, sizes=[[128, 8192]])
    assert found.moved == (1 + 8) / 2


def test_of_several_launches_each_counts_with_its_own_programs(counted):
    found = counted("solutions/06_fused_outer/unwanted.py", normal(16384), normal(16384))
    assert found.launches == 2 and found.programs == 65536 + 131072
    assert found.moved == pytest.approx(3, abs=0.05)  # stored, read and stored again


def test_a_product_is_counted_in_a_smaller_one(counted):
    squares = normal(4096, 4096), normal(4096, 4096)
    path = "solutions/05_grouped_matmul/grouped_matmul.py"
    found = counted(path, *squares, sizes=[[4096, 512], [512, 4096]])
    assert found.moved == pytest.approx((16 + 32 + 1) / 3) and found.programs == 512
    assert found.opcodes == "wgmma cp.async" and found.shared == 196608


def test_scratch_of_a_smaller_call_is_as_much_smaller(counted):
    given = normal(256, 65536), indices(256, below=16384).of("int64"), normal(256).of("float32")
    path = "solutions/18_cross_entropy/ladder/1_a_launch_per_step.py"
    found = counted(path, *given, sizes=[[256, 16384], [256], [256]])
    assert found.moved == pytest.approx(10, abs=0.05)  # 40 bytes for each logit of 2, which is read and written


def test_shared_memory_of_a_program_is_that_of_all_its_blocks(counted):
    found = counted("solutions/23_descriptor_matmul/accepted/clusters.py", normal(512, 512), normal(512, 512))
    assert found.shared == 2 * 98328 and found.programs == 4 * 2


def test_what_is_too_large_to_be_counted_is_not_guessed(counted):
    found = counted("solutions/05_grouped_matmul/grouped_matmul.py", normal(512, 1 << 19), normal(1 << 19, 512))
    assert found.moved is None and found.registers > 100


def test_numbers_among_the_arguments_stay():
    data = normal(8, 4), 1e-5, normal(4)
    assert [getattr(one, "shape", one) for one in with_sizes(data, [[2, 4], [4]])] == [(2, 4), 1e-5, (4,)]
