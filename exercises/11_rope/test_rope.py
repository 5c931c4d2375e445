"""11 · RoPE: what a right kernel must do."""

import pytest
import torch

from grader import (
    U32,
    Elements,
    Example,
    Exercise,
    RoundingModel,
    any_strides,
    contiguous,
    indices,
    integers,
    into,
    normal,
    subnormal,
    uniform,
    upto,
)


def rotated(q, cos, sin, positions):
    a, e = q.chunk(2, dim=-1)
    c, n = cos[positions][:, None], sin[positions][:, None]  # [B, 1, S, D / 2]: the same for all heads
    return torch.cat((a * c - e * n, e * c + a * n), dim=-1)


def thousands(*shape):
    """Up to the largest size that the lesson promises of q."""
    return uniform(*shape) * 12_000 - 6000


def tens(*shape):
    """Up to the largest numbers that the lesson promises of the tables."""
    return uniform(*shape) * 20 - 10


def table(P, columns):
    """Tables are fp32, whatever the dtype of q."""
    return normal(P, columns).of("float32")


ONE = ("float32",)  # of layouts and positions: a wrong address shows in any dtype


def rounding(z, q, cos, sin, positions):
    """How far rounding may carry each element: twice the error of two products in fp32 and their sum, each rounded
    once. This error is 2 U32 = 2 * 2**-24 of the |products|; a fused multiply-add takes less.

    It counts twice since torch in fp32, with which timed results are compared first, rounds as often: in 67 million
    elements it took up to 0.99 of 2 U32.
    """
    return size_of_products(z, q, cos, sin, positions).mul_(4 * U32)


def size_of_products(z, q, cos, sin, positions):
    """The sum of the two |products| of each element, [B, H, S, D]."""
    a, e = q.abs().chunk(2, dim=-1)
    c, n = (table[positions][:, None].abs() for table in (cos, sin))
    return torch.cat((a * c + e * n, e * c + a * n), dim=-1)


exercise = Exercise(
    entry="rope",
    reference=rotated,  # called in float64
    returns="z",
    bound=RoundingModel(rounding, terms=size_of_products),
    minutes=35,
    presumes=("02_strided_blocks", "07_row_sum", "08_swiglu"),
    example=Example(normal(1, 2, 3, 6), table(5, 3), table(5, 3), indices(1, 3, below=5), BLOCK_H=2),
    cut="q[b, h, s, :], cos[:, :], sin[:, :], positions[b, s] -> z[b, h, s, :]",
)


@pytest.mark.core
def test_heads_and_pairs_fill_their_blocks(check):
    check(normal(1, 16, 3, 64), table(7, 32), table(7, 32), indices(1, 3, below=7))


@pytest.mark.core
def test_whole_numbers_are_rotated_exactly(check):
    numbers = integers(9, 16).of("float32")
    check(integers(1, 5, 6, 32), numbers, numbers, indices(1, 6, below=9), bound="exact")


@pytest.mark.core
def test_each_batch_has_its_own_positions(check):
    check(normal(3, 2, 5, 16), table(11, 8), table(11, 8), indices(3, 5, below=11))


@pytest.mark.core
def test_one_pair(check):
    check(normal(2, 3, 5, 2), table(11, 1), table(11, 1), indices(2, 5, below=11))


def test_three_pairs(check):
    check(normal(2, 3, 5, 6), table(11, 3), table(11, 3), indices(2, 5, below=11))


def test_the_number_of_pairs_is_no_power_of_two(check):
    check(normal(2, 3, 4, 80), table(9, 40), table(9, 40), indices(2, 4, below=9))


def test_the_widest_head(check):
    check(normal(1, 3, 2, 256), table(5, 128), table(5, 128), indices(1, 2, below=5))


@pytest.mark.core
def test_one_head(check):
    check(normal(2, 1, 5, 16), table(11, 8), table(11, 8), indices(2, 5, below=11))


@pytest.mark.core
def test_one_head_more_than_a_block(check):
    check(normal(2, 17, 3, 16), table(11, 8), table(11, 8), indices(2, 3, below=11))


def test_another_block_gives_the_same_result(check):
    check(normal(2, 7, 3, 16), table(11, 8), table(11, 8), indices(2, 3, below=11), BLOCK_H=4)


def test_positions_are_shared_by_all_batches(check):
    check(normal(3, 2, 5, 16), table(11, 8), table(11, 8), indices(3, 5, below=11).expanded(), dtypes=ONE)


def test_positions_are_stored_column_by_column(check):
    check(normal(3, 2, 5, 16), table(11, 8), table(11, 8), indices(3, 5, below=11).transposed(), dtypes=ONE)


def test_positions_are_int64(check):
    check(normal(2, 3, 5, 16), table(11, 8), table(11, 8), indices(2, 5, below=11).of("int64"), dtypes=ONE)


def test_heads_and_positions_have_changed_places_in_memory(check):
    check(normal(2, 3, 5, 16).stored_as(0, 2, 1, 3), table(11, 8), table(11, 8), indices(2, 5, below=11), dtypes=ONE)


def test_the_elements_of_a_head_lie_apart(check):
    check(normal(2, 3, 5, 16).transposed(), table(11, 8), table(11, 8), indices(2, 5, below=11), dtypes=ONE)


def test_q_is_every_second_element(check):
    check(normal(2, 3, 5, 16).every_second(), table(11, 8), table(11, 8), indices(2, 5, below=11), dtypes=ONE)


def test_heads_are_padded(check):
    check(normal(2, 3, 5, 16).padded(), table(11, 8), table(11, 8), indices(2, 5, below=11), dtypes=ONE)


def test_rows_of_the_tables_are_padded(check):
    padded = table(11, 8).padded()
    check(normal(2, 3, 5, 16), padded, padded, indices(2, 5, below=11), dtypes=ONE)


def test_tables_are_stored_column_by_column(check):
    by_column = table(11, 8).transposed()
    check(normal(2, 3, 5, 16), by_column, by_column, indices(2, 5, below=11), dtypes=ONE)


@pytest.mark.core
def test_one_row_of_each_table_serves_all_heads(traffic):
    data = normal(2, 17, 5, 64), table(50, 32), table(50, 32), indices(2, 5, below=50)
    looked_up = Elements(2 * 5 * 32)
    traffic(*data, reads={"q": 1, "cos": looked_up, "sin": looked_up, "positions": 1}, writes=1, launches=1, idle=0)


def test_it_compiles_for_a_gpu_and_moves_16_bytes_at_a_time(compiled):
    compiled(normal(8, 32, 4096, 128), table(4096, 64), table(4096, 64), indices(8, 4096, below=4096), vectors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "B": upto(4, least=0, limit=65535, block=3),
            "H": upto(36, least=0, limit=2**12, block=16),
            "S": upto(9, least=0, limit=2**24, block=4),
            "pairs": upto(40, once=128, limit=128, block=16),
            "P": upto(50, limit=2**16, block=16),
        },
        q=any_strides("B", "H", "S", "2*pairs", values=(normal, subnormal, thousands)),
        cos=contiguous("P", "pairs", values=(normal, tens), dtype="float32"),
        sin=contiguous("P", "pairs", values=(normal, tens), dtype="float32"),
        positions=any_strides("B", "S", values=(into("P"),)),
        dtypes=("float32", "float16", "bfloat16"),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    data = normal(1, 3, 70001, 80), table(509, 40), table(509, 40), indices(1, 70001, below=509)
    on_gpu(*data, dtypes=("float32", "float16", "bfloat16"))


def test_queries_of_more_than_two_billion_bytes(on_gpu):
    data = normal(65, 33, 2053, 128), table(509, 64), table(509, 64), indices(65, 2053, below=509)
    on_gpu(*data, dtypes=("float32",))


def test_it_reaches_the_gate(throughput):
    data = normal(4, 32, 4096, 128), table(4096, 64), table(4096, 64), indices(4, 4096, below=4096)
    throughput(*data, at_least=0.6)
