"""The kernels of the model as operators of torch, in the way of 36: each has a schema, and says what it changes.

`triton_op` lets torch.compile look into an operator; for that, what it launches has to be wrapped. The functions of the
exercises launch bare kernels, so `course story` puts wrapped ones in their places.
"""

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.library import triton_op


def operators(entries: dict[str, Callable]) -> SimpleNamespace:
    """Registers story::rope and so on, and returns them by their names. `entries`: the functions of the exercises, by
    the names of llama.KERNELS."""

    @triton_op("story::gather_rows", mutates_args=())
    def gather_rows(table: Tensor, index: Tensor) -> Tensor:
        return entries["gather_rows"](table, index)

    @triton_op("story::add_rms_norm", mutates_args={"residual"})
    def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
        return entries["add_rms_norm"](x, residual, weight, eps)

    @triton_op("story::rope", mutates_args=())
    def rope(q: Tensor, cos: Tensor, sin: Tensor, positions: Tensor) -> Tensor:
        return entries["rope"](q, cos, sin, positions)

    @triton_op("story::kv_cache_write", mutates_args={"k_cache", "v_cache"})
    def kv_cache_write(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
        entries["kv_cache_write"](k, v, k_cache, v_cache, slots)  # returns both caches, and no operator may do that

    @triton_op("story::attention", mutates_args=())
    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return entries["attention"](q, k, v)[0]

    @triton_op("story::paged_attention", mutates_args=())
    def paged_attention(
        q: Tensor, k_cache: Tensor, v_cache: Tensor, block_table: Tensor, lengths: Tensor
    ) -> Tensor:  # fmt: skip
        return entries["paged_attention"](q, k_cache, v_cache, block_table, lengths)

    @triton_op("story::linear_leaky_relu", mutates_args=())
    def linear_leaky_relu(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
        return entries["linear_leaky_relu"](a, b, bias)

    @triton_op("story::swiglu", mutates_args=())
    def swiglu(gate: Tensor, up: Tensor) -> Tensor:
        return entries["swiglu"](gate, gate, up)[0]  # any dz will do: what it makes of dz is not read

    @triton_op("story::cross_entropy", mutates_args=())
    def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
        return entries["cross_entropy"](logits, target, torch.ones(len(target), device=logits.device))[0]

    return SimpleNamespace(**{name: getattr(torch.ops.story, name) for name in entries})
