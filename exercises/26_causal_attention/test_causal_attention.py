"""26 · Causal attention: what a right kernel must do."""

from itertools import product

import pytest
import torch

from grader import (
    Example,
    Exercise,
    Result,
    RoundingModel,
    any_strides,
    between,
    by_heads,
    integers,
    last_row,
    level,
    normal,
    one_of,
    only,
    optional,
    rounding_of_lse,
    rounding_of_o,
    scores,
    subnormal,
    uniform,
    upto,
)


def keys_seen(q, k, window):
    """Which keys each query sees, [M, N]."""
    M, N = q.shape[2], k.shape[2]
    at = torch.arange(M, device=q.device)[:, None] + N - M  # the last query stands where the last key does
    keys = torch.arange(N, device=q.device)
    return keys <= at if window is None else (keys <= at) & (keys > at - window)


def attention_of_each_head(q, k, v, window, softcap):
    """Head after head: the scores of all heads at once would fill a GPU."""
    (B, H, M, D), HK, seen = q.shape, k.shape[1], keys_seen(q, k, window)
    o, lse = q.new_empty(q.shape), q.new_empty(q.shape[:3])
    for b, h in product(range(B), range(H)):
        own = b, h // (H // HK)
        s = q[b, h] @ k[own].mT * D**-0.5
        s = s if softcap is None else softcap * torch.tanh(s / softcap)
        s = s.masked_fill(~seen, -torch.inf)
        o[b, h], lse[b, h] = torch.softmax(s, dim=-1).nan_to_num(0) @ v[own], torch.logsumexp(s, dim=-1)
    return o, lse


def as_much_work(q, k, v):
    """Two products with 2 D operations for each pair of a query and a key that it sees: rows of one with K = 4096."""
    (B, H, M, D), N = q, k[2]
    return 4096, 4096, B * H * M * (2 * N - M) * D // 4096**2


# ---- how much rounding a right kernel may show: as much as in attention, over the keys that are seen -----------------


class Scored:
    """The scores of a call, [heads, M, N], a few heads at a time."""

    def __init__(self, q, k, v, window, softcap):
        self.q, self.k, self.v, self.softcap, self.seen = q, k, v, softcap, keys_seen(q, k, window)
        self.more = 0.0 if softcap is None else 8 * softcap  # U32 of error in a capped score: tanh has an exponential

    def scores(self, q, k):
        """-inf for keys that are not seen."""
        s, cap = scores(q, k), self.softcap
        return (s if cap is None else cap * torch.tanh(s / cap)).masked_fill_(~self.seen, -torch.inf)

    def sizes(self, q, k):
        """The sums of |q k| / sqrt(D); 0 for keys that are not seen."""
        return scores(q.abs(), k.abs()).masked_fill_(~self.seen, 0.0)

    def of_heads(self, result, make):
        """Returns what `make` gives for q, k and v of each head of q, [shape of the result]."""
        group = self.q.shape[1] // self.k.shape[1]
        k, v = (one if group == 1 else one.repeat_interleave(group, dim=1) for one in (self.k, self.v))
        return by_heads(result, make, self.q, k, v)


def rounding(o, *call):
    of = Scored(*call)
    return of.of_heads(o, lambda q, k, v: rounding_of_o(of.scores(q, k), of.sizes(q, k), v, of.more))


def rounding_in_lse(lse, *call):
    of = Scored(*call)
    return of.of_heads(lse, lambda q, k, v: rounding_of_lse(of.sizes(q, k), v, of.more))


def rounded_p(o, *call):
    of = Scored(*call)

    def lost(q, k, v):
        s = of.scores(q, k)
        total = torch.exp(s - s.amax(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
        return (of.seen.to(v.dtype) @ v.abs() / total).nan_to_num_(nan=0.0)

    return size_of_terms(o, *call).mul_(1.1), of.of_heads(o, lost).mul_(1.1 / 2)


def size_of_terms(o, *call):
    of = Scored(*call)
    return of.of_heads(o, lambda q, k, v: torch.softmax(of.scores(q, k), dim=-1).nan_to_num_(nan=0.0) @ v.abs())


def size_of_scores(lse, *call):
    of = Scored(*call)
    return of.of_heads(lse, lambda q, k, v: of.sizes(q, k).amax(dim=-1)) + 1


exercise = Exercise(
    entry="attention",
    reference=attention_of_each_head,  # called in float64
    returns=("o", Result("lse", dtype="float32", bound=RoundingModel(rounding_in_lse, terms=size_of_scores))),
    bound=RoundingModel(rounding, rounded_p, size_of_terms),  # p is rounded to the dtype of v, and nothing else
    cut="q[b, h, :, :], k[b, h/, :, :], v[b, h/, :, :] -> o[b, h, :, :], lse[b, h, :]",
    dtypes=("float16",),
    minutes=100,
    presumes=("25_flash_attention",),
    example=Example(integers(1, 1, 6, 4), integers(1, 1, 10, 4), normal(1, 1, 10, 4), 6, None, BLOCK_M=4, BLOCK_N=4),
    product=as_much_work,
)

SMALL = dict(BLOCK_M=32, BLOCK_N=32)  # many tiles from little data
BOTH = ("float16", "bfloat16")
O_ALONE = {"lse": "unjudged"}  # the core asks for o: lse may wait
NO_OPTION = (None, None)  # neither a window nor a softcap


def heads(queries, keys, H=2, HK=2, D=16, B=1):
    return normal(B, H, queries, D), normal(B, HK, keys, D), normal(B, HK, keys, D)


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


def scores_near(number, queries, keys):
    q, k = around(number, 1, 1, queries, 64), around(-number, 1, 1, keys, 64)
    return q, k, normal(1, 1, keys, 64)


def core(test):
    """Half of all points for the first five tests."""
    return pytest.mark.core(pytest.mark.points(7)(test))


# ---- core: o alone, in fp16, contiguous, as many queries as keys, no option ------------------------------------------


@core
def test_a_query_sees_its_own_key_and_those_before(check):
    check(*heads(32, 32, D=64), *NO_OPTION, bound=O_ALONE, **SMALL)


@core
def test_many_tiles(check):
    check(*heads(128, 128, D=64), *NO_OPTION, bound=O_ALONE, **SMALL)


@core
def test_the_loop_ends_at_the_diagonal(traffic):
    # 10 of 4 x 4 tiles are seen: each tile of keys is read 2.5 times on average.
    reads = {"q": 1, "k": 10 / 4, "v": 10 / 4}
    traffic(*heads(128, 128, D=64), *NO_OPTION, bound=O_ALONE, reads=reads, launches=1, scratch=0, **SMALL)


@core
def test_the_last_tiles_are_not_full(check):
    check(*heads(77, 77, D=64), *NO_OPTION, bound=O_ALONE, **SMALL)


@core
def test_one_query_and_one_key(check):
    check(*heads(1, 1, D=64), *NO_OPTION, bound=O_ALONE, **SMALL)


# ---- full: lse, and another number of keys ---------------------------------------------------------------------------


def test_lse_is_that_of_the_seen_keys(check):
    check(*heads(77, 77), *NO_OPTION, **SMALL)


def test_more_keys_than_queries(check):
    check(*heads(33, 130), *NO_OPTION, **SMALL)


def test_one_query_sees_all_keys(check):
    check(*heads(1, 77), *NO_OPTION, **SMALL)


def test_queries_that_see_no_key(check):
    check(*heads(100, 77), *NO_OPTION, **SMALL)


def test_a_whole_tile_of_queries_sees_no_key(check):
    check(*heads(130, 20), *NO_OPTION, **SMALL)


def test_full_size_tiles(check):
    check(*heads(150, 200, H=1, HK=1, D=64), *NO_OPTION)


# ---- heads that share keys and values --------------------------------------------------------------------------------


def test_three_heads_share_keys_and_values(check):
    check(*heads(33, 45, H=6, HK=2, B=2), *NO_OPTION, **SMALL)


def test_all_heads_share_keys_and_values(check):
    check(*heads(33, 45, H=3, HK=1, B=2), *NO_OPTION, **SMALL)


# ---- a window --------------------------------------------------------------------------------------------------------


def test_a_window_in_tiles_of_many_queries_and_few_keys(check):
    check(*heads(70, 100), 40, None, BLOCK_M=64, BLOCK_N=16)


def test_a_window_of_one_tile(check):
    check(*heads(100, 100), 32, None, **SMALL)


def test_a_window_that_is_no_multiple_of_a_tile(check):
    check(*heads(100, 100), 40, None, **SMALL)


def test_a_window_of_one_key(check):
    check(*heads(45, 45), 1, None, **SMALL)


def test_a_window_longer_than_the_keys(check):
    check(*heads(45, 77), 1000, None, **SMALL)
    check(*heads(45, 77), 2**30, None, **SMALL)


def test_a_window_with_more_keys_than_queries(check):
    check(*heads(70, 130), 40, None, **SMALL)


def test_a_window_with_queries_that_see_no_key(check):
    check(*heads(130, 45), 40, None, **SMALL)


def test_a_window_in_tiles_of_few_queries_and_many_keys(check):
    check(*heads(70, 100), 40, None, BLOCK_M=16, BLOCK_N=64)


def test_a_window_reads_the_tiles_in_it(traffic):
    # 7 tiles of queries: the first visits 1 tile of keys, each of the others 2. The last tiles are a quarter; a kernel
    # that takes rows past the end as other rows reads them whole.
    reads = {"q": 7 * 32 / 200, "k": 13 * 32 / 200, "v": 13 * 32 / 200}
    traffic(*heads(200, 200), 32, None, reads=reads, writes=1, launches=1, idle=0, **SMALL)


def test_groups_and_more_keys_read_the_tiles_that_are_seen(traffic):
    # 4 heads for each of k and v; their tiles of queries visit 3, 4 and 5 tiles of 5. It is a power of two: a kernel
    # that has a group in a tile may pad others to one, and then reads as often as for the heads that are not there.
    reads = {"q": 1, "k": 4 * 12 / 5, "v": 4 * 12 / 5}
    traffic(*heads(96, 160, H=8), *NO_OPTION, reads=reads, writes=1, launches=1, idle=0, scratch=0, **SMALL)


def test_scores_below_zero_in_a_window(check):
    check(*scores_near(1.4, 77, 77), 40, None, **SMALL)


def test_scores_far_below_zero_in_a_window(check):
    check(*scores_near(6.7, 77, 77), 40, None, **SMALL)


def test_scores_near_minus_twenty_thousand(check):
    check(*scores_near(50, 45, 45), *NO_OPTION, **SMALL)


def test_scores_at_the_far_end_are_all_the_same(check):
    q, k = far(1, 1, 45, 64), far(1, 1, 45, 64)
    check(q, k * -1, normal(1, 1, 45, 64), *NO_OPTION, dtypes=BOTH, **SMALL)
    check(q, k, vast(1, 1, 45, 64), *NO_OPTION, dtypes=BOTH, **SMALL)  # a sum of values that is not divided is infinite
    check(q, k, huge(1, 1, 45, 64), *NO_OPTION, dtypes=BOTH, **SMALL)


# ---- a softcap -------------------------------------------------------------------------------------------------------


def test_a_softcap_bends_scores(check):
    check(*heads(45, 45), None, 2.0, **SMALL)


def test_a_softcap_of_50_with_scores_beyond_it(check):
    q, k, v = heads(45, 77, D=64)
    check(q * 8, k * 8, v, None, 50.0, **SMALL)


def test_scores_that_are_many_times_the_softcap(check):
    q, k, v = heads(45, 45, D=64)
    check(q * 5, k * 5, v, None, 0.5, **SMALL)


# ---- all together ----------------------------------------------------------------------------------------------------


def test_groups_a_window_and_a_softcap_in_a_head_of_32(check):
    check(*heads(70, 100, H=4, D=32), 40, 5.0, dtypes=BOTH, **SMALL)


def test_groups_a_window_and_a_softcap_in_a_head_of_128(check):
    check(*heads(33, 77, H=2, HK=1, D=128), 40, 5.0, dtypes=BOTH, **SMALL)


def test_heads_and_tokens_have_changed_places_in_q(check):
    q, k, v = heads(33, 45, B=2)
    check(q.stored_as(0, 2, 1, 3), k.transposed(), v, *NO_OPTION, **SMALL)


def test_heads_and_tokens_have_changed_places_in_all(check):
    q, k, v = (one.stored_as(0, 2, 1, 3) for one in heads(33, 45, H=4, B=2))
    check(q, k, v, 40, None, **SMALL)


def test_q_is_transposed_k_padded_v_every_second(check):
    q, k, v = heads(33, 45)
    check(q.transposed(), k.padded(), v.every_second(), *NO_OPTION, **SMALL)


def test_q_is_padded_k_every_second_v_transposed(check):
    q, k, v = heads(33, 45)
    check(q.padded(), k.every_second(), v.transposed(), *NO_OPTION, **SMALL)


def test_q_is_every_second_k_transposed_v_padded(check):
    q, k, v = heads(33, 45)
    check(q.every_second(), k.transposed(), v.padded(), *NO_OPTION, **SMALL)


def test_both_products_run_on_tensor_cores_while_loads_run_ahead(compiled):
    data = heads(4096, 4096, H=32, HK=8, D=128)
    compiled(*data, *NO_OPTION, tensor_cores=True, halves=True, pipelined=True)


def test_options_leave_products_on_tensor_cores(compiled):
    data = heads(4096, 4096, H=32, HK=8, D=128)
    compiled(*data, 1024, 50.0, tensor_cores=True, halves=True, pipelined=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "B": upto(4, least=0, limit=65535, block=3),
            "G": upto(4, limit=1024, block=3),
            "HK": upto(4, limit=1024, block=3),
            "M": upto(60, least=0, limit=2**26, BLOCK_M=128),
            "N": upto(110, limit=2**14, BLOCK_N=64),
            "D": only(16, 32, 128, 64),
        },
        q=any_strides("B", "G*HK", "M", "D", values=(normal, subnormal, sharp, far)),
        k=any_strides("B", "HK", "N", "D", values=(normal, subnormal, far)),
        v=any_strides("B", "HK", "N", "D", values=(normal, heavy_end, vast, huge)),
        window=optional(between(1, 2**30, also=(32, 64))),
        softcap=optional(between(0.1, 200.0)),
        dtypes=BOTH,
        blocks=(dict(BLOCK_M=32, BLOCK_N=32), dict(BLOCK_M=16, BLOCK_N=16), dict(BLOCK_M=16, BLOCK_N=32)),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(*heads(4099, 6007, H=6, HK=2, D=64, B=2), *NO_OPTION, dtypes=BOTH)


def test_options_at_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(*heads(6007, 4099, H=6, HK=2, D=64, B=2), 1000, 20.0, dtypes=BOTH)


def test_it_reaches_the_gate(throughput):
    throughput(*heads(8192, 8192, H=8, HK=8, D=128, B=2), *NO_OPTION, anchor="matmul", at_least=0.41)
