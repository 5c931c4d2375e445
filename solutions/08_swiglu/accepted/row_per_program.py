"""Right: a program handles a whole row, in a block of the next power of two; row numbers in 64 bits. Libraries of
kernels for training do it so."""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_backward_kernel(
    dz_ptr, gate_ptr, up_ptr, z_ptr, dgate_ptr, dup_ptr, N, sdm, sdn, sgm, sgn, sum_, sun, BLOCK_N: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    dz = tl.load(dz_ptr + row * sdm + cols * sdn, mask=mask, other=0).to(tl.float32)
    gate = tl.load(gate_ptr + row * sgm + cols * sgn, mask=mask, other=0).to(tl.float32)
    up = tl.load(up_ptr + row * sum_ + cols * sun, mask=mask, other=0).to(tl.float32)
    s = tl.sigmoid(gate)
    silu = gate * s
    dup = dz * silu
    dgate = dz * (silu * (1 - s) + s) * up
    tl.store(z_ptr + row * N + cols, silu * up, mask=mask)
    tl.store(dgate_ptr + row * N + cols, dgate.to(dgate_ptr.dtype.element_ty), mask=mask)
    tl.store(dup_ptr + row * N + cols, dup.to(dup_ptr.dtype.element_ty), mask=mask)


def swiglu_backward(dz, gate, up):
    M, N = gate.shape
    z = torch.empty((M, N), dtype=gate.dtype, device=gate.device)
    dgate, dup = torch.empty_like(z), torch.empty_like(z)
    BLOCK_N = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK_N // 256, 4), 32)
    if z.numel():
        swiglu_backward_kernel[(M,)](
            dz, gate, up, z, dgate, dup, N, dz.stride(0), dz.stride(1), gate.stride(0), gate.stride(1),
            up.stride(0), up.stride(1), BLOCK_N=BLOCK_N, num_warps=num_warps,
        )  # fmt: skip
    return z, dgate, dup
