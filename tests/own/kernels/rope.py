import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(q_ptr, cos_ptr, sin_ptr, out_ptr, heads, half, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    head = tl.program_id(1)
    offs = tl.arange(0, BLOCK)
    mask = offs < half
    base = (token * heads + head) * half * 2
    cos = tl.load(cos_ptr + token * half + offs, mask=mask, other=0.0)
    sin = tl.load(sin_ptr + token * half + offs, mask=mask, other=0.0)
    first = tl.load(q_ptr + base + offs, mask=mask, other=0.0)
    second = tl.load(q_ptr + base + half + offs, mask=mask, other=0.0)
    tl.store(out_ptr + base + offs, first * cos - second * sin, mask=mask)
    tl.store(out_ptr + base + half + offs, second * cos + first * sin, mask=mask)


def rope(q, cos, sin):
    tokens, heads, dim = q.shape
    out = torch.empty_like(q)
    rope_kernel[(tokens, heads)](q, cos, sin, out, heads, dim // 2, BLOCK=triton.next_power_of_2(dim // 2))
    return out
