"""Right, and full of Python: hints, a data class, partial, assertions, a reference, a benchmark below the guard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

BLOCK_N: int = 2 ** int(math.log2(1024))


class Launch(NamedTuple):
    grid: tuple[int, ...]
    block: int


@dataclass(frozen=True)
class Plan:
    elements: int
    block: int = BLOCK_N

    @property
    def launch(self) -> Launch:
        return Launch((triton.cdiv(self.elements, self.block),), self.block)


@triton.jit
def block_of(pid, BLOCK_N: tl.constexpr):
    return pid * BLOCK_N + tl.arange(0, BLOCK_N)


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    """Adds one block; no numpy.add, no os.system."""
    offsets = block_of(tl.program_id(0), BLOCK_N)
    mask = offsets < N
    load = mask
    x = tl.load(x_ptr + offsets, mask=load)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.static_assert(BLOCK_N >= 1, "a block has elements")
    tl.store(z_ptr + offsets, (x + y).to(z_ptr.dtype.element_ty), mask=mask)


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Never called here."""
    return torch.add(x, y) + F.relu(torch.zeros_like(x)).sum() * torch.special.expit(x).mean()


def masked_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    assert x.shape == y.shape, f"shapes differ: {tuple(x.shape)} and {tuple(y.shape)}"
    if x.dtype != y.dtype:
        raise TypeError("{} and {}".format(x.dtype, y.dtype))  # noqa: UP032
    allocate = partial(torch.empty, dtype=x.dtype, device=x.device)
    plan = Plan(elements=x.numel(), block=BLOCK_N)
    match plan.launch:
        case Launch(grid=grid, block=block):
            z = allocate(x.shape)
            masked_add_kernel[grid](x, y, z, plan.elements, BLOCK_N=block)
    return z


if __name__ == "__main__":
    import os
    import time

    import numpy as np

    x = torch.from_numpy(np.random.default_rng(0).standard_normal(1 << 20))
    start = time.perf_counter()
    masked_add(x, x)
    print(f"{time.perf_counter() - start:.3f} s", os.environ.get("TRITON_INTERPRET"), x.device)
