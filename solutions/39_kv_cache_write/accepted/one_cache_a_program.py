"""Right: the grid's second axis chooses between keys and values, in one launch; programs go through the tokens."""

import triton
import triton.language as tl

BLOCK_H, PROGRAMS = 4, 8


@triton.jit
def write_tokens(
    tokens_ptr, cache_ptr, slots_ptr, T, H, D, PAGE, stride_t, stride_h, stride_d, stride_cp, stride_cr, stride_ch,
    stride_cd, stride_s, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    d = tl.arange(0, BLOCK_D)[None, :]
    for t in range(tl.program_id(0), T, tl.num_programs(0)):
        slot = tl.load(slots_ptr + t * stride_s).to(tl.int64)
        start = (slot // PAGE) * stride_cp + (slot % PAGE) * stride_cr
        for first in range(0, H, BLOCK_H):
            h = first + tl.arange(0, BLOCK_H)[:, None]
            mask = (h < H) & (d < D) & (slot >= 0)
            tokens = tl.load(tokens_ptr + t * stride_t + h * stride_h + d * stride_d, mask=mask)
            tl.store(cache_ptr + start + h * stride_ch + d * stride_cd, tokens, mask=mask)


@triton.jit
def kv_cache_write_kernel(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, T, H, D, PAGE,
    stride_kt, stride_kh, stride_kd, stride_vt, stride_vh, stride_vd,
    stride_kcp, stride_kcr, stride_kch, stride_kcd, stride_vcp, stride_vcr, stride_vch, stride_vcd, stride_s,
    BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    if tl.program_id(1) == 0:
        write_tokens(
            k_ptr, k_cache_ptr, slots_ptr, T, H, D, PAGE, stride_kt, stride_kh, stride_kd, stride_kcp, stride_kcr,
            stride_kch, stride_kcd, stride_s, BLOCK_H, BLOCK_D,
        )  # fmt: skip
    else:
        write_tokens(
            v_ptr, v_cache_ptr, slots_ptr, T, H, D, PAGE, stride_vt, stride_vh, stride_vd, stride_vcp, stride_vcr,
            stride_vch, stride_vcd, stride_s, BLOCK_H, BLOCK_D,
        )  # fmt: skip


def kv_cache_write(k, v, k_cache, v_cache, slots):
    T, H, D = k.shape
    kv_cache_write_kernel[(min(T, PROGRAMS), 2)](
        k, v, k_cache, v_cache, slots, T, H, D, k_cache.shape[1],
        *k.stride(), *v.stride(), *k_cache.stride(), *v_cache.stride(), *slots.stride(),
        BLOCK_H=BLOCK_H, BLOCK_D=triton.next_power_of_2(D),
    )  # fmt: skip
    return k_cache, v_cache
