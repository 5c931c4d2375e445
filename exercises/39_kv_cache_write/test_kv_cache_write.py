"""39 · KV cache write: what a right kernel must do."""

import pytest
import torch

from grader import (
    Elements,
    Example,
    Exercise,
    any_strides,
    large,
    normal,
    slots,
    slots_into,
    special,
    subnormal,
    target,
    unusual,
    upto,
)


def written(k, v, k_cache, v_cache, slots):
    return with_rows(k_cache, k, slots), with_rows(v_cache, v, slots)


def with_rows(cache, tokens, slots):
    """A spare row behind all others takes what has slot -1, and is left out again."""
    rows = torch.cat((cache.flatten(0, 1), cache[:1, 0]))
    rows[slots] = tokens
    return rows[:-1].unflatten(0, cache.shape[:2])


def tokens(*shape):
    """A copy keeps every bit, and so infinities, NaN and -0.0."""
    return special(normal(*shape))


def cache(*shape):
    """It is full: a place to which no token goes shows whether it was left alone."""
    return special(normal(*shape))


ONE = ("float16",)  # of layouts and slots: a wrong address shows in any dtype
FEW = slots(12, below=64)  # of four pages of 16 rows
SOME = slots(12, below=64, nowhere=0.3)

exercise = Exercise(
    entry="kv_cache_write",
    reference=written,
    returns=("k_cache", "v_cache"),
    updates=("k_cache", "v_cache"),
    unread=("k_cache", "v_cache"),
    bound="bits",  # a copy changes no bit
    dtypes=("float16", "float32"),
    minutes=40,
    presumes=("11_rope", "12_gather_rows"),
    example=Example(
        normal(7, 1, 2), normal(7, 1, 2), normal(3, 4, 1, 2), normal(3, 4, 1, 2), slots(7, below=12, nowhere=0.25),
        BLOCK_H=1,
    ),
)  # fmt: skip


@pytest.mark.core
def test_a_few_tokens_go_to_their_rows(check):
    check(tokens(12, 8, 32), tokens(12, 8, 32), cache(4, 16, 8, 32), cache(4, 16, 8, 32), FEW)


@pytest.mark.core
def test_every_row_gets_a_token(check):
    check(tokens(32, 2, 16), tokens(32, 2, 16), cache(2, 16, 2, 16), cache(2, 16, 2, 16), slots(32, below=32))


@pytest.mark.core
def test_a_token_with_minus_one_goes_nowhere(check):
    check(tokens(12, 8, 16), tokens(12, 8, 16), cache(4, 16, 8, 16), cache(4, 16, 8, 16), SOME)


@pytest.mark.core
def test_one_token_goes_to_slot_zero(check):
    check(tokens(1, 3, 16), tokens(1, 3, 16), cache(2, 4, 3, 16), cache(2, 4, 3, 16), slots(1, below=8), dtypes=ONE)


def test_pages_have_24_rows(check):
    where = slots(12, below=72, nowhere=0.2)
    check(tokens(12, 3, 16), tokens(12, 3, 16), cache(3, 24, 3, 16), cache(3, 24, 3, 16), where, dtypes=ONE)


def test_pages_have_one_row(check):
    where = slots(9, below=20, nowhere=0.2)
    check(tokens(9, 3, 16), tokens(9, 3, 16), cache(20, 1, 3, 16), cache(20, 1, 3, 16), where, dtypes=ONE)


def test_one_head_more_than_a_block(check):
    check(tokens(5, 9, 16), tokens(5, 9, 16), cache(2, 8, 9, 16), cache(2, 8, 9, 16), slots(5, below=16), dtypes=ONE)


@pytest.mark.core
def test_one_head(check):
    check(tokens(5, 1, 16), tokens(5, 1, 16), cache(2, 8, 1, 16), cache(2, 8, 1, 16), slots(5, below=16), dtypes=ONE)


def test_the_length_of_a_head_is_no_power_of_two(check):
    check(tokens(5, 3, 80), tokens(5, 3, 80), cache(2, 8, 3, 80), cache(2, 8, 3, 80), slots(5, below=16), dtypes=ONE)


def test_the_longest_head(check):
    check(tokens(3, 2, 256), tokens(3, 2, 256), cache(2, 4, 2, 256), cache(2, 4, 2, 256), slots(3, below=8), dtypes=ONE)


def test_no_token(check):
    check(tokens(0, 2, 16), tokens(0, 2, 16), cache(2, 4, 2, 16), cache(2, 4, 2, 16), slots(0, below=8), dtypes=ONE)


def test_another_block_gives_the_same_result(check):
    data = tokens(5, 9, 16), tokens(5, 9, 16), cache(2, 8, 9, 16), cache(2, 8, 9, 16), slots(5, below=16)
    check(*data, dtypes=ONE, BLOCK_H=4)


def test_slots_are_int64(check):
    data = tokens(12, 3, 16), tokens(12, 3, 16), cache(4, 16, 3, 16), cache(4, 16, 3, 16)
    check(*data, SOME.of("int64"), dtypes=ONE)


def test_slots_are_every_second_element(check):
    data = tokens(12, 3, 16), tokens(12, 3, 16), cache(4, 16, 3, 16), cache(4, 16, 3, 16)
    check(*data, SOME.every_second(), dtypes=ONE)


def test_k_and_v_take_turns_in_one_tensor(check):
    packed = tokens(12, 3, 16).beside_another()
    check(packed, packed, cache(4, 16, 3, 16), cache(4, 16, 3, 16), SOME, dtypes=ONE)


def test_k_is_transposed_and_v_padded(check):
    k, v = tokens(12, 3, 16).transposed(), tokens(12, 3, 16).padded()
    check(k, v, cache(4, 16, 3, 16), cache(4, 16, 3, 16), SOME, dtypes=ONE)


def test_heads_of_a_page_come_before_its_rows(check):
    by_head = cache(4, 16, 3, 16).stored_as(0, 2, 1, 3)
    check(tokens(12, 3, 16), tokens(12, 3, 16), by_head, by_head, SOME, dtypes=ONE)


def test_pages_of_both_caches_take_turns_in_one_tensor(check):
    stacked = cache(4, 16, 3, 16).beside_another()
    check(tokens(12, 3, 16), tokens(12, 3, 16), stacked, stacked, SOME, dtypes=ONE)


def test_the_caches_lie_differently_in_memory(check):
    k_cache, v_cache = cache(4, 16, 3, 16).padded(), cache(4, 16, 3, 16).stored_as(2, 0, 1, 3)
    check(tokens(12, 3, 16), tokens(12, 3, 16), k_cache, v_cache, SOME, dtypes=ONE)


@pytest.mark.core
def test_one_launch_writes_rows_and_reads_no_cache(traffic):
    given, moved = (normal(40, 8, 32), normal(40, 8, 32)), Elements(30 * 8 * 32)
    data = *given, normal(8, 16, 8, 32), normal(8, 16, 8, 32), slots(40, below=128, nowhere=0.25)
    reads = {"k": 1, "v": 1, "slots": 64}
    traffic(*data, reads=reads, writes={"k_cache": moved, "v_cache": moved}, launches=1)


def test_no_more_programs_than_heads_of_tokens(traffic):
    data = normal(40, 8, 32), normal(40, 8, 32), normal(8, 16, 8, 32), normal(8, 16, 8, 32), slots(40, below=128)
    traffic(*data, reads={}, idle=0, programs=2 * 40 * 8)


def test_neighbouring_lanes_touch_neighbouring_memory(traffic):
    data = normal(40, 8, 64), normal(40, 8, 64), normal(8, 16, 8, 64), normal(8, 16, 8, 64), slots(40, below=128)
    traffic(*data, reads={}, moved=1.5)


def test_a_thread_moves_16_bytes_at_a_time(compiled):
    data = normal(4096, 8, 256), normal(4096, 8, 256), normal(512, 16, 8, 256), normal(512, 16, 8, 256)
    compiled(*data, slots(4096, below=8192), vectors=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "T": upto(12, least=0, limit=2**18, block=4),
            "H": upto(12, limit=1024, block=8),
            "D": upto(40, once=256, limit=256, block=16),
            "P": upto(5, limit=2**31 - 1, block=3),
            "page": upto(26, limit=2**16, block=16),
        },
        k=any_strides("T", "H", "D", values=(normal, large, subnormal, unusual)),
        v=any_strides("T", "H", "D", values=(normal, large, subnormal, unusual)),
        k_cache=target("P", "page", "H", "D", values=(normal, unusual)),
        v_cache=target("P", "page", "H", "D", values=(normal, unusual)),
        # No two tokens have one slot, so no two slots have one place in memory.
        slots=target("T", values=(slots_into("P", "page"), slots_into("P", "page", nowhere=0.3))),
        dtypes=("float16", "float32", "bfloat16"),
    )


def test_caches_of_more_than_two_billion_elements(on_gpu):
    big = normal(140_000, 16, 8, 128)
    on_gpu(normal(3, 8, 128), normal(3, 8, 128), big, big, slots(3, below=140_000 * 16), dtypes=ONE)


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    data = normal(20_011, 9, 80), normal(20_011, 9, 80), normal(1250, 24, 9, 80), normal(1250, 24, 9, 80)
    on_gpu(*data, slots(20_011, below=30_000, nowhere=0.1), dtypes=("float16", "float32", "bfloat16"))


def test_it_reaches_the_gate(throughput):
    data = normal(65_536, 8, 128), normal(65_536, 8, 128), normal(4096, 16, 8, 128), normal(4096, 16, 8, 128)
    throughput(*data, slots(65_536, below=65_536), at_least=0.43)
