"""39, rung 2: one token a program.

What: a program copies all heads of one token, as a tile; keys go in one launch, values in another.
Why: a slot is loaded once for 2048 bytes and not once for 256, and there are an eighth as many programs to start.
"""

import triton
import triton.language as tl

BLOCK_H = 8


@triton.jit
def kv_cache_write_kernel(
    tokens_ptr, cache_ptr, slots_ptr, H, D, PAGE, stride_t, stride_h, stride_d, stride_cp, stride_cr, stride_ch,
    stride_cd, stride_s, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0)
    slot = tl.load(slots_ptr + t * stride_s).to(tl.int64)
    if slot >= 0:
        row_ptr = cache_ptr + (slot // PAGE) * stride_cp + (slot % PAGE) * stride_cr
        d = tl.arange(0, BLOCK_D)[None, :]
        for first in range(0, H, BLOCK_H):
            h = first + tl.arange(0, BLOCK_H)[:, None]
            mask = (h < H) & (d < D)
            values = tl.load(tokens_ptr + t * stride_t + h * stride_h + d * stride_d, mask=mask)
            tl.store(row_ptr + h * stride_ch + d * stride_cd, values, mask=mask)


def kv_cache_write(k, v, k_cache, v_cache, slots):
    T, H, D = k.shape
    for tokens, cache in ((k, k_cache), (v, v_cache)):
        kv_cache_write_kernel[(T,)](
            tokens, cache, slots, H, D, cache.shape[1], *tokens.stride(), *cache.stride(), *slots.stride(),
            BLOCK_H=BLOCK_H, BLOCK_D=triton.next_power_of_2(D),
        )  # fmt: skip
    return k_cache, v_cache
