"""25 · Flash attention: what a right kernel must do."""

from itertools import product

import pytest
import torch

from grader import (
    ATTENTION,
    LOG_SUM_EXP,
    Example,
    Exercise,
    Result,
    a_code_each,
    any_strides,
    cancelling_down,
    codes,
    falling_down,
    first_row,
    integers,
    last_row,
    level,
    normal,
    only,
    subnormal,
    uniform,
    upto,
)


def attention_of_each_head(q, k, v):
    """Head after head: the scores of all heads at once would fill a GPU."""
    o, lse = q.new_empty(q.shape), q.new_empty(q.shape[:3])
    for head in product(*map(range, q.shape[:2])):
        s = q[head] @ k[head].mT * q.shape[-1] ** -0.5
        o[head], lse[head] = torch.softmax(s, dim=-1) @ v[head], torch.logsumexp(s, dim=-1)
    return o, lse


def as_much_work(q, k, v):
    """Two products with 2 M N D operations each, for every head: the rows of one product with K = 4096."""
    (B, H, M, D), N = q, k[2]
    return 4096, 4096, 2 * B * H * M * N * D // 4096**2


exercise = Exercise(
    entry="attention",
    reference=attention_of_each_head,  # called in float64
    returns=("o", Result("lse", dtype="float32", bound=LOG_SUM_EXP)),
    bound=ATTENTION,  # p is rounded to the dtype of v, and nothing else
    dtypes=("float16",),
    minutes=150,
    presumes=("05_grouped_matmul", "11_rope", "13_online_softmax"),
    example=Example(integers(1, 1, 6, 4), integers(1, 1, 10, 4), normal(1, 1, 10, 4), BLOCK_M=4, BLOCK_N=4),
    cut="q[b, h, m, :], k[b, h, :, :], v[b, h, :, :] -> o[b, h, m, :], lse[b, h, m]",
    product=as_much_work,
)

SMALL = dict(BLOCK_M=64, BLOCK_N=32)  # many tiles from little data
BOTH = ("float16", "bfloat16")
O_ALONE = {"lse": "unjudged"}  # the core asks for o: lse may wait


def far(*shape):
    """The same number everywhere: scores of two such are 29,000, just below the most that the lesson promises."""
    return level(*shape) * (29_000 / shape[-1] ** 0.5) ** 0.5


def vast(*shape):
    """Up to the largest numbers of fp16."""
    return uniform(*shape) * 65_000


def huge(*shape):
    """Up to 10**30 in bf16, beyond all that fp16 has, and up to 2e-4 in fp16."""
    return normal(*shape).then("of the largest", 2e-10)


def heavy_end(*shape):
    """The value of the last key is so large that it counts among thousands of others."""
    return last_row(1000, normal(*shape))


def sharp(*shape):
    """Queries whose scores differ by dozens: nearly one key takes all, another one in each row."""
    return normal(*shape) * 16


def around(number, *shape):
    """Near this number, with a spread of a tenth of it: two such factors make scores far from 0."""
    return normal(*shape) * (0.1 * number) + number


def core(test):
    """Nearly half of all points for the first six tests."""
    return pytest.mark.core(pytest.mark.points(3)(test))


# ---- core: o alone, in fp16, contiguous, D = 64 ----------------------------------------------------------------------


@core
def test_one_tile_of_keys(check):
    check(normal(1, 1, 64, 64), normal(1, 1, 32, 64), normal(1, 1, 32, 64), bound=O_ALONE, **SMALL)


@core
def test_many_tiles_of_keys(check):
    check(normal(1, 1, 64, 64), normal(1, 1, 128, 64), normal(1, 1, 128, 64), bound=O_ALONE, **SMALL)


@core
def test_each_head_has_its_own_keys(check):
    check(normal(2, 3, 64, 64), normal(2, 3, 96, 64), normal(2, 3, 96, 64), bound=O_ALONE, **SMALL)


@core
def test_each_query_picks_one_key(check):
    q, k = a_code_each(1, 1, 64, 64, below=128) * 6, codes(1, 1, 128, 64) * 6
    check(q, k, normal(1, 1, 128, 64), bound=O_ALONE | {"o": "exact"}, **SMALL)


@core
def test_scores_rise_along_the_keys(check):
    rising, v = falling_down(1, 1, 128, 64) * -0.03, normal(1, 1, 128, 64)
    check(around(4, 1, 1, 64, 64), rising, v, bound=O_ALONE, **SMALL)
    check(first_row(4, level(1, 1, 64, 64) * 0), rising, v, bound=O_ALONE, **SMALL)  # those of one query alone


@core
def test_scores_fall_along_the_keys(check):
    check(around(4, 1, 1, 64, 64), falling_down(1, 1, 128, 64) * 0.03, normal(1, 1, 128, 64), bound=O_ALONE, **SMALL)


# ---- full ------------------------------------------------------------------------------------------------------------


def test_the_last_tiles_are_not_full(check):
    check(normal(1, 2, 70, 64), normal(1, 2, 77, 64), normal(1, 2, 77, 64), **SMALL)
    check(normal(1, 1, 300, 16), normal(1, 1, 45, 16), normal(1, 1, 45, 16), BLOCK_M=256, BLOCK_N=32)


def test_more_keys_than_queries(check):
    check(normal(1, 2, 33, 64), normal(1, 2, 130, 64), normal(1, 2, 130, 64), **SMALL)


def test_one_query_and_one_key(check):
    check(normal(1, 1, 1, 64), normal(1, 1, 1, 64), normal(1, 1, 1, 64), **SMALL)


def test_full_size_tiles(check):
    check(normal(1, 1, 200, 64), normal(1, 1, 150, 64), normal(1, 1, 150, 64))


def test_a_head_of_16(check):
    check(normal(1, 2, 70, 16), normal(1, 2, 45, 16), normal(1, 2, 45, 16), dtypes=BOTH, **SMALL)


def test_a_head_of_32(check):
    check(normal(1, 2, 70, 32), normal(1, 2, 45, 32), normal(1, 2, 45, 32), dtypes=BOTH, **SMALL)


def test_a_head_of_128(check):
    check(normal(1, 2, 33, 128), normal(1, 2, 45, 128), normal(1, 2, 45, 128), dtypes=BOTH, **SMALL)


def test_heads_and_tokens_have_changed_places_in_q(check):
    check(normal(2, 3, 33, 16).stored_as(0, 2, 1, 3), normal(2, 3, 45, 16).transposed(), normal(2, 3, 45, 16), **SMALL)


def test_heads_and_tokens_have_changed_places_in_all(check):
    q, k, v = (normal(2, 3, tokens, 16).stored_as(0, 2, 1, 3) for tokens in (33, 45, 45))
    check(q, k, v, **SMALL)


def test_q_is_transposed_k_padded_v_every_second(check):
    q, k, v = normal(1, 2, 33, 16), normal(1, 2, 45, 16), normal(1, 2, 45, 16)
    check(q.transposed(), k.padded(), v.every_second(), **SMALL)


def test_q_is_padded_k_every_second_v_transposed(check):
    q, k, v = normal(1, 2, 33, 16), normal(1, 2, 45, 16), normal(1, 2, 45, 16)
    check(q.padded(), k.every_second(), v.transposed(), **SMALL)


def test_q_is_every_second_k_transposed_v_padded(check):
    q, k, v = normal(1, 2, 33, 16), normal(1, 2, 45, 16), normal(1, 2, 45, 16)
    check(q.every_second(), k.transposed(), v.padded(), **SMALL)


def test_scores_below_zero(check):
    check(around(1.4, 1, 1, 33, 64), around(-1.4, 1, 1, 77, 64), normal(1, 1, 77, 64), **SMALL)


def test_scores_far_below_zero(check):
    check(around(6.7, 1, 1, 33, 64), around(-6.7, 1, 1, 77, 64), normal(1, 1, 77, 64), **SMALL)


def test_scores_near_minus_twenty_thousand(check):
    check(around(50, 1, 1, 33, 64), around(-50, 1, 1, 77, 64), normal(1, 1, 77, 64), **SMALL)


def test_scores_at_the_far_end_are_all_the_same(check):
    q, k = far(1, 1, 33, 64), far(1, 1, 77, 64)
    check(q, k * -1, normal(1, 1, 77, 64), dtypes=BOTH, **SMALL)
    check(q, k, vast(1, 1, 77, 64), dtypes=BOTH, **SMALL)  # a sum of values that is not divided is infinite
    check(q, k, huge(1, 1, 77, 64), dtypes=BOTH, **SMALL)


def test_one_key_stands_out_at_minus_six_million(check):
    q, k = level(1, 1, 33, 64) * 1000, falling_down(1, 1, 77, 64) * 3 - 1000  # by 60 000, so that fp32 tells it apart
    check(q, k, normal(1, 1, 77, 64), dtypes=BOTH, **SMALL)


def test_one_key_takes_nearly_all_and_its_value_is_zero(check):
    k, v = first_row(1.75, normal(1, 1, 1000, 64) * 0.1), first_row(0, uniform(1, 1, 1000, 64))
    check(around(1, 1, 1, 33, 64), k, v, **SMALL)


def test_sums_that_cancel_keep_their_digits(check):
    check(normal(1, 1, 16, 16) * 0, normal(1, 1, 8192, 16), cancelling_down(1, 1, 8192, 16), BLOCK_M=16, BLOCK_N=32)


@pytest.mark.core
def test_scores_are_never_in_memory(traffic):
    # 3 tiles of queries for each head: k and v are read 3 times, and nothing but o and lse is written.
    data = normal(1, 2, 192, 64), normal(1, 2, 128, 64), normal(1, 2, 128, 64)
    traffic(*data, reads={"q": 1, "k": 3, "v": 3}, writes=1, launches=1, idle=0, scratch=0, bound=O_ALONE, **SMALL)


def test_both_products_run_on_tensor_cores_while_loads_run_ahead(compiled):
    data = normal(4, 16, 4096, 128), normal(4, 16, 4096, 128), normal(4, 16, 4096, 128)
    compiled(*data, tensor_cores=True, halves=True, pipelined=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "B": upto(4, least=0, limit=65535, block=3),
            "H": upto(4, least=0, limit=65535, block=3),
            "M": upto(80, least=0, limit=2**26, BLOCK_M=128),
            "N": upto(150, limit=2**14, BLOCK_N=64),
            "D": only(16, 32, 128, 64),
        },
        q=any_strides("B", "H", "M", "D", values=(normal, subnormal, sharp, far)),
        k=any_strides("B", "H", "N", "D", values=(normal, subnormal, far)),
        v=any_strides("B", "H", "N", "D", values=(normal, heavy_end, vast, huge)),
        dtypes=BOTH,
        blocks=(dict(BLOCK_M=32, BLOCK_N=32), dict(BLOCK_M=16, BLOCK_N=16)),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    data = normal(2, 3, 4099, 64), normal(2, 3, 6007, 64), normal(2, 3, 6007, 64)
    on_gpu(*data, dtypes=BOTH)


def test_heads_of_64_reach_the_gate(throughput):
    data = normal(4, 16, 4096, 64), normal(4, 16, 4096, 64), normal(4, 16, 4096, 64)
    throughput(*data, anchor="matmul", at_least=0.26)


def test_heads_of_128_reach_the_gate(throughput):
    data = normal(4, 16, 4096, 128), normal(4, 16, 4096, 128), normal(4, 16, 4096, 128)
    throughput(*data, anchor="matmul", at_least=0.34)
