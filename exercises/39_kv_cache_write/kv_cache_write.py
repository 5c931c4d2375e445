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
    # YOUR CODE HERE
    pass


def kv_cache_write(k, v, k_cache, v_cache, slots):
    """k, v: [T, H, D]; k_cache, v_cache: [P, page, H, D]; all of one dtype, any strides; slots: [T] int32 or int64.

    Token t goes to row slot % page of page slot // page of both caches, which change in place; -1 goes nowhere. Returns
    k_cache and v_cache.
    """
    # Launch the kernel once, return both caches: about 8 lines.
    # YOUR CODE HERE
    pass
