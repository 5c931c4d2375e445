"""08 · SwiGLU backward: the activation again, and both of its gradients, in one pass over memory."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024  # columns per program; with 4 warps a thread holds 8 neighbours: 16 bytes of fp16, Triton's most


@triton.jit
def swiglu_backward_kernel(
    dz_ptr, gate_ptr, up_ptr, z_ptr, dgate_ptr, dup_ptr, M, N,
    stride_dm, stride_dn, stride_gm, stride_gn, stride_um, stride_un, stride_zm, stride_zn, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # A program handles one block of one row, from three loads to three stores: about 15 lines.
    ### BEGIN SOLUTION
    blocks = tl.cdiv(N, BLOCK_N)  # of a row; programs that follow each other are neighbours in memory
    row = tl.program_id(0) // blocks
    cols = tl.program_id(0) % blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N  # no `other` below: no lane meets another one, and what a masked lane holds is never stored
    dz = tl.load(dz_ptr + row * stride_dm + cols * stride_dn, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * stride_um + cols * stride_un, mask=mask).to(tl.float32)
    s = tl.sigmoid(gate)  # 1 / (1 + exp(-gate)): where exp overflows, 1 / inf is 0, and that is right
    silu = gate * s
    slope = s * (1 + gate * (1 - s))  # of silu: the product rule, with s' = s * (1 - s)
    place = row * stride_zm + cols * stride_zn  # the three results have the same strides
    tl.store(z_ptr + place, silu * up, mask=mask)
    tl.store(dgate_ptr + place, dz * up * slope, mask=mask)
    tl.store(dup_ptr + place, dz * silu, mask=mask)
    ### END SOLUTION


def swiglu_backward(dz, gate, up):
    """dz, gate, up: [M, N] of one dtype, fp32, fp16 or bf16, each with strides of its own.

    Returns z = silu(gate) * up, and the gradients dgate and dup of sum(dz * z): [M, N] each, contiguous, that dtype.
    """
    # Allocate the three results, choose a grid and warps, launch the kernel once, return them: about 8 lines.
    ### BEGIN SOLUTION
    M, N = gate.shape
    z, dgate, dup = (torch.empty((M, N), dtype=gate.dtype, device=gate.device) for _ in range(3))
    grid = (M * triton.cdiv(N, BLOCK_N),)  # one axis, row after row: it has room for 2**31 - 1 programs
    swiglu_backward_kernel[grid](
        dz, gate, up, z, dgate, dup, M, N, *dz.stride(), *gate.stride(), *up.stride(), *z.stride(),
        BLOCK_N=BLOCK_N, num_warps=4,
    )  # fmt: skip
    return z, dgate, dup
    ### END SOLUTION
