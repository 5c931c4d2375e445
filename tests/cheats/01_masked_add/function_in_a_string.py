"""Cheat: Triton takes the first `def` in a function's lines, which stands in a string.

Rejected with: Triton reads another function than the one in line
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024

# fmt: off
if triton:

    @triton.jit
    def added(x, y):
        '''
def added(x, y):
    return x + y
    '''
        return x - y
        "'''#"
# fmt: on


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, added(x, y), mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
