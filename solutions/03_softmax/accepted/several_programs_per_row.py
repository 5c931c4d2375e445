"""Right: several programs per row leave a maximum and a sum each; a second launch merges these."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_stats_kernel(x_ptr, e_ptr, max_ptr, sum_ptr, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    row, block, blocks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    cols = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
    greatest = tl.max(x, 0)
    shift = tl.where(greatest == -float("inf"), 0.0, greatest)
    tl.store(e_ptr + row * N + cols, x, mask=cols < N)
    tl.store(max_ptr + row * blocks + block, greatest)
    tl.store(sum_ptr + row * blocks + block, tl.sum(tl.exp(x - shift), 0))


@triton.jit
def softmax_kernel(e_ptr, max_ptr, sum_ptr, z_ptr, N, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    row, block, blocks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    part = tl.arange(0, BLOCKS)
    maxima = tl.load(max_ptr + row * blocks + part, mask=part < blocks, other=-float("inf"))
    sums = tl.load(sum_ptr + row * blocks + part, mask=part < blocks, other=0.0)
    greatest = tl.max(maxima, 0)
    total = tl.sum(sums * tl.exp(maxima - greatest), 0)
    cols = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(e_ptr + row * N + cols, mask=cols < N, other=0.0)
    tl.store(z_ptr + row * N + cols, tl.exp(x - greatest) / total, mask=cols < N)


def softmax(x):
    M, N = x.shape
    blocks = triton.cdiv(N, 256)
    scratch = torch.empty((M, N), dtype=torch.float32, device=x.device)
    maxima = torch.empty((M, blocks), dtype=torch.float32, device=x.device)
    sums = torch.empty_like(maxima)
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (M, blocks)
    softmax_stats_kernel[grid](x, scratch, maxima, sums, N, x.stride(0), x.stride(1), BLOCK=256)
    softmax_kernel[grid](scratch, maxima, sums, z, N, BLOCK=256, BLOCKS=triton.next_power_of_2(blocks))
    return z
