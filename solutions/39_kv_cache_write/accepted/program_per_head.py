"""Right: a program per token and head; one whose token goes nowhere returns at once."""

import triton
import triton.language as tl


@triton.jit
def kv_cache_write_kernel(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, D, PAGE,
    stride_kt, stride_kh, stride_kd, stride_vt, stride_vh, stride_vd,
    stride_kcp, stride_kcr, stride_kch, stride_kcd, stride_vcp, stride_vcr, stride_vch, stride_vcd, stride_s,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    t, h = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slots_ptr + t * stride_s).to(tl.int64)
    if slot < 0:
        return
    page, row = slot // PAGE, slot % PAGE
    d = tl.arange(0, BLOCK_D)
    k = tl.load(k_ptr + t * stride_kt + h * stride_kh + d * stride_kd, mask=d < D)
    tl.store(k_cache_ptr + page * stride_kcp + row * stride_kcr + h * stride_kch + d * stride_kcd, k, mask=d < D)
    v = tl.load(v_ptr + t * stride_vt + h * stride_vh + d * stride_vd, mask=d < D)
    tl.store(v_cache_ptr + page * stride_vcp + row * stride_vcr + h * stride_vch + d * stride_vcd, v, mask=d < D)


def kv_cache_write(k, v, k_cache, v_cache, slots):
    T, H, D = k.shape
    kv_cache_write_kernel[(T, H)](
        k, v, k_cache, v_cache, slots, D, k_cache.shape[1],
        *k.stride(), *v.stride(), *k_cache.stride(), *v_cache.stride(), *slots.stride(),
        BLOCK_D=triton.next_power_of_2(D), num_warps=1,
    )  # fmt: skip
    return k_cache, v_cache
