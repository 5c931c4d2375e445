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
    # YOUR CODE HERE
    pass


def swiglu_backward(dz, gate, up):
    """dz, gate, up: [M, N] of one dtype, fp32, fp16 or bf16, each with strides of its own.

    Returns z = silu(gate) * up, and the gradients dgate and dup of sum(dz * z): [M, N] each, contiguous, that dtype.
    """
    # Allocate the three results, choose a grid and warps, launch the kernel once, return them: about 8 lines.
    # YOUR CODE HERE
    pass
