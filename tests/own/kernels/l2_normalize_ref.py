import torch


def l2_normalize(x, eps=1e-12):
    return torch.nn.functional.normalize(x, dim=1, eps=eps)


SHAPES = "M,N; M=1..30 N=1..200"
WRONG = {
    "sum_begins_anew": ("total += tl.sum(x * x, axis=1)", "total = tl.sum(x * x, axis=1)"),
    "no_root": ("tl.maximum(tl.sqrt(total), eps)", "tl.maximum(total, eps)"),
}
