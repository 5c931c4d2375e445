def transpose(x):
    return x.t().contiguous()


SHAPES = "M,N; M=1..100 N=1..100"
WRONG = {
    "not_transposed_in_the_tile": ("tl.store(y_ptr + out, tl.trans(x)", "tl.store(y_ptr + out, x"),
    "stride_of_the_input": ("cols[:, None] * M + rows[None, :]", "cols[:, None] * N + rows[None, :]"),
}
