"""The formula saves up before gate and takes them so; it calls the operator by torch.ops."""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op, triton_op, wrap_triton

BLOCK_N = 1024  # columns per program


@triton.jit
def swiglu_kernel(
    gate_ptr, up_ptr, z_ptr, M, N, stride_gm, stride_gn, stride_um, stride_un, stride_zm, stride_zn,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    row, block = tl.program_id(0) // tl.cdiv(N, BLOCK_N), tl.program_id(0) % tl.cdiv(N, BLOCK_N)
    cols = block * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N
    gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * stride_um + cols * stride_un, mask=mask).to(tl.float32)
    tl.store(z_ptr + row * stride_zm + cols * stride_zn, gate * tl.sigmoid(gate) * up, mask=mask)


@triton.jit
def swiglu_backward_kernel(
    dz_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, M, N,
    stride_dm, stride_dn, stride_gm, stride_gn, stride_um, stride_un, stride_rm, stride_rn, BLOCK_N: tl.constexpr,
):  # fmt: skip
    row, block = tl.program_id(0) // tl.cdiv(N, BLOCK_N), tl.program_id(0) % tl.cdiv(N, BLOCK_N)
    cols = block * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N
    dz = tl.load(dz_ptr + row * stride_dm + cols * stride_dn, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * stride_um + cols * stride_un, mask=mask).to(tl.float32)
    s, place = tl.sigmoid(gate), row * stride_rm + cols * stride_rn  # both results have the same strides
    tl.store(dgate_ptr + place, dz * up * s * (1 + gate * (1 - s)), mask=mask)
    tl.store(dup_ptr + place, dz * gate * s, mask=mask)


@triton_op("course::swiglu", mutates_args=())
def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    M, N = gate.shape
    z = gate.new_empty((M, N))
    wrap_triton(swiglu_kernel)[(M * triton.cdiv(N, BLOCK_N),)](
        gate, up, z, M, N, *gate.stride(), *up.stride(), *z.stride(), BLOCK_N=BLOCK_N
    )
    return z


@custom_op("course::swiglu_backward", mutates_args=())
def swiglu_backward(dz: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    M, N = gate.shape
    dgate, dup = (torch.empty((M, N), dtype=gate.dtype, device=gate.device) for _ in range(2))
    swiglu_backward_kernel[(M * triton.cdiv(N, BLOCK_N),)](
        dz, gate, up, dgate, dup, M, N, *dz.stride(), *gate.stride(), *up.stride(), *dgate.stride(), BLOCK_N=BLOCK_N
    )
    return dgate, dup


@swiglu_backward.register_fake
def swiglu_backward_fake(dz: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    return gate.new_empty(gate.shape), gate.new_empty(gate.shape)


def setup_context(ctx, inputs, output):
    gate, up = inputs
    ctx.save_for_backward(up, gate)


def backward(ctx, dz):
    up, gate = ctx.saved_tensors
    dgate, dup = torch.ops.course.swiglu_backward.default(dz, gate, up)
    return dgate, dup


swiglu.register_autograd(backward, setup_context=setup_context)


def training_step(dz, gate, up):
    """Returns what a step of training gives: z, and the gradients of sum(dz * z); all are [M, N] as dz."""
    gate, up = gate.detach().requires_grad_(), up.detach().requires_grad_()
    z = torch.ops.course.swiglu(gate, up)
    return z.detach(), *torch.autograd.grad(z, (gate, up), dz)
