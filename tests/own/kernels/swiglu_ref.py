import torch


def swiglu(a, b):
    return torch.nn.functional.silu(a) * b


SHAPES = "T,D T,D; T=1..40 D=1..300"
WRONG = {
    "activation_on_the_other": ("silu.to(b.dtype) * b", "a * b * tl.sigmoid(b.to(tl.float32))"),
    "row_of_b_forgotten": ("    b_ptr += row * stride\n", ""),
}
