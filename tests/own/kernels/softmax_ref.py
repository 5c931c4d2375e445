def softmax(x):
    return x.softmax(dim=-1)


SHAPES = "M,N; M=1..40 N=1..300"
WRONG = {
    "other_is_zero": ('other=-float("inf")', "other=0.0"),
    "no_maximum_taken_off": ("row - tl.max(row, axis=0)", "row"),
}
