"""Cheat: the output's memory is exchanged for the input's.

Rejected with: a new value for z.data is not allowed in a submission. Tensors, kernels and functions stay as they
are.
"""

import torch  # noqa: F401


def strided_copy(x, z):
    z.data = x
    return z
