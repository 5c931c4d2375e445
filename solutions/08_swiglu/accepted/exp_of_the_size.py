"""Right: sigmoid by exp(-|g|), which never overflows; tiles of several rows; as many programs as tiles, up to 64."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 4, 256


@triton.jit
def swiglu_backward_kernel(
    dz_ptr, gate_ptr, up_ptr, z_ptr, dgate_ptr, dup_ptr, M, N,
    stride_dm, stride_dn, stride_gm, stride_gn, stride_um, stride_un, stride_zm, stride_zn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * across, tl.num_programs(0)):
        rows = (tile // across * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
        cols = (tile % across * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
        mask = (rows < M) & (cols < N)
        dz = tl.load(dz_ptr + rows * stride_dm + cols * stride_dn, mask=mask).to(tl.float32)
        gate = tl.load(gate_ptr + rows * stride_gm + cols * stride_gn, mask=mask).to(tl.float32)
        up = tl.load(up_ptr + rows * stride_um + cols * stride_un, mask=mask).to(tl.float32)
        e = tl.exp(-tl.abs(gate))
        s = tl.where(gate >= 0, 1.0, e) / (1 + e)
        rest = tl.where(gate >= 0, e, 1.0) / (1 + e)
        place = rows * stride_zm + cols * stride_zn
        tl.store(z_ptr + place, up * s * gate, mask=mask)
        tl.store(dgate_ptr + place, up * s * (1 + gate * rest) * dz, mask=mask)
        tl.store(dup_ptr + place, s * gate * dz, mask=mask)


def swiglu_backward(dz, gate, up):
    z, dgate, dup = (torch.empty(gate.shape, dtype=gate.dtype, device=gate.device) for _ in "123")
    (M, N), tiles = gate.shape, triton.cdiv(gate.shape[0], BLOCK_M) * triton.cdiv(gate.shape[1], BLOCK_N)
    if tiles:
        swiglu_backward_kernel[(min(tiles, 64),)](
            dz, gate, up, z, dgate, dup, M, N, *dz.stride(), *gate.stride(), *up.stride(), *z.stride(),
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N,
        )  # fmt: skip
    return z, dgate, dup
