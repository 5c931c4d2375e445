"""Right: silu as a quotient, with exp2; dgate from z as it is before it is rounded; a helper function."""

import torch
import triton
import triton.language as tl

BLOCK_N = 256


@triton.jit
def silu_and_sigmoid(x):
    below = 1 + tl.exp2(x * -1.4426950408889634)
    return x / below, 1 / below


@triton.jit
def swiglu_backward_kernel(
    dz_ptr, gate_ptr, up_ptr, z_ptr, dgate_ptr, dup_ptr, M, N,
    stride_dm, stride_dn, stride_gm, stride_gn, stride_um, stride_un, stride_zm, stride_zn, BLOCK_N: tl.constexpr,
):  # fmt: skip
    row, col = tl.program_id(0), tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = col < N
    gate = tl.load(gate_ptr + row * stride_gm + col * stride_gn, mask=mask, other=0.0).to(tl.float32)
    silu, s = silu_and_sigmoid(gate)
    dz = tl.load(dz_ptr + row * stride_dm + col * stride_dn, mask=mask, other=0.0).to(tl.float32)
    z_row, dgate_row, dup_row = z_ptr + row * stride_zm, dgate_ptr + row * stride_zm, dup_ptr + row * stride_zm
    tl.store(dup_row + col * stride_zn, silu * dz, mask=mask)
    up = tl.load(up_ptr + row * stride_um + col * stride_un, mask=mask, other=0.0).to(tl.float32)
    z = silu * up
    tl.store(z_row + col * stride_zn, z, mask=mask)
    tl.store(dgate_row + col * stride_zn, dz * (up * s + z * (1 - s)), mask=mask)


def swiglu_backward(dz, gate, up):
    M, N = gate.shape
    all_three = torch.empty((3, M, N), dtype=gate.dtype, device=gate.device)
    z, dgate, dup = all_three.unbind()
    swiglu_backward_kernel[(M, triton.cdiv(N, BLOCK_N))](
        dz, gate, up, z, dgate, dup, M, N, *dz.stride(), *gate.stride(), *up.stride(), *z.stride(),
        BLOCK_N=BLOCK_N, num_warps=2,
    )  # fmt: skip
    return z, dgate, dup
