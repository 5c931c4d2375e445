"""Lesson 02: comparisons without parentheses, `and` between masks, and strides of 1."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError

from tests.claims.compiled import RELEASE, compiled


@triton.jit
def chained_kernel(z_ptr, B: tl.constexpr):
    rows, cols = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    tl.store(z_ptr + rows * B + cols, 1.0, mask=rows < 3 & cols < 4)


@triton.jit
def and_kernel(z_ptr, B: tl.constexpr):
    rows, cols = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    tl.store(z_ptr + rows * B + cols, 1.0, mask=(rows < 3) and (cols < 4))


@triton.jit
def column_kernel(x_ptr, stride, B: tl.constexpr):
    cols = tl.arange(0, B)
    tl.store(x_ptr + cols * stride, tl.load(x_ptr + cols * stride) * 2)


def test_a_chained_comparison_is_refused_before_3_9_and_compiled_from_then_on():
    if RELEASE >= (3, 9):
        assert compiled(chained_kernel, "*fp32", B=16)["ptx"]
    else:
        with pytest.raises(CompilationError, match="simultaneous multiple comparison is not supported"):
            compiled(chained_kernel, "*fp32", B=16)


def test_and_between_masks_compiles_with_a_warning(tmp_path, monkeypatch):
    """In a cache of its own: nothing warns of what is compiled already."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert compiled(and_kernel, "*fp32", B=16)["ptx"]
    assert any("'and' and 'or' are deprecated for non-scalar tensors" in str(one.message) for one in caught)


INTERPRETED = """
import torch, triton, triton.language as tl
@triton.jit
def kernel(z_ptr, B: tl.constexpr):
    rows, cols = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    tl.store(z_ptr + rows * B + cols, 1, mask=(rows < 3) and (cols < 2))
z = torch.zeros(16, 16, dtype=torch.int32)
kernel[(1,)](z, B=16)
print(z.sum().item())
"""


def test_the_interpreter_takes_the_right_mask_of_an_and_and_forgets_the_left(tmp_path):
    (tmp_path / "kernel.py").write_text(INTERPRETED)
    command, environment = [sys.executable, "kernel.py"], os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == str(16 * 2), done.stderr


def test_a_stride_of_1_that_is_known_gives_wide_accesses_and_an_unknown_one_does_not():
    known = compiled(column_kernel, "*fp32", aligned=True, B=1024, stride=1)
    unknown = compiled(column_kernel, "*fp32 i32", aligned=True, B=1024)
    assert ".v4" in known["ptx"] and ".v4" not in unknown["ptx"]
