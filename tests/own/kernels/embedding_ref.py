def embedding(ids, table):
    return table[ids]


SHAPES = "T:int64<V V,D; T=1..60 V=1..50 D=1..150"
WRONG = {
    "ids_past_their_end": ("tl.load(ids_ptr + offs_n, mask=mask_n, other=0)", "tl.load(ids_ptr + offs_n)"),
    "one_block_of_columns": ("(triton.cdiv(n, 16), triton.cdiv(dim, 64))", "(triton.cdiv(n, 16), 1)"),
}
