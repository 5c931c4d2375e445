import torch


def attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


SHAPES = "H,T,32 H,T,32 H,T,32; H=1..3 T=1..100"
WRONG = {
    "accumulator_not_rescaled": ("acc = acc * alpha[:, None] +", "acc = acc +"),
    "diagonal_is_masked": ("offs_n[None, :] <= offs_m[:, None])", "offs_n[None, :] < offs_m[:, None])"),
}
