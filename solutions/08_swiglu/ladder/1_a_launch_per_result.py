"""08, rung 1: a launch for each of the three results.

What: one kernel makes z, one makes dgate, one makes dup; each loads what it needs.
Why it is slow: gate is read three times, up and dz twice: with the three results ten matrices of traffic instead of
six.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024  # columns per program


@triton.jit
def z_kernel(gate_ptr, up_ptr, z_ptr, N, stride_gm, stride_gn, stride_um, stride_un, BLOCK_N: tl.constexpr):
    blocks = tl.cdiv(N, BLOCK_N)
    row = tl.program_id(0) // blocks
    cols = tl.program_id(0) % blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=cols < N).to(tl.float32)
    up = tl.load(up_ptr + row * stride_um + cols * stride_un, mask=cols < N).to(tl.float32)
    tl.store(z_ptr + row * N + cols, gate * tl.sigmoid(gate) * up, mask=cols < N)


@triton.jit
def dgate_kernel(
    dz_ptr, gate_ptr, up_ptr, dgate_ptr, N, stride_dm, stride_dn, stride_gm, stride_gn, stride_um, stride_un,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(N, BLOCK_N)
    row = tl.program_id(0) // blocks
    cols = tl.program_id(0) % blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    dz = tl.load(dz_ptr + row * stride_dm + cols * stride_dn, mask=cols < N).to(tl.float32)
    gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=cols < N).to(tl.float32)
    up = tl.load(up_ptr + row * stride_um + cols * stride_un, mask=cols < N).to(tl.float32)
    s = tl.sigmoid(gate)
    tl.store(dgate_ptr + row * N + cols, dz * up * s * (1 + gate * (1 - s)), mask=cols < N)


@triton.jit
def dup_kernel(dz_ptr, gate_ptr, dup_ptr, N, stride_dm, stride_dn, stride_gm, stride_gn, BLOCK_N: tl.constexpr):
    blocks = tl.cdiv(N, BLOCK_N)
    row = tl.program_id(0) // blocks
    cols = tl.program_id(0) % blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    dz = tl.load(dz_ptr + row * stride_dm + cols * stride_dn, mask=cols < N).to(tl.float32)
    gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=cols < N).to(tl.float32)
    tl.store(dup_ptr + row * N + cols, dz * gate * tl.sigmoid(gate), mask=cols < N)


def swiglu_backward(dz, gate, up):
    """dz, gate, up: [M, N] of one dtype, fp32, fp16 or bf16, each with strides of its own.

    Returns z = silu(gate) * up, and the gradients dgate and dup of sum(dz * z): [M, N] each, contiguous, that dtype.
    """
    M, N = gate.shape
    z, dgate, dup = (torch.empty((M, N), dtype=gate.dtype, device=gate.device) for _ in range(3))
    grid = (M * triton.cdiv(N, BLOCK_N),)
    z_kernel[grid](gate, up, z, N, *gate.stride(), *up.stride(), BLOCK_N=BLOCK_N)
    dgate_kernel[grid](dz, gate, up, dgate, N, *dz.stride(), *gate.stride(), *up.stride(), BLOCK_N=BLOCK_N)
    dup_kernel[grid](dz, gate, dup, N, *dz.stride(), *gate.stride(), BLOCK_N=BLOCK_N)
    return z, dgate, dup
