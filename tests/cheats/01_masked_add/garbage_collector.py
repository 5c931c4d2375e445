"""Cheat: the garbage collector lists every tensor of the process.

Rejected with: z shares its memory with
"""

import gc

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


def masked_add(x, y):
    return [found for found in gc.get_objects() if isinstance(found, torch.Tensor)][-1]
