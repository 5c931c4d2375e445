"""39 · KV cache write: each token's keys and values go to the place in a paged cache that its slot names."""

import triton
import triton.language as tl

BLOCK_H = 8  # heads that a program copies at a time


@triton.jit
def kv_cache_write_kernel(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, H, D, PAGE,
    stride_kt, stride_kh, stride_kd, stride_vt, stride_vh, stride_vd,
    stride_kcp, stride_kcr, stride_kch, stride_kcd, stride_vcp, stride_vcr, stride_vch, stride_vcd, stride_s,
    BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    # Program t has token t; BLOCK_D >= D: about 14 lines.
    ### BEGIN SOLUTION
    t = tl.program_id(0)
    # 64 bits before anything is multiplied: a page's number times its stride may pass 2**31.
    slot = tl.load(slots_ptr + t * stride_s).to(tl.int64)
    if slot >= 0:  # -1 has no place, so no address may be made of it
        page, row = slot // PAGE, slot % PAGE
        k_row = k_cache_ptr + page * stride_kcp + row * stride_kcr
        v_row = v_cache_ptr + page * stride_vcp + row * stride_vcr
        d = tl.arange(0, BLOCK_D)[None, :]
        for first in range(0, H, BLOCK_H):
            h = first + tl.arange(0, BLOCK_H)[:, None]
            mask = (h < H) & (d < D)  # past the last head lies the next row of the cache, which is another token's
            k = tl.load(k_ptr + t * stride_kt + h * stride_kh + d * stride_kd, mask=mask)
            v = tl.load(v_ptr + t * stride_vt + h * stride_vh + d * stride_vd, mask=mask)
            tl.store(k_row + h * stride_kch + d * stride_kcd, k, mask=mask)
            tl.store(v_row + h * stride_vch + d * stride_vcd, v, mask=mask)
    ### END SOLUTION


def kv_cache_write(k, v, k_cache, v_cache, slots):
    """k, v: [T, H, D]; k_cache, v_cache: [P, page, H, D]; all of one dtype, any strides; slots: [T] int32 or int64.

    Token t goes to row slot % page of page slot // page of both caches, which change in place; -1 goes nowhere. Returns
    k_cache and v_cache.
    """
    # Launch the kernel once, return both caches: about 8 lines.
    ### BEGIN SOLUTION
    T, H, D = k.shape
    page = k_cache.shape[1]
    kv_cache_write_kernel[(T,)](
        k, v, k_cache, v_cache, slots, H, D, page,
        *k.stride(), *v.stride(), *k_cache.stride(), *v_cache.stride(), *slots.stride(),
        BLOCK_H=BLOCK_H, BLOCK_D=triton.next_power_of_2(D),
    )  # fmt: skip
    return k_cache, v_cache
    ### END SOLUTION
