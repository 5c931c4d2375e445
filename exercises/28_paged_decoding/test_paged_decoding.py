"""28 · Paged decoding: what a right kernel must do."""

import pytest
import torch

from grader import (
    ATTENTION,
    Elements,
    Example,
    Exercise,
    RoundingModel,
    any_strides,
    in_pages,
    normal,
    of_sequences,
    only,
    subnormal,
    target,
    upto,
)

AT_A_TIME = 1 << 20  # elements of the keys of sequences that are computed together


def attention_of_each_sequence(q, k_cache, v_cache, block_table, lengths):
    """A few sequences at a time, over all rows that their pages have: a row that holds no key weighs nothing."""
    o, (page, HK) = torch.zeros_like(q), k_cache.shape[1:3]
    n = torch.arange(block_table.shape[1] * page, device=q.device)
    for b in few(torch.arange(len(q), device=q.device), n, k_cache):
        is_key = n < lengths[b, None]
        at = torch.where(is_key, block_table[b][:, n // page], 0).long(), n % page
        no_key = ~is_key[:, None, None]
        k, v = (cache[at].transpose(1, 2).masked_fill(no_key.mT, 0) for cache in (k_cache, v_cache))
        s = (q[b].unflatten(1, (HK, -1)) @ k.mT * q.shape[-1] ** -0.5).masked_fill(no_key, -torch.inf)
        p = torch.where(no_key.all(dim=-1, keepdim=True), 0, torch.softmax(s, dim=-1))
        o[b] = (p @ v).flatten(1, 2)
    return o


def few(sequences, n, k_cache):
    """Returns the sequences, as many at a time as may have keys n together in memory."""
    return sequences.split(max(1, AT_A_TIME // max(1, len(n) * k_cache[0, 0].numel())))


def of_each_sequence(of_attention, results, o, q, k_cache, v_cache, block_table, lengths):
    """Returns the results that `of_attention` gives for each sequence, so many tensors like o; 0 without keys.

    A group's heads are its queries. Sequences of one length are a batch.
    """
    found, (page, HK) = o.new_zeros(results, *o.shape), k_cache.shape[1:3]
    for length in lengths.unique().tolist():
        at_most = block_table.shape[1] * page  # a number that is no length may be anything
        n = torch.arange(min(max(length, 0), at_most), device=q.device)
        for b in few((lengths == length).nonzero().flatten(), n, k_cache) if len(n) else ():
            at = block_table[b][:, n // page], n % page
            k, v = (cache[at].transpose(1, 2) for cache in (k_cache, v_cache))
            of = of_attention(*(one[b].unflatten(1, (HK, -1)) for one in (o, q)), k, v)
            found[:, b] = torch.stack(list(of)).flatten(2, 3)
    return found


def rounding(o, *call):
    """As in attention: to join splits is to join tiles, once more."""
    return of_each_sequence(lambda *of: [ATTENTION.arithmetic(*of)], 1, o, *call)[0]


def rounded_p(o, *call):
    """As in attention, p is rounded to the dtype of v."""
    return of_each_sequence(ATTENTION.conversion, 2, o, *call)


def size_of_terms(o, *call):
    return of_each_sequence(lambda *of: [ATTENTION.terms(*of)], 1, o, *call)[0]


exercise = Exercise(
    entry="paged_attention",
    reference=attention_of_each_sequence,  # called in float64
    returns="o",
    bound=RoundingModel(rounding, rounded_p, size_of_terms),  # p is rounded to the dtype of v, and nothing else
    dtypes=("float16",),
    minutes=130,
    presumes=("14_split_softmax", "25_flash_attention", "39_kv_cache_write"),
    time_limit=6.0,
    example=Example(normal(1, 1, 2), *in_pages(4, 2, 1, 2, lengths=(5,)), BLOCK_N=2, SPLITS=2),
    cut="q[b, :, :], k_cache[block_table, :, :, :], v_cache[block_table, :, :, :], block_table[b, :], lengths[b]"
    " -> o[b, :, :]",
)

SMALL = dict(BLOCK_N=32, SPLITS=3)  # many blocks from few keys
BOTH = ("float16", "bfloat16")
RAGGED = in_pages(20, 16, 2, 32, lengths=(77, 130))  # the last sequence needs the whole table
FULL = in_pages(14, 16, 2, 32, lengths=(80, 144))  # each row of the caches is a key


def sharp(*shape):
    """Queries whose scores differ by dozens: nearly one key takes all, another one in each row."""
    return normal(*shape) * 16


def around(number, data):
    """Near this number, with a spread of a tenth of it: two such factors make scores far from 0."""
    return data * (0.1 * number) + number


def core(test):
    """Nearly half of all points for the first five tests."""
    return pytest.mark.core(pytest.mark.points(5)(test))


# ---- core: fp16, contiguous, pages of 16 rows, a head of the caches for each query head, whole blocks of keys -------


@core
def test_one_block_of_keys(check):
    check(normal(1, 1, 32), *in_pages(1, 16, 1, 32, lengths=(16,)), BLOCK_N=16, SPLITS=1)


@core
def test_a_split_of_several_blocks(check):
    check(normal(1, 1, 32), *in_pages(6, 16, 1, 32, lengths=(96,)), BLOCK_N=32, SPLITS=1)


@core
def test_two_splits_are_joined(check):
    check(normal(1, 1, 32), *in_pages(16, 16, 1, 32, lengths=(192,)), BLOCK_N=32, SPLITS=2)


@core
def test_each_sequence_has_pages_of_its_own(check):
    check(normal(2, 1, 32), *in_pages(20, 16, 1, 32, lengths=(192, 96)), **SMALL)


@core
def test_each_head_has_keys_of_its_own(check):
    check(normal(2, 2, 32), *in_pages(20, 16, 2, 32, lengths=(96, 192)), **SMALL)


# ---- full ------------------------------------------------------------------------------------------------------------


def test_lengths_are_no_whole_blocks(check):
    check(normal(2, 2, 32), *RAGGED, **SMALL)


def test_three_query_heads_share_one_of_the_caches(check):
    check(normal(2, 6, 32), *RAGGED, **SMALL)


def test_five_query_heads_and_one_of_the_caches(check):
    check(normal(2, 5, 32), *in_pages(20, 16, 1, 32, lengths=(77, 130)), **SMALL)


def test_twenty_query_heads_and_one_of_the_caches(check):
    check(normal(2, 20, 32), *in_pages(20, 16, 1, 32, lengths=(77, 130)), **SMALL)
    for heads in (40, 64):
        check(normal(1, heads, 16), *in_pages(6, 16, 1, 16, lengths=(77,)), **SMALL)


def test_pages_have_one_row(check):
    check(normal(2, 6, 32), *in_pages(207, 1, 2, 32, lengths=(77, 130)), **SMALL)


def test_pages_have_24_rows(check):
    check(normal(2, 6, 32), *in_pages(9, 24, 2, 32, lengths=(72, 144)), **SMALL)


def test_pages_have_64_rows(check):
    check(normal(2, 6, 32), *in_pages(6, 64, 2, 32, lengths=(77, 130)), **SMALL)


def test_splits_without_keys(check):
    check(normal(2, 6, 32), *in_pages(4, 16, 2, 32, lengths=(5, 1)), **SMALL)


def test_a_sequence_without_keys(check):
    check(normal(3, 6, 32), *in_pages(14, 16, 2, 32, lengths=(77, 0, 40)), **SMALL)


def test_a_split_of_four_blocks(check):
    check(normal(1, 6, 32), *in_pages(24, 16, 2, 32, lengths=(300,)), **SMALL)


def test_the_table_has_columns_to_spare(check):
    check(normal(2, 6, 32), *in_pages(20, 16, 2, 32, lengths=(77, 130), spare=3), **SMALL)


def test_sequences_share_pages(check):
    check(normal(2, 6, 32), *in_pages(9, 16, 2, 32, lengths=(77, 130)), **SMALL)


def test_heads_of_a_page_come_before_its_rows(check):
    k_cache, v_cache, *others = FULL
    check(normal(2, 6, 32), k_cache.stored_as(0, 2, 1, 3), v_cache.stored_as(0, 2, 1, 3), *others, **SMALL)


def test_the_caches_lie_differently_in_memory(check):
    k_cache, v_cache, *others = FULL
    check(normal(2, 6, 32), k_cache.stored_as(0, 2, 1, 3), v_cache.stored_as(2, 0, 1, 3), *others, **SMALL)


def test_pages_of_both_caches_take_turns_in_one_tensor(check):
    k_cache, v_cache, *others = FULL
    check(normal(2, 6, 32), k_cache.beside_another(), v_cache.beside_another(), *others, **SMALL)


def test_the_table_is_transposed_and_lengths_are_every_second(check):
    k_cache, v_cache, table, lengths = RAGGED
    check(normal(2, 6, 32), k_cache, v_cache, table.transposed(), lengths.every_second(), **SMALL)


def test_q_is_transposed(check):
    check(normal(2, 6, 32).transposed(), *RAGGED, **SMALL)


def test_scores_far_below_zero(check):
    k_cache, *others = RAGGED
    check(around(5, normal(2, 6, 32)), around(-5, k_cache), *others, **SMALL)


def test_one_key_takes_nearly_all_and_its_value_is_zero(check):
    check(around(1, normal(1, 1, 64)), *in_pages(40, 16, 1, 64, lengths=(600,), sink=True), BLOCK_N=64, SPLITS=3)


def test_a_head_of_16(check):
    check(normal(2, 6, 16), *in_pages(20, 16, 2, 16, lengths=(77, 130)), dtypes=BOTH, **SMALL)
    k_cache, v_cache, *others = in_pages(20, 16, 2, 16, lengths=(77, 130))
    huge = v_cache.then("of the largest", 2e-10)  # up to 10**30 in bf16, beyond all that fp16 has
    check(normal(2, 6, 16), k_cache, huge, *others, dtypes=BOTH, **SMALL)


def test_a_head_of_128(check):
    check(normal(2, 6, 128), *in_pages(20, 16, 2, 128, lengths=(77, 130)), dtypes=BOTH, **SMALL)


def test_blocks_and_splits_of_the_file(check):
    check(normal(2, 8, 64), *in_pages(30, 16, 2, 64, lengths=(77, 350)))


@pytest.mark.core
def test_each_key_is_read_once_and_by_many_programs(traffic):
    # 207 keys in all; of 130 keys no program needs more than two blocks of 32.
    all_keys, of_one = Elements(207 * 2 * 32), Elements(64 * 32)
    traffic(
        normal(2, 6, 32), *RAGGED, **SMALL, launches=2, idle=0, float_atomics=False, kept=2 * 6 * 3 * (32 + 2),
        reads={"q": 12, "k_cache": all_keys, "v_cache": all_keys, "block_table": Elements(2 * 207)},
        share={"k_cache": of_one, "v_cache": of_one},
    )  # fmt: skip


def test_both_products_run_on_tensor_cores_while_loads_run_ahead(compiled):
    k_cache, _, table, lengths = (normal(512, 16, 8, 128), *in_pages(512, 16, 8, 128, lengths=(2000, 2048))[1:])
    compiled(normal(2, 32, 128), k_cache, k_cache, table, lengths, tensor_cores=True, halves=True, pipelined=True)


def test_any_call_that_the_lesson_promises(drawn):
    keys, values, table, lengths, heavy_end = of_sequences("B", "T", "P", "page")
    drawn(
        sizes={
            "B": upto(4, least=0, limit=512, block=3),
            "HK": upto(4, limit=64, block=3),
            "G": upto(20, limit=64, block=16),
            "D": only(16, 64, 128, 32),
            "P": upto(12, limit=2**20, block=5),
            "page": upto(26, limit=1024, block=16),
            "T": upto(6, limit=2**17, block=4),
        },
        q=any_strides("B", "HK*G", "D", values=(normal, subnormal, sharp)),
        k_cache=target("P", "page", "HK", "D", values=(keys,)),
        v_cache=target("P", "page", "HK", "D", values=(values, heavy_end)),
        block_table=target("B", "T", values=(table,)),
        lengths=target("B", values=(lengths,)),
        dtypes=BOTH,
        blocks=(dict(BLOCK_N=16, SPLITS=3), dict(BLOCK_N=32, SPLITS=5)),
    )


def test_caches_of_more_than_two_billion_elements(on_gpu):
    wide = normal(1100, 16, 2, 64).padded(65536 - 64)  # 2**21 elements from page to page
    on_gpu(normal(1, 6, 64), wide, wide, *in_pages(1100, 16, 2, 64, lengths=(40,))[2:])


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(3, 36, 128), *in_pages(1200, 24, 4, 128, lengths=(6007, 1, 20_011)), dtypes=BOTH)


def test_it_reaches_the_gate(throughput):
    cache, lengths = normal(8192, 16, 8, 128), (32_768, 32_700, 32_761, 32_753)
    throughput(normal(4, 32, 128), cache, cache, *in_pages(8192, 16, 8, 128, lengths=lengths)[2:], at_least=0.48)
