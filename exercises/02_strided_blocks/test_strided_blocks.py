"""02 · Strided blocks: what a right kernel must do."""

import pytest

from grader import Example, Exercise, any_strides, large, normal, output, special, subnormal, target, unusual, upto

exercise = Exercise(
    entry="strided_copy",
    reference=lambda x, z: x,
    returns="z",  # the argument z: given, filled and returned
    bound="bits",  # a copy changes no bit
    minutes=20,
    presumes=("01_masked_add",),
    example=Example(normal(3, 5).transposed(), output(3, 5), BLOCK_M=2, BLOCK_N=4),
    cut="x[m, n], z[m, n] -> z[m, n]",
)


@pytest.mark.core
def test_one_full_tile(check):
    check(normal(64, 64), output(64, 64))


@pytest.mark.core
def test_tiles_at_the_edges_are_partial(check):
    check(normal(101, 153), output(101, 153))


@pytest.mark.core
def test_more_rows_than_columns(check):
    check(normal(131, 77), output(131, 77))


@pytest.mark.core
def test_one_element(check):
    check(normal(1, 1), output(1, 1))


@pytest.mark.core
def test_one_row(check):
    check(normal(1, 170), output(1, 170))


@pytest.mark.core
def test_the_source_is_a_transposed_view(check):
    check(normal(37, 153).transposed(), output(37, 153))


@pytest.mark.core
def test_the_target_is_a_transposed_view(check):
    check(normal(37, 153), output(37, 153).transposed())


def test_source_and_target_are_transposed_views(check):
    check(normal(37, 153).transposed(), output(37, 153).transposed())


def test_the_source_is_every_second_element(check):
    check(normal(37, 153).every_second(), output(37, 153))


def test_the_target_is_every_second_element(check):
    check(normal(37, 153), output(37, 153).every_second())


def test_rows_of_the_source_are_padded(check):
    check(normal(37, 153).padded(), output(37, 153))


def test_rows_of_the_target_are_padded(check):
    check(normal(37, 153), output(37, 153).padded())


def test_the_source_is_one_row_seen_many_times(check):
    check(normal(37, 153).expanded(), output(37, 153))


def test_infinities_nan_and_minus_zero_are_copied_too(check):
    check(special(normal(37, 153)), output(37, 153))


def test_another_tile_gives_the_same_result(check):
    check(normal(37, 53), output(37, 53), BLOCK_M=16, BLOCK_N=8)
    check(normal(137, 153), output(137, 153), BLOCK_M=32, BLOCK_N=128)
    check(normal(137, 153), output(137, 153), BLOCK_M=128, BLOCK_N=16)


@pytest.mark.core
def test_each_element_is_read_and_written_once(traffic):
    traffic(normal(100, 200), output(100, 200), reads=1, writes=1, idle=0)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(100, 256), output(100, 256), moved=1.5)


def test_it_compiles_for_a_gpu(compiled):
    compiled(normal(4096, 4096), output(4096, 4096))
    compiled(normal(4096, 4096).transposed(), output(4096, 4096))


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(200, once=3000, limit=1_000_000, BLOCK_M=64),
            "N": upto(200, once=3000, limit=2**30, BLOCK_N=64),
        },
        x=any_strides("M", "N", values=(normal, large, subnormal, unusual)),
        z=target("M", "N"),
        dtypes=("float32", "float16", "bfloat16", "float64", "int32"),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(1031, 2053).transposed(), output(1031, 2053), dtypes=("float32", "float16", "bfloat16"))


def test_matrices_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(24593, 24593).padded(), output(24593, 24593), dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(8192, 8192), output(8192, 8192), at_least=0.44)


def test_a_transposed_source_reaches_the_gate(throughput):
    throughput(normal(8192, 8192).transposed(), output(8192, 8192), at_least=0.44)
