"""Right: the kernel makes tensor descriptors from pointers; they cut the last block."""

import torch
import triton
import triton.language as tl

BLOCK_N = 256


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[N], strides=[1], block_shape=[BLOCK_N])
    y = tl.make_tensor_descriptor(y_ptr, shape=[N], strides=[1], block_shape=[BLOCK_N])
    z = tl.make_tensor_descriptor(z_ptr, shape=[N], strides=[1], block_shape=[BLOCK_N])
    start = tl.program_id(0) * BLOCK_N
    z.store([start], x.load([start]) + y.load([start]))


def masked_add(x, y):
    z = torch.empty_like(x)

    def scratch(size, alignment, stream):
        return torch.empty(size, dtype=torch.int8, device=x.device)

    triton.set_allocator(scratch)
    N = x.numel()
    masked_add_kernel[(triton.cdiv(N, BLOCK_N),)](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
