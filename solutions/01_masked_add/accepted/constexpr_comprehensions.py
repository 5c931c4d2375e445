"""Right: a constexpr function counts with lists, generators and words."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.constexpr_function
def signs(count, start=1.0):
    held = [start * (-1.0) ** k for k in range(count)]
    held[1:1] = []
    total = 0
    for k, sign in enumerate(held):
        total += sign if k % 2 == 0 else -sign
    words = {f"{k!r:>2}": k for k in range(3)}
    assert all(word.endswith(str(k)) for word, k in words.items())
    return total / len(held)


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + signs(4) * y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
