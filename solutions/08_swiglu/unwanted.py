"""Kept out by the gate: sigmoid goes through memory: 9 matrices of traffic instead of 6."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def sigmoid_kernel(gate_ptr, s_ptr, N, stride_gm, BLOCK_N: tl.constexpr):
    blocks = tl.cdiv(N, BLOCK_N)
    row = tl.program_id(0) // blocks
    cols = tl.program_id(0) % blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    gate = tl.load(gate_ptr + row * stride_gm + cols, mask=cols < N).to(tl.float32)
    tl.store(s_ptr + row * N + cols, tl.sigmoid(gate), mask=cols < N)


@triton.jit
def swiglu_backward_kernel(
    dz_ptr, gate_ptr, up_ptr, s_ptr, z_ptr, dgate_ptr, dup_ptr, N, stride_dm, stride_gm, stride_um,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(N, BLOCK_N)
    row = tl.program_id(0) // blocks
    cols = tl.program_id(0) % blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N
    dz = tl.load(dz_ptr + row * stride_dm + cols, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + row * stride_gm + cols, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * stride_um + cols, mask=mask).to(tl.float32)
    s = tl.load(s_ptr + row * N + cols, mask=mask)
    tl.store(z_ptr + row * N + cols, gate * s * up, mask=mask)
    tl.store(dgate_ptr + row * N + cols, dz * up * s * (1 + gate * (1 - s)), mask=mask)
    tl.store(dup_ptr + row * N + cols, dz * gate * s, mask=mask)


def swiglu_backward(dz, gate, up):
    M, N = gate.shape
    z, dgate, dup = (torch.empty((M, N), dtype=gate.dtype, device=gate.device) for _ in range(3))
    s = torch.empty((M, N), dtype=torch.float32, device=gate.device)
    grid = (M * triton.cdiv(N, BLOCK_N),)
    sigmoid_kernel[grid](gate, s, N, gate.stride(0), BLOCK_N=BLOCK_N, num_warps=4)
    swiglu_backward_kernel[grid](
        dz, gate, up, s, z, dgate, dup, N, dz.stride(0), gate.stride(0), up.stride(0), BLOCK_N=BLOCK_N, num_warps=4
    )
    return z, dgate, dup
