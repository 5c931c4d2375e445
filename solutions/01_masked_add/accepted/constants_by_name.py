"""Right: constants and functions get their names in a loop, from a table, from the environment."""

import os

import torch
import triton
import triton.language as tl

BLOCK_N = 1024

for name, value in {"ONE": 1.0, "TWO": 2.0}.items():
    globals()[name] = tl.constexpr(value)

SIGNS = {"plus": 1.0, "minus": -1.0}
SIGN = tl.constexpr(SIGNS[os.environ.get("COURSE_HAS_NO_SUCH_NAME", "plus")])
for HALF in map(tl.constexpr, (0.25, 0.5)):  # noqa: B007
    pass
number: int = 3
number -= 1
COUNT = tl.constexpr(number)


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, HALF * TWO * x + SIGN * ONE * y * (COUNT // 2), mask=mask)  # noqa: F821


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
