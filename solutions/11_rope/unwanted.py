"""Kept out by the gate: q with its halves exchanged goes through memory, as in torch's steps; then two products."""

import torch
import triton
import triton.language as tl

BLOCK_H = 16


@triton.jit
def rope_exchange_kernel(q_ptr, r_ptr, rows, HALF: tl.constexpr, ROWS: tl.constexpr):
    # r = (-e, a): the head with its halves exchanged
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.arange(0, HALF)[None, :]
    mask = row < rows
    a = tl.load(q_ptr + row * (2 * HALF) + i, mask=mask)
    e = tl.load(q_ptr + row * (2 * HALF) + HALF + i, mask=mask)
    tl.store(r_ptr + row * (2 * HALF) + i, -e, mask=mask)
    tl.store(r_ptr + row * (2 * HALF) + HALF + i, a, mask=mask)


@triton.jit
def rope_kernel(q_ptr, r_ptr, cos_ptr, sin_ptr, positions_ptr, z_ptr, H, S, HALF: tl.constexpr, BLOCK_H: tl.constexpr):
    s, b = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, 2 * HALF)[None, :]
    p = tl.load(positions_ptr + b * S + s)
    c = tl.load(cos_ptr + p * HALF + d % HALF)
    n = tl.load(sin_ptr + p * HALF + d % HALF)
    for start in range(0, H, BLOCK_H):
        h = start + tl.arange(0, BLOCK_H)[:, None]
        place = ((b * H + h) * S + s) * (2 * HALF) + d
        q = tl.load(q_ptr + place, mask=h < H)
        r = tl.load(r_ptr + place, mask=h < H)
        tl.store(z_ptr + place, q * c + r * n, mask=h < H)


def rope(q, cos, sin, positions):
    B, H, S, D = q.shape  # contiguous, with D a power of two, as where it is timed
    r, z = torch.empty_like(q), torch.empty_like(q)
    rope_exchange_kernel[(triton.cdiv(B * H * S, 16),)](q, r, B * H * S, HALF=D // 2, ROWS=16)
    rope_kernel[(S, B)](q, r, cos, sin, positions, z, H, S, HALF=D // 2, BLOCK_H=BLOCK_H)
    return z
