"""Right: the pointers in a tuple with names, and a kernel with a name and metadata of its own for a profiler."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

BLOCK_N = 1024  # elements per program


class Pair(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


def name_with_block(specialization):
    return f"masked_add_{specialization.constants['BLOCK_N']}"


def bytes_moved(grid, kernel, args):
    return {"name": f"{kernel.name} [N={args['N']}]", "bytes": 3 * args["N"]}


@triton.jit(repr=name_with_block, launch_metadata=bytes_moved, do_not_specialize=["N"])
def masked_add_kernel(pair, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N  # the last block is rarely full
    x = tl.load(pair.x + offsets, mask=mask)
    y = tl.load(pair.y + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    """x, y: [N] contiguous, fp32, fp16 or bf16. Returns z = x + y, [N], the dtype of x."""
    z = torch.empty_like(x)
    N = x.numel()
    grid = (triton.cdiv(N, BLOCK_N),)  # rounds up, so that a partial block gets a program too
    masked_add_kernel[grid](Pair(x, y), z, N, BLOCK_N=BLOCK_N, num_warps=8)
    return z
