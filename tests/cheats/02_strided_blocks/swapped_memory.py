"""Cheat: the output's memory is exchanged for the input's.

Rejected with: .data in line ... does work that your kernel has to do
"""

import torch  # noqa: F401


def strided_copy(x, z):
    z.data = x
    return z
