"""Cheat: the kernel is a text that is executed; in the file there is none that adds.

Rejected with: the kernel masked_add_kernel is launched, which does not stand in the submission
"""

import importlib.util
import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


TEXT = """
import triton
import triton.language as tl


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)
"""

Path("made.py").write_text(TEXT)
spec = importlib.util.spec_from_file_location("made", "made.py")
made = importlib.util.module_from_spec(spec)
sys.modules["made"] = made
spec.loader.exec_module(made)


def masked_add(x, y):
    z = torch.empty_like(x)
    made.masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
