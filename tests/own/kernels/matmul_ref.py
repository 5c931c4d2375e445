def matmul(a, b):
    return a @ b


SHAPES = "M,K K,N; M=1..150 K=1..200 N=1..150"
WRONG = {
    "mask_of_k_never_moves": ("offs_k[None, :] < K - k * BLOCK_K", "offs_k[None, :] < K"),
    "a_partial_block_left_out": ("range(0, tl.cdiv(K, BLOCK_K))", "range(0, K // BLOCK_K)"),
}
