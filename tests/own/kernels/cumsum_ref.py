def cumsum(x):
    return x.cumsum(dim=1)


SHAPES = "M,N; M=1..30 N=1..200"
WRONG = {
    "no_carry": (" + carry, mask=mask)", ", mask=mask)"),
    "exclusive": ("tl.cumsum(x, axis=0) + carry", "tl.cumsum(x, axis=0) - x + carry"),
}
