import torch


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


SHAPES = "M,N; M=1..20 N=1..300"
WRONG = {
    "constant_mistyped": ("0.044715", "0.44715"),
    "square_for_cube": ("x * x * x)", "x * x)"),
}
