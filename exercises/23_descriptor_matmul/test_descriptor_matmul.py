"""23 · Descriptor matmul: what a right kernel must do."""

import pytest

from grader import (
    PRODUCT,
    Example,
    Exercise,
    aligned_rows,
    around_fp16_max,
    cancelling,
    integers,
    lone,
    normal,
    one_hot,
    subnormal,
    uniform,
    unusual,
    upto,
)

exercise = Exercise(
    entry="matmul",
    reference=lambda a, b: a @ b,  # called in float64
    returns="c",
    bound=PRODUCT,  # fp32 accumulation, one rounding to fp16
    dtypes=("float16",),
    minutes=45,
    presumes=("05_grouped_matmul",),
    example=Example(normal(5, 8), normal(8, 8), BLOCK_M=2, BLOCK_N=8, BLOCK_K=8, GROUP_M=2),
    cut="a[m, :], b[:, n] -> c[m, n]",
)

SMALL = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)  # many tiles from little data
OWN_GROUPS = dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)  # and the file's own number of rows in a group


@pytest.mark.core
def test_one_tile(check):
    check(normal(32, 32), normal(32, 32), **SMALL)


@pytest.mark.core
def test_no_size_is_a_multiple_of_its_block(check):
    check(normal(67, 104), normal(104, 72), **SMALL)


@pytest.mark.core
def test_the_last_group_has_fewer_rows_of_tiles(check):
    check(normal(131, 40), normal(40, 56), **SMALL)  # 5 rows of tiles: two groups of 2, one of 1


def test_rows_of_a_are_padded(check):
    check(normal(67, 72).padded(8), normal(72, 72), **SMALL)


def test_rows_of_b_are_padded(check):
    check(normal(67, 72), normal(72, 72).padded(16), **SMALL)


def test_padded_rows_of_any_length(check):
    check(normal(67, 75).padded(5), normal(75, 72).padded(8), **SMALL)  # rows of a begin 80 elements apart


@pytest.mark.core
def test_small_integers_are_summed_exactly(check):
    check(integers(67, 104), integers(104, 72), bound="exact", **SMALL)


def test_sums_that_cancel_are_exact(check):
    check(*cancelling(33, 16264, 40), bound="exact", BLOCK_M=32, BLOCK_N=32, BLOCK_K=128)  # 8 past 127 steps


def test_a_row_with_a_single_one_picks_a_row_of_b(check):
    check(one_hot(67, 104), normal(104, 72), bound="exact", **SMALL)


@pytest.mark.core
def test_eight_by_eight(check):
    check(normal(8, 8), normal(8, 8))


def test_full_size_tiles(check):
    check(normal(201, 136), normal(136, 304))


def test_a_gpu_whose_tiles_are_narrower(check):
    check(normal(20, 40), normal(40, 304), CAPABILITY=80)  # 128 columns of 256


def test_rows_of_a_that_are_not_aligned_are_refused(raises):
    raises(normal(64, 100), normal(100, 64), because="rows of a begin 200 bytes apart, no multiple of 16")


def test_rows_of_c_that_are_not_aligned_are_refused(raises):
    raises(normal(64, 64), normal(64, 100).padded(4), because="rows of c begin 200 bytes apart, no multiple of 16")


def test_a_transposed_view_is_refused(raises):
    raises(normal(64, 64), normal(64, 64).transposed(), because="neighbours in a row of b lie 64 elements apart")


def test_a_beginning_that_is_not_aligned_is_refused(raises):
    raises(normal(64, 64).shifted(), normal(64, 64), because="a begins 2 bytes after a multiple of 16")


@pytest.mark.core
def test_a_and_b_are_read_once_per_tile(traffic):
    # tl.dot wants tiles of at least 16 x 16: a is read once per 16 columns of c at most, b once per 16 rows.
    traffic(normal(64, 64), normal(64, 96), reads={"a": 6, "b": 4}, writes=1, idle=0, **SMALL)


def test_neighbouring_programs_share_what_they_read(traffic):
    # 12 x 12 tiles of c, 16 programs at a time: see the same test of 05.
    blocks = dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP_M=4)
    traffic(normal(192, 16), normal(16, 192), reads={"a": 6, "b": 6}, writes=1, at_once=16, **blocks)


def test_the_tma_moves_all_tiles(compiled):
    compiled(normal(4096, 4096), normal(4096, 4096), tensor_cores=True, pipelined=True, descriptors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(160, limit=2**20, BLOCK_M=128),
            "K": upto(160, once=2400, limit=2**14, BLOCK_K=64),
            "N": upto(40, limit=2**20, block=32),
        },
        a=aligned_rows("M", "K", values=(uniform, normal, subnormal, around_fp16_max, lone, unusual)),
        b=aligned_rows("K", "8*N", values=(uniform, normal, subnormal, around_fp16_max, lone, unusual)),
        blocks=(SMALL, OWN_GROUPS, dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=64, GROUP_M=3)),
        gpus=True,
        refuses="ValueError",
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(1031, 776), normal(776, 2056))


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(65537, 64), normal(64, 16408))


def test_it_reaches_the_gate(throughput):
    throughput(normal(4096, 4096), normal(4096, 4096), anchor="matmul", at_least=0.62, since="sm_90")
