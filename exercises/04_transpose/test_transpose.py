"""04 · Tiled transpose: what a right kernel must do."""

import pytest

from grader import Example, Exercise, any_strides, large, normal, special, subnormal, unusual, upto

exercise = Exercise(
    entry="transpose",
    reference=lambda x: x.t(),
    returns="z",
    bound="bits",  # a transpose changes no bit
    minutes=20,
    presumes=("02_strided_blocks",),
    example=Example(normal(3, 5), BLOCK_M=2, BLOCK_N=4),
    cut="x[m, n] -> z[n, m]",
)


@pytest.mark.core
def test_full_tiles(check):
    check(normal(256, 256))


@pytest.mark.core
def test_more_rows_than_columns(check):
    check(normal(261, 77))


@pytest.mark.core
def test_more_columns_than_rows(check):
    check(normal(33, 200))


@pytest.mark.core
def test_one_row(check):
    check(normal(1, 170))


@pytest.mark.core
def test_one_column(check):
    check(normal(170, 1))


def test_the_input_is_a_transposed_view(check):
    check(normal(77, 131).transposed())


def test_the_input_is_every_second_element(check):
    check(normal(77, 131).every_second())


def test_rows_of_the_input_are_padded(check):
    check(normal(77, 131).padded())


def test_infinities_nan_and_minus_zero_are_turned_too(check):
    check(special(normal(77, 131)))


def test_a_tile_need_not_be_square(check):
    check(normal(77, 131), BLOCK_M=16, BLOCK_N=32)
    check(normal(77, 131), BLOCK_M=16, BLOCK_N=128)


def test_larger_tiles_give_the_same_result(check):
    check(normal(137, 150), BLOCK_M=128, BLOCK_N=128)
    check(normal(300, 70), BLOCK_M=256, BLOCK_N=16)


def test_each_element_is_read_and_written_once(traffic):
    traffic(normal(200, 150), reads=1, writes=1, idle=0)


@pytest.mark.core
def test_reads_and_writes_both_run_along_memory(traffic):
    traffic(normal(200, 160), moved=1.5)


def test_reads_and_writes_move_16_bytes_at_a_time(compiled):
    compiled(normal(4096, 4096), vectors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(300, once=12000, limit=2**30, BLOCK_M=128),
            "N": upto(200, once=8000, limit=2_000_000, BLOCK_N=64),
        },
        x=any_strides("M", "N", values=(normal, large, subnormal, unusual)),
        dtypes=("float32", "float16", "bfloat16"),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(1031, 2053), dtypes=("float32", "float16", "bfloat16"))


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(24593, 24593), dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(8192, 8192), at_least=0.5)
