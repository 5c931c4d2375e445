"""Wrong: a program per page stores the rows of its tokens, and zeros in all other rows of the page.

Finding: rest-lost

Says: Rows of {name} to which no token goes are lost: they have to stay as they were.
"""

import triton
import triton.language as tl


@triton.jit
def kv_cache_write_kernel(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, T, H, D, PAGE,
    stride_kt, stride_kh, stride_kd, stride_vt, stride_vh, stride_vd,
    stride_kcp, stride_kcr, stride_kch, stride_kcd, stride_vcp, stride_vcr, stride_vch, stride_vcd, stride_s,
    BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    page = tl.program_id(0).to(tl.int64)
    h, d = tl.arange(0, BLOCK_H)[:, None], tl.arange(0, BLOCK_D)[None, :]
    mask = (h < H) & (d < D)
    for row in range(0, PAGE):
        k_row = k_cache_ptr + page * stride_kcp + row * stride_kcr + h * stride_kch + d * stride_kcd
        v_row = v_cache_ptr + page * stride_vcp + row * stride_vcr + h * stride_vch + d * stride_vcd
        k = tl.zeros([BLOCK_H, BLOCK_D], dtype=k_ptr.dtype.element_ty)
        v = tl.zeros([BLOCK_H, BLOCK_D], dtype=k_ptr.dtype.element_ty)
        for t in range(0, T):
            mine = tl.load(slots_ptr + t * stride_s) == page * PAGE + row
            if mine:
                k = tl.load(k_ptr + t * stride_kt + h * stride_kh + d * stride_kd, mask=mask)
                v = tl.load(v_ptr + t * stride_vt + h * stride_vh + d * stride_vd, mask=mask)
        tl.store(k_row, k, mask=mask)
        tl.store(v_row, v, mask=mask)


def kv_cache_write(k, v, k_cache, v_cache, slots):
    T, H, D = k.shape
    kv_cache_write_kernel[(k_cache.shape[0],)](
        k, v, k_cache, v_cache, slots, T, H, D, k_cache.shape[1],
        *k.stride(), *v.stride(), *k_cache.stride(), *v_cache.stride(), *slots.stride(),
        BLOCK_H=triton.next_power_of_2(H), BLOCK_D=triton.next_power_of_2(D),
    )  # fmt: skip
    return k_cache, v_cache
