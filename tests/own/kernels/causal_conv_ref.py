import torch


def causal_conv(x, w):
    padded = torch.nn.functional.pad(x, (0, 0, 3, 0))
    return sum(padded[k : k + x.shape[0]] * w[:, k] for k in range(4))


SHAPES = "T,C C,4; T=1..40 C=1..80"
WRONG = {
    "reads_before_the_beginning": ("mask=mask & (source >= 0), other=0.0", "mask=mask, other=0.0"),
    "taps_in_reverse": ("c * WIDTH + k, mask", "c * WIDTH + WIDTH - 1 - k, mask"),
}
