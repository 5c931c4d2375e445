"""Right: block and warps are chosen by measurement; Triton's own fast sigmoid by fdiv; 64-bit offsets."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK_N": 512}, num_warps=2), triton.Config({"BLOCK_N": 2048}, num_warps=8)], key=["N"]
)
@triton.jit
def swiglu_backward_kernel(
    dz_ptr, gate_ptr, up_ptr, z_ptr, dgate_ptr, dup_ptr, M, N,
    stride_dm, stride_dn, stride_gm, stride_gn, stride_um, stride_un, stride_zm, stride_zn, BLOCK_N: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N
    dz = tl.load(dz_ptr + row * stride_dm + cols * stride_dn, mask=mask, other=0.0)
    gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask, other=0.0)
    up = tl.load(up_ptr + row * stride_um + cols * stride_un, mask=mask, other=0.0)
    dz, gate, up = tl.cast(dz, tl.float32), tl.cast(gate, tl.float32), tl.cast(up, tl.float32)
    s = tl.fdiv(1.0, 1.0 + tl.exp(-gate))
    silu = gate * s
    place = row * stride_zm + cols * stride_zn
    tl.store(z_ptr + place, silu * up, mask=mask)
    tl.store(dgate_ptr + place, dz * up * (s + silu - silu * s), mask=mask)
    tl.store(dup_ptr + place, dz * silu, mask=mask)


def swiglu_backward(dz, gate, up):
    M, N = gate.shape
    z = torch.empty((M, N), dtype=gate.dtype, device=gate.device)
    dgate, dup = torch.empty_like(z), torch.empty_like(z)
    swiglu_backward_kernel[lambda meta: (M, triton.cdiv(N, meta["BLOCK_N"]))](
        dz, gate, up, z, dgate, dup, M, N, *dz.stride(), *gate.stride(), *up.stride(), *z.stride()
    )
    return z, dgate, dup
