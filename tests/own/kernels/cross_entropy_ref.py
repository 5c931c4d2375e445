import torch


def cross_entropy(logits, targets):
    return torch.nn.functional.cross_entropy(logits, targets, reduction="none")


SHAPES = "T,V T:int64<V; T=1..30 V=1..400"
WRONG = {
    "no_rescaling": ("d * tl.exp(m - m_new)", "d"),
    "logarithm_to_base_two": ("tl.log(d)", "tl.log2(d)"),
}
