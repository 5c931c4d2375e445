import torch


def rms_norm(x, w, eps=1e-6):
    rstd = torch.rsqrt((x * x).mean(dim=-1) + eps)
    return x * rstd[:, None] * w, rstd


SHAPES = "M,N N; M=1..40 N=1..300"
WRONG = {
    "divided_by_the_block": ("/ n_cols\n", "/ BLOCK_SIZE\n"),
    "statistic_at_one_place": ("tl.store(rstd_ptr + row, rstd)", "tl.store(rstd_ptr, rstd)"),
}
