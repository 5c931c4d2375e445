"""Wrong: forward and backward are launches of their own, and both read gate and up.

Finding: too-many-launches

Rejected with: 2 kernels are launched; 1 is enough.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def swiglu_forward_kernel(gate_ptr, up_ptr, z_ptr, N, sgm, sgn, sum_, sun, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    gate = tl.load(gate_ptr + row * sgm + cols * sgn, mask=cols < N).to(tl.float32)
    up = tl.load(up_ptr + row * sum_ + cols * sun, mask=cols < N).to(tl.float32)
    tl.store(z_ptr + row * N + cols, gate * tl.sigmoid(gate) * up, mask=cols < N)


@triton.jit
def swiglu_backward_kernel(
    dz_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, N, sdm, sdn, sgm, sgn, sum_, sun, BLOCK_N: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    dz = tl.load(dz_ptr + row * sdm + cols * sdn, mask=cols < N).to(tl.float32)
    gate = tl.load(gate_ptr + row * sgm + cols * sgn, mask=cols < N).to(tl.float32)
    up = tl.load(up_ptr + row * sum_ + cols * sun, mask=cols < N).to(tl.float32)
    s = tl.sigmoid(gate)
    tl.store(dgate_ptr + row * N + cols, dz * up * s * (1 + gate * (1 - s)), mask=cols < N)
    tl.store(dup_ptr + row * N + cols, dz * gate * s, mask=cols < N)


def swiglu_backward(dz, gate, up):
    M, N = gate.shape
    z, dgate, dup = (torch.empty((M, N), dtype=gate.dtype, device=gate.device) for _ in range(3))
    grid = (M, triton.cdiv(N, BLOCK_N))
    swiglu_forward_kernel[grid](gate, up, z, N, *gate.stride(), *up.stride(), BLOCK_N=BLOCK_N)
    swiglu_backward_kernel[grid](
        dz, gate, up, dgate, dup, N, *dz.stride(), *gate.stride(), *up.stride(), BLOCK_N=BLOCK_N
    )
    return z, dgate, dup
