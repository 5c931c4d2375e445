"""Right: the host function is an operator of torch's, and calls another one, as torch.compile wants it."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


@torch.library.custom_op("course_own::add_into", mutates_args={"z"})
def add_into(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> None:
    grid = (triton.cdiv(x.numel(), BLOCK_N),)
    torch.library.wrap_triton(masked_add_kernel)[grid](x, y, z, x.numel(), BLOCK_N=BLOCK_N)


@torch.library.triton_op("course_own::masked_add", mutates_args={})
def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = torch.empty_like(x)
    add_into(x, y, z)
    return z


@added.register_fake
def _(x, y):
    return torch.empty_like(x)


def masked_add(x, y):
    return torch.ops.course_own.masked_add(x, y)
