"""22 · Persistent matmul: what a right kernel must do."""

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
    presumes=("23_descriptor_matmul",),
    example=Example(normal(5, 8), normal(8, 16), BLOCK_M=2, BLOCK_N=8, BLOCK_K=8, GROUP_M=2, MULTIPROCESSORS=4),
    cut="a[m, :], b[:, n] -> c[m, n]",
)

# Many tiles from little data, and a GPU with few multiprocessors, so that each program gets several of them.
SMALL = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2, MULTIPROCESSORS=5)
OWN_GROUPS = dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)  # and the file's own number of rows in a group
TINY = OWN_GROUPS | dict(GROUP_M=4)


@pytest.mark.core
def test_one_tile(check):
    check(normal(32, 32), normal(32, 32), **SMALL)


@pytest.mark.core
def test_as_many_tiles_as_programs(check):
    check(normal(67, 40), normal(40, 40), **SMALL | dict(MULTIPROCESSORS=6))  # 3 x 2 tiles


@pytest.mark.core
def test_one_tile_more_than_programs(check):
    check(normal(67, 40), normal(40, 40), **SMALL)  # 3 x 2 tiles, 5 programs: program 0 has two


@pytest.mark.core
def test_each_program_has_seven_tiles(check):
    check(normal(131, 40), normal(40, 200), **SMALL)  # 5 x 7 tiles; the last group has one row of them


@pytest.mark.core
def test_fewer_tiles_than_multiprocessors(check):
    check(normal(20, 40), normal(40, 72), **SMALL | dict(MULTIPROCESSORS=50))


def test_a_gpu_with_one_multiprocessor(check):
    check(normal(67, 40), normal(40, 72), **SMALL | dict(MULTIPROCESSORS=1))


@pytest.mark.core
def test_small_integers_are_summed_exactly(check):
    check(integers(131, 72), integers(72, 104), bound="exact", **SMALL)


def test_sums_that_cancel_are_exact(check):
    check(*cancelling(40, 16264, 104), bound="exact", **SMALL | dict(BLOCK_K=128))  # 2 x 4 tiles, 8 past 127 steps


def test_rows_of_both_inputs_are_padded(check):
    check(normal(67, 72).padded(8), normal(72, 72).padded(16), **SMALL)


def test_padded_rows_of_any_length(check):
    check(normal(67, 75).padded(5), normal(75, 72).padded(8), **SMALL)  # rows of a begin 80 elements apart


def test_eight_by_eight(check):
    check(normal(8, 8), normal(8, 8))


def test_full_size_tiles(check):
    check(normal(201, 136), normal(136, 304), MULTIPROCESSORS=3)  # 2 x 2 tiles


def test_a_gpu_whose_tiles_are_narrower(check):
    check(normal(20, 40), normal(40, 304), CAPABILITY=80)  # 1 x 3 tiles of 128 columns


def test_rows_that_are_not_aligned_are_refused(raises):
    raises(normal(64, 100), normal(100, 64), because="rows of a begin 200 bytes apart, no multiple of 16")


def test_a_transposed_view_is_refused(raises):
    raises(normal(64, 64), normal(64, 64).transposed(), because="neighbours in a row of b lie 64 elements apart")


@pytest.mark.core
def test_there_are_as_many_programs_as_multiprocessors(traffic):
    blocks = SMALL | dict(MULTIPROCESSORS=3)
    traffic(normal(131, 40), normal(40, 200), reads={"a": 14, "b": 10}, programs=3, idle=0, **blocks)  # 35 tiles


def test_there_are_as_many_programs_as_multiprocessors_of_a_large_gpu(traffic):
    blocks = TINY | dict(MULTIPROCESSORS=132)  # as an H200; 144 tiles
    traffic(normal(192, 16), normal(16, 192), reads={"a": 12, "b": 12}, programs=132, **blocks)


def test_no_program_is_idle(traffic):
    gpu = dict(MULTIPROCESSORS=50, CAPABILITY=80)
    traffic(normal(20, 40), normal(40, 304), reads={"a": 3, "b": 1}, programs=3, idle=0, **gpu)  # 3 narrow tiles


def test_neighbouring_programs_share_what_they_read(traffic):
    # 12 x 12 tiles of c, one for each program, 16 programs at a time: see the same test of 05.
    blocks = TINY | dict(MULTIPROCESSORS=144)
    traffic(normal(192, 16), normal(16, 192), reads={"a": 6, "b": 6}, writes=1, at_once=16, programs=144, **blocks)


def test_the_tma_moves_all_tiles(compiled):
    compiled(normal(8192, 512), normal(512, 8192), tensor_cores=True, pipelined=True, descriptors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(160, limit=2**20, BLOCK_M=128),
            "K": upto(160, once=2400, limit=2**14, BLOCK_K=64),
            "N": upto(40, limit=2**20, block=32),
        },
        a=aligned_rows("M", "K", values=(uniform, normal, subnormal, around_fp16_max, lone, unusual)),
        b=aligned_rows("K", "8*N", values=(uniform, normal, subnormal, around_fp16_max, lone, unusual)),
        blocks=(SMALL, OWN_GROUPS, SMALL | dict(GROUP_M=3, MULTIPROCESSORS=2)),
        gpus=True,
        refuses="ValueError",
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(4103, 776), normal(776, 8200))  # 33 x 33 tiles


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    # 33 345 tiles; of few programs with hundreds of them each no sample could be interpreted
    on_gpu(normal(65537, 64), normal(64, 16408), MULTIPROCESSORS=8192)


def test_it_reaches_the_gate(throughput):
    throughput(normal(8192, 512), normal(512, 8192), anchor="matmul", at_least=0.45, since="sm_90")
