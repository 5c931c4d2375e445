"""The comparisons of other judges, applied to the files in this folder: see docs/what_other_judges_accept.md.

Each rule compares as the thread that it names does, on inputs of the same kind; its docstring says what differs.
Triton's interpreter carries the kernels out, so that no GPU is needed:

    TRITON_INTERPRET=1 python tests/other_judges/rules.py
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
ATTENTION = HERE.parents[1] / "solutions/25_flash_attention/flash_attention.py"


def entry_of(path: Path, name: str) -> Callable:
    """Returns the host function of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Returns numbers of a normal distribution, the same in each run."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def a_tolerance_above_the_values() -> bool:
    """KernelBench's problem 23: rows of 393216 columns, each value within 1e-2. Its 4096 rows are 2 here."""
    x = torch.rand(2, 393216, generator=torch.Generator().manual_seed(0))
    z = entry_of(HERE / "03_zeros.py", "softmax")(x)
    return torch.allclose(z, torch.softmax(x, 1), atol=1e-2, rtol=1e-2)


def two_equal_inputs() -> bool:
    """Mojo GPU Puzzles 5: a sum of a row and a column, both 0, 1, 2, ...; here their product."""
    x = torch.arange(8, dtype=torch.float32)
    return torch.equal(entry_of(HERE / "06_vectors_exchanged.py", "outer_relu")(x, x), x[:, None] * x[None, :])


def powers_of_two() -> bool:
    """Unsloth's tests before its repair: no number of columns but powers of two."""
    x, weight, bias = normal(16, 1024) + 3, normal(1024), normal(1024)
    z, _, _ = entry_of(HERE / "09_padding_in_the_variance.py", "layer_norm")(x, weight, bias, 1e-5)
    return torch.allclose(z, torch.nn.functional.layer_norm(x, (1024,), weight, bias, 1e-5), atol=1e-5)


def whole_tiles() -> bool:
    """FlashAttention's fused linear layer: sizes that tiles divide."""
    a, b = normal(256, 64, dtype=torch.float16), normal(64, 256, dtype=torch.float16)
    c = entry_of(HERE / "05_no_store_mask.py", "matmul")(a, b)
    return torch.allclose(c.float(), a.float() @ b.float(), atol=1e-2, rtol=1e-2)


def small_tables() -> bool:
    """MegaBlocks' copy of rows: right until a product of a row's number and its length reaches 2**31."""
    table, index = normal(1000, 4096), torch.arange(999, -1, -7)
    return torch.equal(entry_of(HERE / "12_int32_product.py", "gather_rows")(table, index), table[index])


def one_shape(file: str) -> bool:
    """CS336's assignment 2: attention at 128 queries, 128 keys, D = 64, within 1e-2. Its fp32 is fp16 here."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 4, 128, 64, generator=generator).half() for _ in range(3))
    o, lse = entry_of(HERE / file, "attention")(q, k, v)
    scores = q.float() @ k.float().mT / 8
    right = torch.softmax(scores, -1) @ v.float(), torch.logsumexp(scores, -1)
    return all(torch.allclose(got.float(), wanted, atol=1e-2, rtol=1e-2) for got, wanted in zip((o, lse), right))


def a_right_product_of_bf16() -> bool:
    """Triton's interpreter, which many courses judge with: bf16 is multiplied as the 16-bit numbers that hold it."""
    q, k, v = (normal(1, 1, 16, 16, dtype=torch.bfloat16) for _ in range(3))
    o, _ = entry_of(ATTENTION, "attention")(q, k, v)
    right = torch.softmax(q.float() @ k.float().mT / 4, -1) @ v.float()
    return torch.allclose(o.float(), right, atol=1e-1)


RULES = {
    "03_zeros.py": a_tolerance_above_the_values,
    "05_no_store_mask.py": whole_tiles,
    "06_vectors_exchanged.py": two_equal_inputs,
    "09_padding_in_the_variance.py": powers_of_two,
    "12_int32_product.py": small_tables,
    "25_half_scores.py": lambda: one_shape("25_half_scores.py"),
    "25_key_tail_zero.py": lambda: one_shape("25_key_tail_zero.py"),
    "solutions/25_flash_attention": a_right_product_of_bf16,
}

if __name__ == "__main__":
    for name, rule in RULES.items():
        print(f"{name}: {'accepted' if rule() else 'refused'}")
