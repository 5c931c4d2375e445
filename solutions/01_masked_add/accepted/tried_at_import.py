"""Right: the kernel is tried out while the file is imported, where torch may compute."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    masked_add_kernel[(triton.cdiv(N, BLOCK_N),)](x, y, z, N, BLOCK_N)
    return z


device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.rand(2 * BLOCK_N + 1, device=device)
z = masked_add(x, x)
assert torch.equal(z, x + x)
print(z[:3], (z - 2 * x).abs().max().item())
