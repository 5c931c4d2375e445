"""Sentences that name the line to edit, the operands that meet or the argument at hand, whatever the exercise."""

from __future__ import annotations

import pytest

from grader import normal, output, with_some
from tests.conftest import ROOT

NONE = normal(8, 200) * 0
# x, residual, weight, eps: sums just beside the middle between two numbers of fp16, which a rounding moves.
OF_ROUNDING = with_some(0.51 * 2**-10, NONE + 0.49 * 2**-10), NONE + 1, normal(200), 1e-5


def changed(id: str, *changes: tuple[str, str]) -> str:
    text = (ROOT / f"solutions/{id}/{id[3:]}.py").read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_the_line_that_rounds_a_sum_is_told(bench):
    rounding = "    h = h.to(residual_ptr.dtype.element_ty).to(tl.float32)\n"
    text = changed("10_rms_norm", ("    tl.store(residual_ptrs, h", f"{rounding}    tl.store(residual_ptrs, h"))
    verdict = bench(text, "10_rms_norm").check(*OF_ROUNDING, dtypes=("float16",))
    assert verdict.lines[0].startswith("z is made from the sum after it was rounded to fp16: add in fp32, and")
    assert verdict.lines[1] == f"Line 22:  {rounding.strip()}" and verdict.line == 22


def test_the_line_that_adds_in_16_bits_is_told(bench):
    added = "tl.load(residual_ptrs, mask=mask, other=0.0).to(tl.float32) + x\n"
    narrow = "(tl.load(residual_ptrs, mask=mask, other=0.0) + x).to(tl.float32)\n"
    loaded = "x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=0.0)"
    text = changed("10_rms_norm", (added, narrow), (f"{loaded}.to(tl.float32)", loaded))
    verdict = bench(text, "10_rms_norm").check(*OF_ROUNDING, dtypes=("float16",))
    assert verdict.lines[0].startswith("z is made from the sum after it was rounded to fp16: add in fp32")
    assert verdict.lines[1] == f"Line 21:  h = {narrow.strip()}" and verdict.line == 21


SUM_OF_BLOCKS = """
import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, z_ptr, N, xm, xn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float16)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        ADDED
    tl.store(z_ptr + row, tl.sum(total.to(tl.float32), 0))


def row_sum(x):
    z = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    sum_kernel[(x.shape[0],)](x, z, x.shape[1], *x.stride(), BLOCK=64)
    return z
"""
LOADED = "tl.load(x_ptr + row * xm + cols * xn, mask=cols < N, other=0.0)"


@pytest.mark.parametrize("added", [f"total += {LOADED}", f"total = total + {LOADED}"])
def test_the_zeros_that_make_a_sum_one_of_16_bits_are_told(bench, added):
    text = SUM_OF_BLOCKS.replace("ADDED", added)
    verdict = bench(text, "07_row_sum").check(normal(16, 4000), dtypes=("float16",))
    assert verdict.line == 10 and "total = tl.zeros" in text.splitlines()[9]
    assert any(one.startswith("Line 10 makes total of fp16, so that line 13 adds up in fp16") for one in verdict.lines)


def test_warps_that_are_none_are_told_with_their_number(bench):
    text = changed("10_rms_norm", ("min(max(BLOCK_N // 256, 1), 16)", "min(16, BLOCK_N // 256)"))
    verdict = bench(text, "10_rms_norm").check(normal(8, 100), normal(8, 100), normal(100), 1e-5)
    assert verdict.lines[0] == (
        "The compiler refuses line 41: num_warps is 0 in this call, and it has to be 1, 2, 4, 8, 16 or 32."
    )


def test_the_layout_of_a_view_is_told_with_the_argument_of_the_line(bench):
    made = "(torch.empty((M, N), dtype=gate.dtype, device=gate.device) for _ in range(3))"
    text = changed("08_swiglu", (made, "(torch.empty_like(gate) for _ in range(3))"))
    verdict = bench(text, "08_swiglu").check(normal(17, 70), normal(17, 70).transposed(), normal(17, 70))
    assert verdict.lines[1] == (
        "torch.empty_like and its like keep the layout of a transposed tensor: torch.empty(gate.shape, "
        "dtype=gate.dtype, device=gate.device) is contiguous."
    )


def test_the_line_that_makes_fp16_of_a_sum_is_told(bench):
    text = changed(
        "19_matmul_epilogue", ("acc += bias[None, :].to(tl.float32)", "acc = acc.to(tl.float16) + bias[None, :]")
    )
    verdict = bench(text, "19_matmul_epilogue").check(normal(64, 64), normal(64, 64), normal(64))
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "acc.to(tl.float16)" in one)
    said = f"Line {line} works in fp16, or rounds to it on the way: what has to keep its digits stays in fp32."
    assert said in verdict.lines and verdict.line == line, verdict.lines


def test_what_meets_is_told_with_its_shapes(bench):
    text = changed("25_flash_attention", ("acc * factor[:, None]", "acc * factor"))
    verdict = bench(text, "25_flash_attention").check(normal(1, 1, 64, 32), normal(1, 1, 64, 32), normal(1, 1, 64, 32))
    assert verdict.lines[1] == (
        "acc is [128, 32], factor is [128]: a block of 128 numbers meets a tile as a row, [1, 128]."
    )


def test_the_line_of_an_address_without_a_stride_that_the_kernel_was_given_is_told(bench):
    text = changed("02_strided_blocks", ("x_ptr + rows * stride_xm + cols * stride_xn", "x_ptr + rows * N + cols"))
    verdict = bench(text, "02_strided_blocks").check(normal(37, 153).transposed(), output(37, 153))
    assert verdict.id == "stride-ignored" and "x_ptr + rows * N + cols" in text.splitlines()[verdict.line - 1]
    assert f"Line {verdict.line}:  tile = tl.load(x_ptr + rows * N + cols, mask=mask)" in verdict.lines


def test_the_line_of_offsets_that_a_variable_holds_is_told(bench):
    inline = "    tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)\n"
    held = "    from_here = rows * N + cols\n    tile = tl.load(x_ptr + from_here, mask=mask)\n"
    text = changed("02_strided_blocks", (inline, held))
    verdict = bench(text, "02_strided_blocks").check(normal(37, 153).transposed(), output(37, 153))
    assert verdict.id == "stride-ignored" and "from_here = rows" in text.splitlines()[verdict.line - 1], verdict.lines


def test_no_line_of_a_kernel_is_blamed_for_a_stride_that_it_was_not_given(bench):
    text = changed("02_strided_blocks", ("x.stride(0), x.stride(1), z.stride(0)", "N + 0, 1, z.stride(0)"))
    verdict = bench(text, "02_strided_blocks").check(normal(37, 153).transposed(), output(37, 153))
    assert verdict.id == "stride-ignored" and not verdict.line, verdict.lines


def test_no_line_of_a_kernel_is_blamed_for_the_stride_of_another_tensor(bench):
    """The stride that x needs is handed over, for z, and the kernel uses all that it gets."""
    text = changed("09_layer_norm", ("M, N, x.stride(0)", "M, N, bias.stride(0)"))
    verdict = bench(text, "09_layer_norm").check(normal(12, 64), normal(64), normal(64), 1e-5)
    assert verdict.id == "stride-ignored" and not verdict.line, verdict.lines


@pytest.mark.parametrize(("returned", "line"), [("M", "    return M"), ("x", "    return x")])
def test_a_return_of_what_is_no_result_is_told_with_its_line(bench, returned, line):
    text = changed("07_row_sum", ("    return z", f"    return {returned}"))
    verdict = bench(text, "07_row_sum").check(normal(12, 64))
    assert verdict.id == "wrong-result-type" and text.splitlines()[verdict.line - 1] == line, verdict.lines


def test_a_return_is_not_blamed_for_the_memory_of_its_variable(bench):
    text = changed("07_row_sum", ("    z = torch.empty(M, dtype=x.dtype, device=x.device)", "    z = x[:, 0]"))
    verdict = bench(text, "07_row_sum").check(normal(12, 64))
    assert verdict.id == "wrong-result-type" and "return" not in verdict.lines[-1], verdict.lines
