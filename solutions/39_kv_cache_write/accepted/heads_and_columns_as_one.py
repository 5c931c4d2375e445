"""Right: heads and columns of a token are counted as one, as serving libraries do; a lane works out its own head."""

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def kv_cache_write_kernel(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, D, numbers, PAGE,
    stride_kt, stride_kh, stride_kd, stride_vt, stride_vh, stride_vd,
    stride_kcp, stride_kcr, stride_kch, stride_kcd, stride_vcp, stride_vcr, stride_vch, stride_vcd, stride_s,
    BLOCK: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0)
    slot = tl.load(slots_ptr + t * stride_s)
    if slot != -1:
        page, row = (slot // PAGE).to(tl.int64), slot % PAGE
        for first in range(0, numbers, BLOCK):
            i = first + tl.arange(0, BLOCK)
            h, d, mask = i // D, i % D, i < numbers
            k = tl.load(k_ptr + t * stride_kt + h * stride_kh + d * stride_kd, mask=mask)
            v = tl.load(v_ptr + t * stride_vt + h * stride_vh + d * stride_vd, mask=mask)
            to_k = page * stride_kcp + row * stride_kcr + h * stride_kch + d * stride_kcd
            to_v = page * stride_vcp + row * stride_vcr + h * stride_vch + d * stride_vcd
            tl.store(k_cache_ptr + to_k, k, mask=mask)
            tl.store(v_cache_ptr + to_v, v, mask=mask)


def kv_cache_write(k, v, k_cache, v_cache, slots):
    T, H, D = k.shape
    kv_cache_write_kernel[(T,)](
        k, v, k_cache, v_cache, slots, D, H * D, k_cache.shape[1],
        *k.stride(), *v.stride(), *k_cache.stride(), *v_cache.stride(), *slots.stride(), BLOCK=BLOCK,
    )  # fmt: skip
    return k_cache, v_cache
