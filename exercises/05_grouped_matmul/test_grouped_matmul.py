"""05 · Grouped matmul: what a right kernel must do."""

import pytest

from grader import (
    PRODUCT,
    Example,
    Exercise,
    any_strides,
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
    bound=PRODUCT,  # fp32 accumulation, one rounding to c's dtype
    dtypes=("float16",),
    minutes=90,
    presumes=("04_transpose", "06_fused_outer", "07_row_sum"),
    example=Example(normal(5, 3), normal(3, 6), BLOCK_M=2, BLOCK_N=2, BLOCK_K=2, GROUP_M=2),
    cut="a[m, :], b[:, n] -> c[m, n]",
)

SMALL = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)  # many tiles from little data
OWN_GROUPS = dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)  # and the file's own number of rows in a group
FP32 = ("float32",)
SMALL_FP32 = dict(BLOCK_M=32, BLOCK_N=128, BLOCK_K=64, GROUP_M=2)  # tiles of fp32 are 32 x 32 then, steps 32


def vast(*shape):
    """Nearly as large as numbers of fp32 may be here."""
    return normal(*shape) * 1e14


def slight(*shape):
    """Nearly as small as numbers of fp32 may be here, unless they are 0."""
    return (uniform(*shape) + 0.5) * 1e-14


def order(test):
    """The second step."""
    return pytest.mark.step(2)(pytest.mark.points(4)(test))


products_of_fp32 = pytest.mark.step(3)


# ---- values, in any order of tiles -----------------------------------------------------------------------------------


@pytest.mark.core
def test_one_tile(check):
    check(normal(32, 32), normal(32, 32), **SMALL)


@pytest.mark.core
def test_no_size_is_a_multiple_of_its_block(check):
    check(normal(67, 75), normal(75, 71), **SMALL)


@pytest.mark.core
def test_one_step_past_a_full_block_of_k(check):
    check(normal(67, 33), normal(33, 71), **SMALL)


@pytest.mark.core
def test_small_integers_are_summed_exactly(check):
    check(integers(67, 75), integers(75, 71), bound="exact", **SMALL)


def test_long_sums_of_positive_numbers_keep_their_digits(check):
    check(uniform(33, 1024), uniform(1024, 40), BLOCK_M=32, BLOCK_N=32, BLOCK_K=128)


def test_sums_that_cancel_are_exact(check):
    check(*cancelling(33, 16257, 40), bound="exact", BLOCK_M=32, BLOCK_N=32, BLOCK_K=128)  # one past 127 steps


def test_a_row_with_a_single_one_picks_a_row_of_b(check):
    check(one_hot(67, 75), normal(75, 71), bound="exact", **SMALL)


def test_both_inputs_are_transposed_views(check):
    check(normal(67, 75).transposed(), normal(75, 71).transposed(), **SMALL)
    check(normal(67, 75).transposed(16), normal(75, 71).transposed(16), **SMALL)


def test_rows_of_both_inputs_are_padded(check):
    check(normal(67, 75).padded(), normal(75, 71).padded(), **SMALL)


@pytest.mark.core
def test_one_element(check):
    check(normal(1, 1), normal(1, 1))


def test_full_size_tiles(check):
    check(normal(201, 137), normal(137, 300))


@pytest.mark.core
def test_a_and_b_are_read_once_per_tile(traffic):
    # A tile may be as small as 16 x 16: a is read once per 16 columns of c at most, b once per 16 rows.
    traffic(normal(64, 64), normal(64, 96), reads={"a": 6, "b": 4}, writes=1, idle=0, **SMALL)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(160, limit=2**20, BLOCK_M=128),
            "K": upto(160, least=0, once=2400, limit=2**14, BLOCK_K=64),
            "N": upto(260, limit=2**20, BLOCK_N=256),
        },
        a=any_strides("M", "K", values=(uniform, normal, subnormal, around_fp16_max, lone, unusual)),
        b=any_strides("K", "N", values=(uniform, normal, subnormal, around_fp16_max, lone, unusual)),
        blocks=(SMALL, OWN_GROUPS, dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=64, GROUP_M=3)),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(1031, 777), normal(777, 2053))


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(65537, 64), normal(64, 16411))


# ---- order and speed -------------------------------------------------------------------------------------------------


@order
def test_the_last_group_has_fewer_rows_of_tiles(check):
    check(normal(131, 43), normal(43, 35), **SMALL)  # 5 rows of tiles: two groups of 2, one of 1


@order
def test_neighbouring_programs_share_what_they_read(traffic):
    # 12 x 12 tiles of c, 16 programs at a time: nine waves. In groups of 4 rows each wave reads 4 of 12 strips of a and
    # of b, both are read 3 times. Row by row it reads all of b: 9 times.
    blocks = dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP_M=4)
    traffic(normal(192, 16), normal(16, 192), reads={"a": 6, "b": 6}, writes=1, at_once=16, **blocks)


@order
def test_products_run_on_tensor_cores_while_loads_run_ahead(compiled):
    compiled(normal(4096, 4096), normal(4096, 4096), tensor_cores=True, pipelined=True)


@order
def test_it_reaches_the_gate(throughput):
    throughput(normal(4096, 4096), normal(4096, 4096), anchor="matmul", at_least=0.62)


# ---- products of fp32 ------------------------------------------------------------------------------------------------


@products_of_fp32
def test_products_of_fp32_keep_their_digits(check):
    check(normal(67, 75), normal(75, 71), dtypes=FP32, **SMALL_FP32)
    check(vast(67, 75), slight(75, 71), dtypes=FP32, **SMALL_FP32)


@products_of_fp32
def test_long_sums_of_fp32_keep_their_digits(check):
    check(uniform(33, 1024), uniform(1024, 40), dtypes=FP32, **SMALL_FP32)


@products_of_fp32
def test_infinities_and_nan_of_fp32_come_out_in_any_layout(check):
    check(lone(67, 75).transposed(), normal(75, 71).padded(), dtypes=FP32, **SMALL_FP32)


@products_of_fp32
def test_any_call_in_fp32(drawn):
    drawn(
        sizes={
            "M": upto(150, limit=2**20, block=128),
            "K": upto(70, least=0, limit=2**14, block=32),
            "N": upto(130, limit=2**20, block=64),
        },
        a=any_strides("M", "K", values=(uniform, normal, vast, slight, lone, unusual)),
        b=any_strides("K", "N", values=(uniform, normal, vast, slight, lone, unusual)),
        dtypes=FP32,
        blocks=(SMALL_FP32,),
        share=1 / 4,  # the calls in fp16 have judged sizes and strides
    )
