"""Wrong: a first launch stores sigmoid in the dtype of gate, a second one reads it again.

Finding: low-precision

Rejected with: Digits are lost on the way
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def swiglu_sigmoid_kernel(gate_ptr, s_ptr, N, sgm, sgn, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    gate = tl.load(gate_ptr + row * sgm + cols * sgn, mask=cols < N).to(tl.float32)
    tl.store(s_ptr + row * N + cols, tl.sigmoid(gate), mask=cols < N)


@triton.jit
def swiglu_backward_kernel(
    dz_ptr, gate_ptr, up_ptr, s_ptr, z_ptr, dgate_ptr, dup_ptr, N, sdm, sdn, sgm, sgn, sum_, sun, BLOCK_N: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    dz = tl.load(dz_ptr + row * sdm + cols * sdn, mask=cols < N).to(tl.float32)
    gate = tl.load(gate_ptr + row * sgm + cols * sgn, mask=cols < N).to(tl.float32)
    up = tl.load(up_ptr + row * sum_ + cols * sun, mask=cols < N).to(tl.float32)
    s = tl.load(s_ptr + row * N + cols, mask=cols < N).to(tl.float32)
    tl.store(z_ptr + row * N + cols, gate * s * up, mask=cols < N)
    tl.store(dgate_ptr + row * N + cols, dz * up * s * (1 + gate * (1 - s)), mask=cols < N)
    tl.store(dup_ptr + row * N + cols, dz * gate * s, mask=cols < N)


def swiglu_backward(dz, gate, up):
    M, N = gate.shape
    s, z, dgate, dup = (torch.empty((M, N), dtype=gate.dtype, device=gate.device) for _ in range(4))
    grid = (M, triton.cdiv(N, BLOCK_N))
    swiglu_sigmoid_kernel[grid](gate, s, N, *gate.stride(), BLOCK_N=BLOCK_N)
    swiglu_backward_kernel[grid](
        dz, gate, up, s, z, dgate, dup, N, *dz.stride(), *gate.stride(), *up.stride(), BLOCK_N=BLOCK_N
    )
    return z, dgate, dup
