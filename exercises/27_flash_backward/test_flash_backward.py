"""27 · Flash attention, backward: what a right kernel must do."""

from itertools import product

import pytest
import torch

from grader import (
    ATTENTION,
    FLUSHED,
    U32,
    Example,
    Exercise,
    Result,
    RoundingModel,
    any_strides,
    by_heads,
    cancelling_down,
    contiguous,
    error_of_scores,
    falling_down,
    integers,
    last_row,
    made,
    normal,
    only,
    scores,
    subnormal,
    upto,
)


def backward_of_each_head(q, k, v, o, lse, do):
    """Head after head: P and dS of all heads at once would fill a GPU."""
    dq, dk, dv = q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)
    for head in product(*map(range, q.shape[:2])):
        p = torch.exp(q[head] @ k[head].mT * q.shape[-1] ** -0.5 - lse[head][:, None])
        ds = p * (do[head] @ v[head].mT - (o[head] * do[head]).sum(dim=-1, keepdim=True))
        dq[head], dk[head] = (factor * q.shape[-1] ** -0.5 for factor in (ds @ k[head], ds.mT @ q[head]))
        dv[head] = p.mT @ do[head]
    return dq, dk, dv


def as_much_work(q, k, v, o, lse, do):
    """Five products with 2 M N D operations each, for every head: the rows of one product with K = 4096."""
    (B, H, M, D), N = q, k[2]
    return 4096, 4096, 5 * B * H * M * N * D // 4096**2


# ---- how much rounding a right kernel may show -----------------------------------------------------------------------


class Pairs:
    """Holds what is made of each query and key, [heads, M, N], and how far rounding may carry it."""

    def __init__(self, q, k, v, o, lse, do):
        self.q, self.k, self.v, self.o, self.lse, self.do, self.scale = q, k, v, o, lse, do, q.shape[-1] ** -0.5

    @property
    def s_less_lse(self):
        return scores(self.q, self.k) - self.lse[..., None]

    @property
    def p(self):
        return torch.exp(self.s_less_lse)

    @property
    def dp_less_delta(self):
        return self.do @ self.v.mT - (self.o * self.do).sum(dim=-1, keepdim=True)

    @property
    def ds(self):
        return self.p * self.dp_less_delta

    @property
    def error_of_p(self):
        """P times 2 |s - lse| U32, since the exponential's argument is rounded, P times the error of each score, and
        all of a P that is flushed to 0. U32 = 2**-24."""
        errors = error_of_scores(scores(self.q.abs(), self.k.abs()), self.q.shape[-1])
        return errors.add_(self.s_less_lse.abs(), alpha=2).mul_(U32).mul_(self.p).add_(FLUSHED)

    @property
    def error_of_ds(self):
        """That of P, the errors of the two sums of D products whose difference dS holds, with 4 roundings more, and all
        of a dS that is flushed to 0."""
        terms = self.do.abs() @ self.v.abs().mT + (self.o * self.do).abs().sum(dim=-1, keepdim=True)
        of_p = self.error_of_p.mul_(self.dp_less_delta.abs())
        return of_p.add_(terms.mul_(self.p), alpha=(4 + self.q.shape[-1] / 8) * U32).add_(FLUSHED)


def of_pairs(make):
    """A function of a result and a call: what `make` gives of the pairs, a few heads at a time."""
    return lambda result, *call: by_heads(result, lambda *heads: make(Pairs(*heads)), *call)


def model(error, terms, place):
    """The model of a sum of P or dS times the argument at this place: dv, dk or dq. In `error`, half is for the sum."""

    def rounded_factor(result, *call):
        """P and dS are rounded to the dtype of q, and near 0 they may lose half of its smallest number. Where a sum has
        one term, all of the error may be two roundings, of the factor and of the result: hence 1.25."""
        lost = call[place].abs().sum(dim=-2, keepdim=True).mul(1.25 / 2).expand(result.shape).contiguous()
        return of_pairs(terms)(result, *call).mul_(1.25), lost

    return RoundingModel(
        of_pairs(error), rounded_factor, of_pairs(terms), held=lambda *shapes: 2 * ATTENTION.held(*shapes)
    )


OF_DQ = model(
    lambda of: 2 * of.scale * of.error_of_ds @ of.k.abs(), lambda of: of.scale * of.ds.abs() @ of.k.abs(), place=1
)
OF_DK = model(
    lambda of: 2 * of.scale * of.error_of_ds.mT @ of.q.abs(), lambda of: of.scale * of.ds.abs().mT @ of.q.abs(), place=0
)
OF_DV = model(lambda of: 2 * of.error_of_p.mT @ of.do.abs(), lambda of: of.p.mT @ of.do.abs(), place=5)

exercise = Exercise(
    entry="attention_backward",
    reference=backward_of_each_head,  # called in float64
    returns=("dq", Result("dk", bound=OF_DK), Result("dv", bound=OF_DV)),
    bound=OF_DQ,  # P and dS are rounded to the dtype of q, and nothing else
    dtypes=("float16",),
    minutes=150,
    presumes=("08_swiglu", "25_flash_attention"),
    example=Example(
        integers(1, 1, 6, 4), integers(1, 1, 10, 4), normal(1, 1, 10, 4), normal(1, 1, 6, 4),
        normal(1, 1, 6).of("float32"), normal(1, 1, 6, 4), BLOCK_M=4, BLOCK_N=4,
    ),
    cut="q[b, h, m, :], k[b, h, n, :], v[b, h, n, :], o[b, h, m, :], lse[b, h, m], do[b, h, m, :]"
    " -> dq[b, h, m, :], dk[b, h, n, :], dv[b, h, n, :]",
    product=as_much_work,
)  # fmt: skip

SMALL = dict(BLOCK_M=32, BLOCK_N=32)  # many tiles from little data
BOTH = ("float16", "bfloat16")
DV_ALONE = {"dq": "unjudged", "dk": "unjudged"}  # the core asks for dv first, then for dk, then for dq
DK_AND_DV = {"dq": "unjudged"}


def o_of_attention(q, k, v):
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1) @ v


def lse_of_attention(q, k):
    return torch.logsumexp(q @ k.mT * q.shape[-1] ** -0.5, dim=-1)


def o_of(*shape):
    return made(o_of_attention, normal(*shape))


def lse_of(*shape):
    """As large as it is for a few thousand keys, where it is not made from q and k."""
    return made(lse_of_attention, normal(*shape) * 0.1 + 9).of("float32")


def call(q, k, v, do):
    """The arguments of a call: o and lse are what the forward pass gives for q, k and v."""
    return q, k, v, o_of(*q.shape), lse_of(*q.shape[:3]), do


def normals(B, H, M, N, D):
    return call(normal(B, H, M, D), normal(B, H, N, D), normal(B, H, N, D), normal(B, H, M, D))


def sharp(*shape):
    """Queries whose scores differ by dozens: nearly one key takes all, another one in each row."""
    return normal(*shape) * 8


def slight(*shape):
    """A gradient as a mean over thousands of tokens hands it back: one factor more, and fp16 loses its digits."""
    return normal(*shape) * 3e-5


def great(*shape):
    return normal(*shape) * 1e3


def huge(*shape):
    """Up to 10**30 in bf16, beyond all that fp16 has, and up to 3e-4 in fp16."""
    return normal(*shape).then("of the largest", 5e-10)


def around(number, *shape):
    """Near this number, with a spread of a tenth of it: two such factors make scores far from 0."""
    return normal(*shape) * (0.1 * number) + number


def large(B, H, M, N, D):
    """For sizes at which o and lse are drawn, not made: near what they are for normal data."""
    q, k, v, _, _, do = normals(B, H, M, N, D)
    return q, k, v, normal(B, H, M, D) * 0.03, (normal(B, H, M) * 0.1 + 9).of("float32"), do


def core(test):
    """Nearly half of all points for the first six tests."""
    return pytest.mark.core(pytest.mark.points(4)(test))


# ---- core: dv, then dk, then dq, in fp16, contiguous, with whole tiles -----------------------------------------------


@core
def test_dv_of_one_tile_of_queries(check):
    check(*normals(1, 1, 32, 32, 32), bound=DV_ALONE, **SMALL)


@core
def test_dv_adds_up_over_queries(check):
    check(*normals(1, 2, 96, 64, 32), bound=DV_ALONE, **SMALL)


@core
def test_dk_of_one_tile_of_queries(check):
    check(*normals(1, 1, 32, 32, 32), bound=DK_AND_DV, **SMALL)


@core
def test_dk_adds_up_over_queries(check):
    check(*normals(2, 2, 96, 64, 32), bound=DK_AND_DV, **SMALL)


@core
def test_dq_of_one_tile_of_keys(check):
    check(*normals(1, 1, 32, 32, 32), **SMALL)


@core
def test_dq_adds_up_over_keys(check):
    check(*normals(2, 2, 64, 96, 32), **SMALL)


# ---- full ------------------------------------------------------------------------------------------------------------


def test_the_last_tiles_are_not_full(check):
    check(*normals(1, 2, 70, 77, 32), **SMALL)


def test_more_queries_than_keys(check):
    check(*normals(1, 2, 100, 33, 32), **SMALL)


def test_more_keys_than_queries(check):
    check(*normals(1, 2, 33, 100, 32), **SMALL)


def test_full_size_tiles(check):
    check(*normals(1, 1, 70, 70, 64))


def test_a_head_of_16(check):
    check(*normals(1, 2, 45, 70, 16), dtypes=BOTH, **SMALL)


def test_a_head_of_64(check):
    check(*normals(1, 2, 45, 33, 64), dtypes=BOTH, **SMALL)


def test_a_head_of_128(check):
    check(*normals(1, 1, 45, 33, 128), dtypes=BOTH, **SMALL)


def test_heads_and_tokens_have_changed_places_in_all(check):
    q, k, v, do = (normal(2, 3, tokens, 16).stored_as(0, 2, 1, 3) for tokens in (33, 45, 45, 33))
    check(*call(q, k, v, do), **SMALL)


def test_each_lies_in_memory_in_its_own_order(check):
    q, k, v, do = (normal(2, 3, tokens, 16) for tokens in (33, 45, 45, 33))
    check(*call(q.stored_as(0, 2, 1, 3), k.transposed(), v, do.stored_as(1, 0, 3, 2)), **SMALL)


def test_q_is_transposed_k_padded_v_every_second_do_plain(check):
    q, k, v, do = (normal(1, 2, tokens, 16) for tokens in (33, 45, 45, 33))
    check(*call(q.transposed(), k.padded(), v.every_second(), do), **SMALL)


def test_q_is_padded_k_every_second_v_transposed_do_every_second(check):
    q, k, v, do = (normal(1, 2, tokens, 16) for tokens in (33, 45, 45, 33))
    check(*call(q.padded(), k.every_second(), v.transposed(), do.every_second()), **SMALL)


def test_q_is_every_second_k_transposed_v_padded_do_transposed(check):
    q, k, v, do = (normal(1, 2, tokens, 16) for tokens in (33, 45, 45, 33))
    check(*call(q.every_second(), k.transposed(), v.padded(), do.transposed()), **SMALL)


def test_do_is_one_element_as_the_gradient_of_a_sum_is(check):
    q, k, v, do = (normal(1, 2, tokens, 16) for tokens in (70, 45, 45, 70))
    check(*call(q, k, v, (do * 0.1 + 1).single()), **SMALL)


def test_scores_16_times_as_large(check):
    q, k, v, do = (normal(1, 2, tokens, 32) for tokens in (70, 77, 77, 70))
    check(*call(q * 4, k * 4, v, do), **SMALL)


def test_scores_near_minus_15(check):
    q, k = around(1.7, 1, 1, 33, 32), around(-1.7, 1, 1, 77, 32)
    check(*call(q, k, normal(1, 1, 77, 32), normal(1, 1, 33, 32)), **SMALL)


def test_scores_near_minus_360(check):
    q, k = around(8, 1, 1, 33, 32), around(-8, 1, 1, 77, 32)
    check(*call(q, k, normal(1, 1, 77, 32), normal(1, 1, 33, 32)), **SMALL)


def test_do_and_v_far_from_zero(check):
    q, k, v, do = (normal(1, 1, tokens, 32) for tokens in (33, 77, 77, 33))
    check(*call(q, k, v + 4, do + 3), **SMALL)


def test_one_query_and_one_key(check):
    check(*normals(1, 1, 1, 1, 32), **SMALL)


def signs(v):
    """1 for the first half of the keys, -1 for the second half: o is 0, and all of dS have one size."""
    return v.sign()


def sizes(k):
    """Whole numbers from 1 to 3: what stands in the second half is what stands in the first."""
    return k.abs()


def ones(*shape):
    return normal(*shape) * 0 + 1


def test_sums_of_dv_that_cancel_are_exact(check):
    q, do = normal(1, 1, 4096, 16) * 0, cancelling_down(1, 1, 4096, 16)
    check(*call(q, normal(1, 1, 32, 16), normal(1, 1, 32, 16), do), bound={"dv": "exact"}, **SMALL)


def test_sums_of_dk_that_cancel_are_exact(check):
    k, v = normal(1, 1, 32, 16) * 0, made(signs, falling_down(1, 1, 32, 16))
    data = call(cancelling_down(1, 1, 4096, 16), k, v, ones(1, 1, 4096, 16))
    check(*data, bound={"dk": "exact"}, **SMALL)


def test_sums_of_dq_that_cancel_are_exact(check):
    k, v = made(sizes, cancelling_down(1, 1, 4096, 16)), made(signs, falling_down(1, 1, 4096, 16))
    data = call(normal(1, 1, 32, 16) * 0, k, v, ones(1, 1, 32, 16))
    check(*data, bound={"dq": "exact"}, **SMALL)


def heavy_end(*shape):
    """The last row is so large that it counts among thousands of others."""
    return last_row(1000, normal(*shape))


def test_the_last_of_many_keys_and_queries_counts(check):
    few, many = (1, 1, 3, 16), (1, 1, 8129, 16)  # one past 127 tiles
    check(*call(normal(*few), normal(*many), heavy_end(*many), normal(*few)))
    check(*call(normal(*many), normal(*few), normal(*few), heavy_end(*many)))


@pytest.mark.core
def test_three_launches_and_no_pair_in_memory(traffic):
    # Four tiles of queries and three of keys: each loop reads what it goes over once for each tile that is owned.
    reads = {"q": 4, "do": 5, "lse": 4, "k": 5, "v": 5, "o": 1}
    data, kept = normals(1, 2, 100, 77, 32), dict(scratch=0.05, float_atomics=False)
    traffic(*data, reads=reads, writes=1, launches=3, idle=0, **kept, **SMALL)


def test_all_products_run_on_tensor_cores(compiled):
    compiled(*large(4, 16, 4096, 4096, 64), tensor_cores=True, halves=True)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "B": upto(4, least=0, limit=65535, block=3),
            "H": upto(4, least=0, limit=65535, block=3),
            "M": upto(80, limit=2**14, BLOCK_M=64),
            "N": upto(80, limit=2**14, BLOCK_N=64),
            "D": only(32, 64, 128, 16),
        },
        q=any_strides("B", "H", "M", "D", values=(normal, subnormal, sharp)),
        k=any_strides("B", "H", "N", "D", values=(normal, subnormal)),
        v=any_strides("B", "H", "N", "D"),
        o=contiguous("B", "H", "M", "D", values=(o_of,)),
        lse=contiguous("B", "H", "M", values=(lse_of,), dtype="float32"),
        do=any_strides("B", "H", "M", "D", values=(normal, slight, great, huge)),
        dtypes=BOTH,
        blocks=(dict(BLOCK_M=32, BLOCK_N=32), dict(BLOCK_M=16, BLOCK_N=16)),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(*large(2, 3, 4099, 3001, 64), dtypes=BOTH)


def test_heads_of_64_reach_the_gate(throughput):
    throughput(*large(4, 16, 4096, 4096, 64), anchor="matmul", at_least=0.25)
