import torch


def layer_norm(x, weight, bias, eps=1e-5):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


SHAPES = "M,N N N; M=1..30 N=1..300"
WRONG = {
    "padding_in_the_variance": ("tl.where(cols < N, x - mean, 0.0)", "x - mean"),
    "eps_outside_of_the_root": ("1 / tl.sqrt(var + eps)", "1 / (tl.sqrt(var) + eps)"),
}
