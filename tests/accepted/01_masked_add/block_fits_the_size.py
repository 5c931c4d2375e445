"""Right: no constant: the block size is the next power of two, at most 4096; other argument order."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(out, left, right, count, LANES: tl.constexpr):
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    here = lane < count
    tl.store(out + lane, tl.load(left + lane, here, 0.0) + tl.load(right + lane, here, 0.0), here)


def masked_add(x, y):
    result = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    lanes = min(4096, triton.next_power_of_2(max(1, x.shape[0])))
    if len(x) > 0:
        add[(triton.cdiv(len(x), lanes),)](left=x, right=y, out=result, count=len(x), LANES=lanes)
    return result
