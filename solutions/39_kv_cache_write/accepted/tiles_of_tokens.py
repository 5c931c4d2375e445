"""Right: a program has four tokens and all their heads, whose slots it loads at once."""

import triton
import triton.language as tl

BLOCK_T = 4


@triton.jit
def kv_cache_write_kernel(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, T, H, D, PAGE,
    stride_kt, stride_kh, stride_kd, stride_vt, stride_vh, stride_vd,
    stride_kcp, stride_kcr, stride_kch, stride_kcd, stride_vcp, stride_vcr, stride_vch, stride_vcd, stride_s,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    slots = tl.load(slots_ptr + t * stride_s, mask=t < T, other=-1).to(tl.int64)
    page, row = (slots // PAGE)[:, None], (slots % PAGE)[:, None]
    t, d = t[:, None], tl.arange(0, BLOCK_D)[None, :]
    mask = (slots >= 0)[:, None] & (d < D)
    k_rows = k_cache_ptr + page * stride_kcp + row * stride_kcr + d * stride_kcd
    v_rows = v_cache_ptr + page * stride_vcp + row * stride_vcr + d * stride_vcd
    for h in range(0, H):
        k = tl.load(k_ptr + t * stride_kt + h * stride_kh + d * stride_kd, mask=mask)
        v = tl.load(v_ptr + t * stride_vt + h * stride_vh + d * stride_vd, mask=mask)
        tl.store(k_rows + h * stride_kch, k, mask=mask)
        tl.store(v_rows + h * stride_vch, v, mask=mask)


def kv_cache_write(k, v, k_cache, v_cache, slots):
    T, H, D = k.shape
    kv_cache_write_kernel[(triton.cdiv(T, BLOCK_T),)](
        k, v, k_cache, v_cache, slots, T, H, D, k_cache.shape[1],
        *k.stride(), *v.stride(), *k_cache.stride(), *v_cache.stride(), *slots.stride(),
        BLOCK_T=BLOCK_T, BLOCK_D=triton.next_power_of_2(D),
    )  # fmt: skip
    return k_cache, v_cache
