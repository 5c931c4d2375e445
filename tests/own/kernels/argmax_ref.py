def argmax(x):
    return x.argmax(dim=1)


SHAPES = "M,N; M=1..40 N=1..300"
WRONG = {
    "padding_wins": ('other=float("-inf")', "other=0.0"),
    "smallest_for_largest": ("tl.argmax(x", "tl.argmin(x"),
}
