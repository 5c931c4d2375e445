"""Right: all programs do the same, and -1 switches the lanes off; the caches' pages are counted from the heads' end."""

import triton
import triton.language as tl


@triton.jit
def kv_cache_write_kernel(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, H, D, PAGE,
    stride_kt, stride_kh, stride_kd, stride_vt, stride_vh, stride_vd,
    stride_kcp, stride_kcr, stride_kch, stride_kcd, stride_vcp, stride_vcr, stride_vch, stride_vcd, stride_s,
    BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0)
    slot = tl.load(slots_ptr + t * stride_s)
    live = slot >= 0
    page = (slot // PAGE).to(tl.int64)
    row = slot - page * PAGE
    h, d = tl.arange(0, BLOCK_H)[:, None], tl.arange(0, BLOCK_D)[None, :]
    mask = live & (h < H) & (d < D)
    k = tl.load(k_ptr + t * stride_kt + h * stride_kh + d * stride_kd, mask=mask, other=0.0)
    v = tl.load(v_ptr + t * stride_vt + h * stride_vh + d * stride_vd, mask=mask, other=0.0)
    tl.store(k_cache_ptr + page * stride_kcp + row * stride_kcr + h * stride_kch + d * stride_kcd, k, mask=mask)
    tl.store(v_cache_ptr + page * stride_vcp + row * stride_vcr + h * stride_vch + d * stride_vcd, v, mask=mask)


def kv_cache_write(k, v, k_cache, v_cache, slots):
    T, H, D = k.size()
    kv_cache_write_kernel[(T,)](
        k, v, k_cache, v_cache, slots, H, D, k_cache.size(1),
        *k.stride(), *v.stride(), *k_cache.stride(), *v_cache.stride(), slots.stride(0),
        BLOCK_H=triton.next_power_of_2(H), BLOCK_D=triton.next_power_of_2(D),
    )  # fmt: skip
    return k_cache, v_cache
