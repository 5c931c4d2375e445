import torch
import triton
import triton.language as tl


@triton.jit
def bmm_kernel(A, B, O, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    pid_b = tl.program_id(2)
    A += pid_b * M * K
    B += pid_b * K * N
    O += pid_b * M * N
    offs_m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    offs_n = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    offs_k = tl.arange(0, TILE_K)
    o = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, K, TILE_K):
        k = start + offs_k
        a = tl.load(A + offs_m[:, None] * K + k[None, :], mask=(offs_m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(B + k[:, None] * N + offs_n[None, :], mask=(k[:, None] < K) & (offs_n[None, :] < N), other=0.0)
        o += tl.dot(a, b, input_precision="ieee")
    tl.store(O + offs_m[:, None] * N + offs_n[None, :], o, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def bmm(A, B):
    batch, M, K = A.shape
    N = B.shape[2]
    out = torch.empty((batch, M, N), dtype=A.dtype, device=A.device)
    bmm_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 32), batch)](A, B, out, M, N, K, TILE_M=16, TILE_N=32, TILE_K=16)
    return out
