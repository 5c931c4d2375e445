"""06 · Fused outer product: what a right kernel must do."""

import pytest
import torch

from grader import Example, Exercise, any_strides, large, normal, special, subnormal, unusual, upto


def very_large(*shape):
    """Finite in any dtype, and many products with ordinary numbers are not."""
    return normal(*shape).then("of the largest", 0.2)


exercise = Exercise(
    entry="outer_relu",
    reference=lambda x, y: torch.relu(x[:, None] * y[None, :]),  # called in float64
    returns="z",
    bound="exact",  # one product has one right rounding, and relu has none
    minutes=15,
    presumes=("02_strided_blocks",),
    example=Example(normal(3), normal(10), BLOCK_M=2, BLOCK_N=4),
    cut="x[m], y[n] -> z[m, n]",
)


@pytest.mark.core
def test_full_tiles(check):
    check(normal(128), normal(128))


@pytest.mark.core
def test_tiles_at_the_edges_are_partial(check):
    check(normal(40), normal(300))


@pytest.mark.core
def test_more_rows_than_columns(check):
    check(normal(100), normal(40))


@pytest.mark.core
def test_one_row(check):
    check(normal(1), normal(300))


@pytest.mark.core
def test_one_column(check):
    check(normal(100), normal(1))


def test_no_row_or_no_column(check):
    check(normal(0), normal(70))
    check(normal(70), normal(0))


def test_nan_stays_nan_and_minus_infinity_becomes_zero(check):
    check(special(normal(40)), special(normal(150)))


def test_numbers_too_small_to_be_normal_keep_their_value(check):
    check(normal(40), subnormal(150))


def test_x_is_every_second_element(check):
    check(normal(40).every_second(), normal(150))


def test_y_is_every_second_element(check):
    check(normal(40), normal(150).every_second())


def test_another_tile_gives_the_same_result(check):
    check(normal(37), normal(53), BLOCK_M=16, BLOCK_N=8)
    check(normal(70), normal(70), BLOCK_M=64, BLOCK_N=64)
    check(normal(70), normal(270), BLOCK_M=8, BLOCK_N=256)


def test_a_program_makes_a_tile_and_none_is_idle(traffic):
    traffic(normal(48), normal(64), reads={}, writes={}, idle=0, programs=6, BLOCK_M=16, BLOCK_N=32)


@pytest.mark.core
def test_a_tile_is_two_short_vectors_and_written_once(traffic):
    reads = {"x": 8, "y": 6}  # twice what tiles of 32 x 128 need: other tiles need more of one, less of the other
    traffic(normal(96), normal(500), reads=reads, writes=1, launches=1, lanes=1.5, BLOCK_M=32, BLOCK_N=128)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    traffic(normal(96), normal(512), reads={}, writes={}, moved=1.5, BLOCK_M=32, BLOCK_N=128)


def test_tiles_are_written_16_bytes_at_a_time(compiled):
    compiled(normal(4096), normal(4096), vectors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "M": upto(100, least=0, once=3000, limit=2_000_000, BLOCK_M=32),
            "N": upto(300, least=0, once=6000, limit=2**30, BLOCK_N=128),
        },
        x=any_strides("M", values=(normal, very_large, subnormal, unusual)),
        y=any_strides("N", values=(normal, subnormal, large, unusual)),
        dtypes=("float32", "float16", "bfloat16"),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(3001), normal(5003).every_second(), dtypes=("float32", "float16", "bfloat16"))


def test_a_result_of_more_than_two_billion_bytes(on_gpu):
    on_gpu(normal(33013), normal(17011), dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    throughput(normal(16384), normal(16384), at_least=0.6)
