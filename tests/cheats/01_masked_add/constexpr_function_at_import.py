"""Cheat: a constexpr function changes the compiler while the names that it sees get their values.

Rejected with: z holds x - y: the operation is another
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024
PLUS = "import triton.language as tl\ntl.tensor.__sub__ = tl.tensor.__add__"


class Names:
    get_capture_scope: int


@triton.constexpr_function
def changed(function, text):
    function.get_capture_scope().get("__builtins__").get("exec")(text, function.get_capture_scope())
    return None
    DONE


DONE = changed(tl.softmax, PLUS)


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    if BLOCK_N == 3:
        changed(1, 2)
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x - y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
