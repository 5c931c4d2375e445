"""Lesson 43: the table of formats, what sums come to in each, and what Triton does with narrow numbers."""

from __future__ import annotations

import re

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.tools.mxfp import MXFP4Tensor

from tests.conftest import ROOT

TEXT = (ROOT / "exercises/43_numbers/README.md").read_text(encoding="utf-8")
ROWS = {
    cells[0]: cells[1:]
    for line in TEXT.splitlines()
    if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 7 and cells[0][:2] in ("fp", "tf", "bf")
}
OF_TORCH = {
    "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16,
    "fp8 e4m3": torch.float8_e4m3fn, "fp8 e5m2": torch.float8_e5m2,
}  # fmt: skip


@triton.jit
def sum_kernel(x_ptr, z_ptr, B: tl.constexpr):
    tl.store(z_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, B)), 0))


@triton.jit
def convert_kernel(x_ptr, z_ptr, B: tl.constexpr):
    lanes = tl.arange(0, B)
    tl.store(z_ptr + lanes, tl.load(x_ptr + lanes).to(z_ptr.dtype.element_ty))


@triton.jit
def dot_kernel(x_ptr, z_ptr, B: tl.constexpr):
    m = tl.arange(0, 32)
    x = tl.load(x_ptr + m[:, None] * 32 + m[None, :])
    tl.store(z_ptr + m[:, None] * 32 + m[None, :], tl.dot(x, x))


def ptx(kernel, x: str, z: str) -> str:
    signature = {"x_ptr": f"*{x}", "z_ptr": f"*{z}", "B": "constexpr"}
    return triton.compile(ASTSource(kernel, signature, {"B": 1024}), target=GPUTarget("cuda", 90, 32)).asm["ptx"]


def running_sum(term: float, dtype: torch.dtype) -> float:
    """Adds 4096 terms one after the other, and rounds each time."""
    total, one = torch.zeros(()), torch.tensor(term).to(dtype).float()
    for _ in range(4096):
        total = (total + one).to(dtype).float()
    return total.item()


def shown(number: float) -> float:
    return float(f"{number:.2g}")


def test_all_formats_have_a_row():
    assert list(ROWS) == ["fp32", "tf32", "bf16", "fp16", "fp8 e4m3", "fp8 e5m2", "fp4 e2m1"]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_follows_from_its_bits(name):
    layout, significant, largest, smallest, step, counted = ROWS[name]
    _, exponent, fraction = map(int, layout.split(" + "))
    assert int(significant) == fraction + 1 and int(counted) == 2 ** (fraction + 1)
    assert float(step) == float(f"{2.0**-fraction:.2g}") or float(step) == 2.0**-fraction
    assert shown(float(smallest)) == shown(2.0 ** (2 - 2 ** (exponent - 1)))
    if name in OF_TORCH:
        found = torch.finfo(OF_TORCH[name])
        assert shown(float(largest)) == shown(found.max) and shown(float(smallest)) == shown(found.smallest_normal)


@pytest.mark.parametrize("name", OF_TORCH)
def test_a_format_counts_as_far_as_its_row_says(name):
    least = int(ROWS[name][5])
    there = torch.tensor([least - 1.0, least, least + 1.0, least + 2.0], dtype=torch.float64).to(OF_TORCH[name])
    assert there.double().tolist() == [least - 1, least, least, least + 2]


def test_a_sum_of_ones_stands_still():
    assert [running_sum(1, dtype) for dtype in (torch.bfloat16, torch.float16)] == [256, 2048]


def test_sums_of_tenths_are_those_of_the_page():
    names = ["fp32", "fp16", "bf16", "fp8 e4m3", "fp8 e5m2"]
    found = [running_sum(0.1, OF_TORCH[name]) for name in names]
    assert f"| {' | '.join(f'{one:.6g}' for one in found)} |" in TEXT


def test_the_order_of_a_sum_counts():
    def added(*terms: float) -> float:
        total = torch.zeros((), dtype=torch.bfloat16)
        for term in terms:
            total = total + term
        return total.item()

    assert added(256, 1, 1, 1, 1) == 256 and added(1, 1, 1, 1, 256) == 260


def test_rounded_once_a_sum_of_tenths_in_bf16_is_right():
    tenths = torch.full((4096,), 0.1, dtype=torch.bfloat16)
    assert tenths[0].item() == 0.10009765625 and tenths.float().sum().bfloat16().item() == 410 == 4096 * 0.10009765625


def test_subnormal_numbers_go_on_below_the_smallest_normal_ones():
    least = torch.tensor([2.0**-24, 2.0**-9])
    assert least[0].half().item() == 2.0**-24 and least[1].to(torch.float8_e4m3fn).float().item() == 2.0**-9
    assert [f"{one:.0e}" for one in least.tolist()] == ["6e-08", "2e-03"]


def test_torch_saturates_e4m3_and_not_e5m2():
    assert torch.tensor(500.0).to(torch.float8_e4m3fn).float().item() == 448
    assert torch.tensor(70000.0).to(torch.float8_e5m2).float().item() == torch.inf


@pytest.mark.parametrize(("dtype", "instruction"), [("fp8e4nv", "satfinite.e4m3x2"), ("fp8e5", "satfinite.e5m2x2")])
def test_triton_saturates_both(dtype, instruction):
    assert re.findall(r"cvt\.rn\.(\S+)\.f32", ptx(convert_kernel, "fp32", dtype))[0] == instruction


@pytest.mark.parametrize(("dtype", "added"), [("bf16", "bf16"), ("fp16", "f16")])
def test_a_sum_is_made_in_the_dtype_of_its_argument(dtype, added):
    text = ptx(sum_kernel, dtype, dtype)
    assert re.search(rf"\badd\.{added}", text) and not re.search(r"\badd\.f32", text)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_a_product_of_tiles_is_summed_in_fp32(dtype):
    assert re.findall(r"mma\.sync\.\S+\.row\.col\.(f\d+)", ptx(dot_kernel, dtype, "fp32"))[0] == "f32"


def test_e2m1_has_eight_numbers_and_their_negatives():
    numbers = MXFP4Tensor(data=torch.zeros(16))
    numbers.data = torch.arange(16, dtype=torch.uint8)
    values = numbers.to(torch.float32).tolist()
    assert values == [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
    assert MXFP4Tensor(data=torch.tensor([0.24, 0.26])).to(torch.float32).tolist() == [0, 0.5]
