"""Tensors like others, made without memory: they have the strides that torch gives to real ones."""

from __future__ import annotations

import pytest
import torch

from grader.child.torch_refusals import Refusals

LAYOUTS = {
    "a vector": lambda: torch.empty(7),
    "a number": lambda: torch.empty(()),
    "nothing": lambda: torch.empty(0, 3),
    "a matrix": lambda: torch.empty(4, 5),
    "transposed": lambda: torch.empty(4, 5).t(),
    "one row": lambda: torch.empty(1, 5),
    "one column": lambda: torch.empty(5, 1),
    "padded rows": lambda: torch.empty(4, 5)[:, :3],
    "every second": lambda: torch.empty(4, 5)[::2, ::2],
    "expanded": lambda: torch.empty(1, 5).expand(6, -1),
    "a part, transposed": lambda: torch.empty(4, 5)[:, 1:].t(),
    "permuted": lambda: torch.empty(2, 3, 4).permute(2, 0, 1),
    "a part, permuted": lambda: torch.empty(2, 3, 4).permute(1, 2, 0)[:, :2],
    "turned round": lambda: torch.empty(2, 3, 4).transpose(0, 2)[::2],
    "expanded, permuted": lambda: torch.empty(2, 1, 4).expand(-1, 3, -1).permute(2, 1, 0),
}
MAKERS = {
    "empty_like": torch.empty_like,
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
    "full_like": lambda tensor, **options: torch.full_like(tensor, 3, **options),
}


@pytest.mark.parametrize("options", [{}, {"dtype": torch.float16}, {"memory_format": torch.contiguous_format}], ids=str)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_are_those_of_a_real_tensor(layout, maker, options):
    real = LAYOUTS[layout]()
    without_memory = torch.empty(0, device="meta").as_strided(real.shape, real.stride())
    expected = MAKERS[maker](real, **options)
    with Refusals("").on():
        found = MAKERS[maker](without_memory, **options)
    assert found.is_meta
    assert (found.shape, found.stride(), found.dtype) == (expected.shape, expected.stride(), expected.dtype)
