"""Right: tensor descriptors made on the host cut the last block, so that no mask is needed."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_N = 256


@triton.jit
def masked_add_kernel(x_desc, y_desc, z_desc, BLOCK_N: tl.constexpr):
    start = tl.program_id(0) * BLOCK_N
    z_desc.store([start], x_desc.load([start]) + y_desc.load([start]))


def masked_add(x, y):
    z = torch.empty_like(x)
    if z.numel():
        descriptors = [TensorDescriptor.from_tensor(tensor, [BLOCK_N]) for tensor in (x, y, z)]
        masked_add_kernel[(triton.cdiv(z.numel(), BLOCK_N),)](*descriptors, BLOCK_N=BLOCK_N)
    return z
