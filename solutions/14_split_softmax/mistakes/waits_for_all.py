"""Wrong: one launch, in which each program counts itself and waits until all have come: who waits holds the place.

Finding: endless

Rejected with: program (0,) asks again and again for what other programs have to do
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 8192


@triton.jit
def softmax_kernel(
    x_ptr, max_ptr, sum_ptr, arrived_ptr, z_ptr, P, N, stride_x, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr
):
    p = tl.program_id(0)
    i = p * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i * stride_x, mask=i < N, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, 0)
    shift = tl.where(largest == -float("inf"), 0.0, largest)
    tl.store(max_ptr + p, largest)
    tl.store(sum_ptr + p, tl.sum(tl.exp(x - shift), 0))
    tl.atomic_add(arrived_ptr, 1, sem="release")
    while tl.atomic_add(arrived_ptr, 0, sem="acquire") < P:
        pass
    parts = tl.arange(0, BLOCK_P)
    maxima = tl.load(max_ptr + parts, mask=parts < P, other=-float("inf"))
    sums = tl.load(sum_ptr + parts, mask=parts < P, other=0.0)
    top = tl.max(maxima, 0)
    tl.store(z_ptr + i, tl.exp(x - top) / tl.sum(sums * tl.exp(maxima - top), 0), mask=i < N)


def softmax(x):
    (N,) = x.shape
    P = triton.cdiv(N, BLOCK_N)
    maxima = torch.empty(P, dtype=torch.float32, device=x.device)
    sums = torch.empty(P, dtype=torch.float32, device=x.device)
    arrived = torch.zeros(1, dtype=torch.int32, device=x.device)
    z = torch.empty(N, dtype=x.dtype, device=x.device)
    softmax_kernel[(P,)](
        x, maxima, sums, arrived, z, P, N, x.stride(0), BLOCK_P=triton.next_power_of_2(P), BLOCK_N=BLOCK_N
    )
    return z
