"""12 · Gather rows: what a right kernel must do."""

import pytest

from grader import (
    Elements,
    Example,
    Exercise,
    any_strides,
    contiguous,
    indices,
    into,
    large,
    normal,
    special,
    subnormal,
    unusual,
    upto,
    whole,
)

exercise = Exercise(
    entry="gather_rows",
    reference=lambda table, index: table[index],
    returns="z",
    bound="bits",  # a copy changes no bit
    dtypes=("float16", "float32"),
    minutes=20,
    presumes=("01_masked_add", "02_strided_blocks"),
    example=Example(normal(5, 6), indices(4, below=5), BLOCK_N=4),
    cut="table[index, n], index[k] -> z[k, n]",
)


@pytest.mark.core
def test_a_few_rows(check):
    check(normal(64, 64), indices(12, below=64))


@pytest.mark.core
def test_rows_of_one_block(check):
    check(normal(50, 1024), indices(12, below=50))


@pytest.mark.core
def test_rows_of_several_blocks_and_a_part(check):
    check(normal(20, 2411), indices(12, below=20))


@pytest.mark.core
def test_one_column_past_a_block(check):
    check(normal(20, 1025), indices(12, below=20))


@pytest.mark.core
def test_rows_that_are_asked_for_many_times(check):
    check(normal(7, 70), indices(100, below=7))


@pytest.mark.core
def test_one_column(check):
    check(normal(37, 1), indices(53, below=37))


def test_one_row_of_a_large_table(check):
    check(normal(300, 70), indices(1, below=300))


def test_no_row(check):
    check(normal(37, 70), indices(0, below=37))


def test_no_column(check):
    check(normal(37, 0), indices(12, below=37))


def test_indices_of_64_bits(check):
    check(normal(37, 153), indices(53, below=37).of("int64"))


def test_the_table_is_a_transposed_view(check):
    check(normal(37, 153).transposed(), indices(20, below=37))


def test_rows_of_the_table_are_padded(check):
    check(normal(37, 153).padded(), indices(20, below=37))


def test_the_table_is_every_second_element(check):
    check(normal(37, 153).every_second(), indices(20, below=37))


def test_infinities_nan_and_minus_zero_are_copied_too(check):
    check(special(normal(37, 153)), indices(20, below=37))


def test_whole_numbers_keep_all_their_digits(check):
    check(whole(37, 153), indices(20, below=37), dtypes=("int32", "int16", "int8", "uint8"))


def test_another_block_size_gives_the_same_result(check):
    check(normal(37, 153), indices(20, below=37), BLOCK_N=64)
    check(normal(20, 2411), indices(12, below=20), BLOCK_N=2048)


@pytest.mark.core
def test_a_program_copies_a_block_and_not_one_element(traffic):
    traffic(normal(100, 2048), indices(16, below=100), reads={"table": 1, "index": 1024}, programs=256)


def test_each_element_is_read_and_written_once(traffic):
    data = normal(100, 1500), indices(40, below=100)
    traffic(*data, reads={"table": Elements(40 * 1500), "index": 8}, launches=1, idle=0)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(100, 1024), indices(40, below=100), reads={"table": 1, "index": 1024}, moved=1.5)


def test_a_thread_moves_16_bytes_at_a_time(compiled):
    compiled(normal(32768, 4096), indices(4096, below=32768), vectors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(50, limit=2**30, block=8),
            "N": upto(2500, least=0, once=20000, limit=2**22, BLOCK_N=1024),
            "K": upto(50, least=0, once=3000, limit=2**30, block=8),
        },
        table=any_strides("M", "N", values=(normal, large, subnormal, unusual), reach=2**33),
        index=contiguous("K", values=(into("M"),)),
        dtypes=("float32", "float16", "bfloat16", "int32", "int16", "int8", "uint8"),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(5003, 1031), indices(100_003, below=5003), dtypes=("float32", "float16", "bfloat16"))


def test_a_table_of_more_than_two_billion_elements(on_gpu):
    on_gpu(whole(40_000, 65_536), indices(1000, below=40_000, least=32_768), dtypes=("int8",))


def test_a_result_of_more_than_two_billion_elements(on_gpu):
    on_gpu(whole(3, 4_000_037), indices(600, below=3), dtypes=("int8",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(262_144, 1024), indices(262_144, below=262_144), at_least=0.44)
