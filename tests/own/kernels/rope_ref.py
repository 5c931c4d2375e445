import torch


def rope(q, cos, sin):
    first, second = q.chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


SHAPES = "T,H,D*2 T,D T,D; T=1..20 H=1..4 D=1..40"
WRONG = {
    "sign_of_the_sine": ("second * cos + first * sin", "second * cos - first * sin"),
    "written_over_half": ("tl.store(out_ptr + base + half + offs", "tl.store(out_ptr + base + half + offs - 1"),
}
