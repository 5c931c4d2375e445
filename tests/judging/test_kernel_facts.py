"""Facts of a kernel from the compiler's text of it: where it rounds, stores, asks for axes, and what its loads hold."""

from __future__ import annotations

import pytest

from grader import normal
from grader.course.trial import trial_of
from grader.ttir.kernel_facts import KernelFacts
from tests.conftest import exercise_of

FILE = """import torch
import triton
import triton.language as tl


@triton.jit
def helper(p, offsets, mask):
    return tl.load(p + offsets, mask=mask, other=1.0)


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
BODY


def masked_add(x, y):
    z = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, z, x.numel(), 5, BLOCK_N=64)
    return z
"""
FIRST = 1 + FILE[: FILE.index("BODY")].count("\n")
LOADS = ("x = tl.load(x_ptr + offsets, mask=mask, other=0.0)", "y = tl.load(y_ptr + offsets, mask=mask)")
STORE = "tl.store(z_ptr + offsets, z, mask=mask)"


@pytest.fixture
def facts(bench):
    """facts(*lines): the facts of a kernel whose body goes on with these lines. They begin at line FIRST."""

    def facts(*lines: str, dtype: str = "float32") -> KernelFacts:
        run = bench(FILE.replace("BODY", "\n".join(f"    {line}" for line in lines))).run
        trial = trial_of(exercise_of("01_masked_add"), "test_a_case", (normal(70), normal(70)), dtype)
        (found,) = run.kernels(trial, run.inputs(trial))
        return found

    return facts


@pytest.mark.parametrize(
    ("lines", "dtype", "found"),
    [
        (("w = (x + y).to(tl.float16) * y", "z = w + x"), "float32", (0, "fp16")),
        (("w = x * y", "w = w.to(tl.bfloat16)", "z = w.to(tl.float32) + x"), "float32", (1, "bf16")),
        (("w = (x * y).to(z_ptr.dtype.element_ty)", "z = w + w"), "float16", (0, "fp16")),
        (("z = (x.to(tl.float32) + y).to(tl.float16)",), "float16", None),
        (("z = x + y",), "float16", None),
        (("w = x + y", "z = w * x"), "float16", (0, "fp16")),
        (("z = x.to(tl.float32) + y",), "float16", None),
        (("z = x.to(tl.float32).to(tl.float16) + y",), "float16", None),
        (("z = tl.sum(x, 0) + y",), "float16", (0, "fp16")),
        (("z = tl.max(x, 0) + y",), "float16", None),
        (("z = tl.sum(x.to(tl.float16), 0) + y",), "float32", (0, "fp16")),
        (("w = tl.max(x.to(tl.float16), 0)", "z = x - w"), "float32", (0, "fp16")),
        (
            ("acc = tl.zeros((BLOCK_N,), tl.float32)", "for i in range(N):",
             "    acc = (acc + x).to(tl.float16).to(tl.float32)", "z = acc"), "float32", (2, "fp16"),
        ),
        (
            ("t = tl.reshape(x, (8, 8)).to(tl.float16)", "z = tl.reshape(tl.dot(tl.join(t, t).reshape(16, 8).trans(), "
             "tl.join(t, t).reshape(16, 8)), (64,))"), "float32", None,
        ),
    ],
)  # fmt: skip
def test_the_line_that_rounds_what_is_computed_with(facts, lines, dtype, found):
    roundings = facts(*LOADS, *lines, STORE, dtype=dtype).roundings
    line, short = found or (0, "")
    expected = [(FIRST + len(LOADS) + line, short)] if found else []
    assert [(one.line, one.dtype) for one in roundings] == expected


def test_stores_axes_and_strides(facts):
    step = "z_ptr += tl.program_id(1) * 0 + stride_x * 0"
    kernel = facts(*LOADS, "z = x + y", STORE, "unused = tl.program_id(2)", step, STORE)
    assert kernel.store_lines == [FIRST + 3, FIRST + 6] and not kernel.stores_only_in_loops
    assert 2 not in kernel.axes and kernel.axes[0] == FIRST - 2
    assert facts("for i in range(N):", "    tl.store(z_ptr + offsets, offsets, mask=mask)").stores_only_in_loops


def test_no_stride_is_used(facts):
    assert facts(*LOADS, "z = x + y", STORE).uses_no_stride
    assert not facts(LOADS[0].replace("offsets,", "offsets * stride_x,"), LOADS[1], "z = x + y", STORE).uses_no_stride
