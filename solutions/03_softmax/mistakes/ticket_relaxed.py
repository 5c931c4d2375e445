"""Wrong: the ticket is a relaxed atomic, which orders nothing.

Finding: race

Rejected with: Program (0, 1) reads scratch m[0, 0], which program (0, 0) writes in the same launch: a race.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, e_ptr, s_ptr, m_ptr, t_ptr, z_ptr, M, N, sm, sn, HALF: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    n = part * HALF + tl.arange(0, HALF)
    x = tl.load(x_ptr + row * sm + n * sn, mask=n < N, other=-float("inf")).to(tl.float32)
    m = tl.max(x, 0)
    e = tl.exp(x - tl.where(m == -float("inf"), 0.0, m))
    tl.store(e_ptr + row * N + n, e, mask=n < N)
    tl.store(s_ptr + row * 2 + part, tl.sum(e, 0))
    tl.store(m_ptr + row * 2 + part, m)
    ticket = tl.atomic_add(t_ptr + row, 1, sem="relaxed")
    if ticket == 1:
        m0 = tl.load(m_ptr + row * 2)
        m1 = tl.load(m_ptr + row * 2 + 1)
        top = tl.maximum(m0, m1)
        total = tl.load(s_ptr + row * 2) * tl.exp(m0 - top) + tl.load(s_ptr + row * 2 + 1) * tl.exp(m1 - top)
        c = tl.arange(0, HALF)
        tl.store(
            z_ptr + row * N + c,
            tl.load(e_ptr + row * N + c, mask=c < N, other=0.0) * tl.exp(m0 - top) / total,
            mask=c < N,
        )
        c += HALF
        tl.store(
            z_ptr + row * N + c,
            tl.load(e_ptr + row * N + c, mask=c < N, other=0.0) * tl.exp(m1 - top) / total,
            mask=c < N,
        )


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    e = torch.empty((M, N), dtype=torch.float32, device=x.device)
    s = torch.empty((M, 2), dtype=torch.float32, device=x.device)
    m = torch.empty((M, 2), dtype=torch.float32, device=x.device)
    t = torch.zeros((M,), dtype=torch.int32, device=x.device)
    softmax_kernel[(M, 2)](
        x, e, s, m, t, z, M, N, x.stride(0), x.stride(1), HALF=max(triton.next_power_of_2(N) // 2, 1)
    )
    return z
