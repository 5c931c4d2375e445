"""Right: one pass over chunks of a row merges their means and squares; it is read again only if it has several."""

import torch
import triton
import triton.language as tl

CHUNK = 1024


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, z_ptr, mean_ptr, rstd_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, eps,
    CHUNK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    cols = tl.arange(0, CHUNK)
    mean = 0.0
    squares = 0.0
    count = 0.0
    x = tl.zeros((CHUNK,), tl.float32)
    chunks = tl.cdiv(N, CHUNK)
    for i in range(0, chunks):  # from the last to the first, which is still there afterwards
        start = (chunks - 1 - i) * CHUNK
        mask = start + cols < N
        x = tl.load(x_ptr + row * stride_xm + (start + cols) * stride_xn, mask=mask, other=0.0).to(tl.float32)
        size = tl.minimum(N - start, CHUNK).to(tl.float32)
        own = tl.sum(x, 0) / size
        d = tl.where(mask, x - own, 0.0)
        total = count + size
        apart = own - mean
        mean += apart * (size / total)
        squares += tl.sum(d * d, 0) + apart * apart * (count * size / total)
        count = total
    rstd = tl.rsqrt(squares / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, CHUNK):
        n = start + cols
        if start > 0:
            x = tl.load(x_ptr + row * stride_xm + n * stride_xn, mask=n < N, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + n, mask=n < N, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)
        tl.store(z_ptr + row * stride_zm + n * stride_zn, (x - mean) * rstd * weight + bias, mask=n < N)


def layer_norm(x, weight, bias, eps):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    mean = torch.empty(M, dtype=torch.float32, device=x.device)
    rstd = torch.empty(M, dtype=torch.float32, device=x.device)
    layer_norm_kernel[(M,)](
        x, weight, bias, z, mean, rstd, M, N, *x.stride(), *z.stride(), eps, CHUNK=CHUNK, num_warps=4
    )
    return z, mean, rstd
