"""Right: the kernel makes tensor descriptors from pointers to load its blocks; they cut the last one.

It stores by pointers: on an H200 with Triton 3.6.0 a descriptor made in a kernel stored up to 12 bytes past the end of
a tensor whose bytes are no multiple of 16.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 256


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[N], strides=[1], block_shape=[BLOCK_N])
    y = tl.make_tensor_descriptor(y_ptr, shape=[N], strides=[1], block_shape=[BLOCK_N])
    start = tl.program_id(0) * BLOCK_N
    offsets = start + tl.arange(0, BLOCK_N)
    tl.store(z_ptr + offsets, x.load([start]) + y.load([start]), mask=offsets < N)


def masked_add(x, y):
    z = torch.empty_like(x)

    def scratch(size, alignment, stream):
        return torch.empty(size, dtype=torch.int8, device=x.device)

    triton.set_allocator(scratch)
    N = x.numel()
    masked_add_kernel[(triton.cdiv(N, BLOCK_N),)](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
