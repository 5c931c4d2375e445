def bmm(A, B):
    return A @ B


SHAPES = "P,M,K P,K,N; P=1..4 M=1..50 K=1..70 N=1..70"
WRONG = {
    "batch_of_b_has_the_shape_of_a": ("B += pid_b * K * N", "B += pid_b * M * K"),
    "columns_unmasked_in_the_store": (
        "o, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))",
        "o, mask=offs_m[:, None] < M)",
    ),
}
