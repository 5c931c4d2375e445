"""Kept out by the gate: a program for each head of each token, which loads a slot to move 256 bytes; two launches."""

import triton
import triton.language as tl


@triton.jit
def kv_cache_write_kernel(
    tokens_ptr, cache_ptr, slots_ptr, D, PAGE, stride_t, stride_h, stride_d, stride_cp, stride_cr, stride_ch, stride_cd,
    stride_s, BLOCK_D: tl.constexpr,
):  # fmt: skip
    t, h = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slots_ptr + t * stride_s).to(tl.int64)
    if slot >= 0:
        page, row = slot // PAGE, slot % PAGE
        d = tl.arange(0, BLOCK_D)
        values = tl.load(tokens_ptr + t * stride_t + h * stride_h + d * stride_d, mask=d < D)
        place = cache_ptr + page * stride_cp + row * stride_cr + h * stride_ch + d * stride_cd
        tl.store(place, values, mask=d < D)


def kv_cache_write(k, v, k_cache, v_cache, slots):
    T, H, D = k.shape
    for tokens, cache in ((k, k_cache), (v, v_cache)):
        kv_cache_write_kernel[(T, H)](
            tokens, cache, slots, D, cache.shape[1], *tokens.stride(), *cache.stride(), *slots.stride(),
            BLOCK_D=triton.next_power_of_2(D), num_warps=1,
        )  # fmt: skip
    return k_cache, v_cache
