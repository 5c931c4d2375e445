"""The interpreter's shortcuts: all are taken in this release of Triton, and what follows is as without them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

TYPES = """
import triton.language as tl
from triton.runtime import interpreter

D = tl.dtype("fp64")  # equal to tl.float64, another object
HALF = tl.float16
ELEMENTS = (tl.float32, tl.float64, D, tl.int1, tl.uint8, tl.bfloat16, tl.pointer_type(HALF), tl.pointer_type(HALF, 3),
            tl.pointer_type(HALF, const=True), tl.pointer_type(tl.pointer_type(HALF)))
SHAPES = ([4], [4, 8], [8, 4], [1], [tl.constexpr(16)], [16.0], [True], [3], [], ["4"], (4,), 4, {4: 0}, tl.tuple([4]))

def attempt(make):
    try:
        return make()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def told():
    found = []
    for element in ELEMENTS:
        pointer = getattr(element, "address_space", None), getattr(element, "const", None)
        found.append(str([interpreter._get_np_dtype(element), pointer, vars(tl.tensor("handle", element)).values()]))
        for shape in 2 * SHAPES:
            block = attempt(lambda: tl.block_type(element_ty=element, shape=shape))
            if isinstance(block, str):
                found.append(block)
                continue
            tensor = tl.tensor(handle="handle", type=block)
            same = block.element_ty is element, tensor.dtype is element, tensor.type is block, tensor.handle
            found.append(str([same, block, [*block.shape], block.numel, tensor.shape, tensor.numel, tensor.dtype]))
            found.append(str(interpreter._get_np_dtype(block)))
            for other in ELEMENTS:
                relative = block.with_element_ty(other)
                found.append(str([relative.element_ty is other, relative, relative.numel, relative == block]))
    pairs = [(one, other) for one in ELEMENTS for other in (*ELEMENTS, tl.constexpr(D), "fp64", None)]
    return found + [[one == other, one != other] for one, other in pairs]
"""
KERNEL = """
import torch, triton, triton.language as tl

@triton.jit
def larger(a, b):
    return tl.maximum(a, b)

@triton.jit
def kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :])
    x = x - tl.reduce(x, 1, larger)[:, None] - columns - 2 * x + (x - 1)
    tl.store(y_ptr + rows[:, None] * N + columns[None, :], tl.where(rows[:, None] < 2, x, tl.cdiv(N, 3)))

def told():
    x = torch.arange(32.0).view(4, 8) % 7
    y = torch.empty_like(x)
    load, maximum = tl.load, tl.core.tensor.__add__
    kernel[(1,)](x, y, 4, 8)
    return [y.tolist(), tl.load is load, tl.core.tensor.__add__ is maximum]
"""
OPERATIONS = """
import itertools, operator, warnings
import numpy as np, torch, triton, triton.language as tl
from triton.runtime import interpreter

warnings.simplefilter("ignore")
np.seterr(all="ignore")
DTYPES = [getattr(tl, name) for name in (
    "int1 int16 int32 int64 uint8 uint32 float16 bfloat16 float32 float64 float8e5 float8e4b8".split())]
POINTERS = [tl.pointer_type(tl.float32), tl.pointer_type(tl.bfloat16), tl.pointer_type(tl.float32, const=True)]
SHAPES = ([], [4], [2, 4], [2, 1])
NUMBERS = (0, 1, -1, 3, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**40, 2**64, 0.0, -0.0, 0.5, -1e-40, 1e300,
           float("inf"), float("nan"), True, False, tl.constexpr(2), tl.constexpr(0.5), np.int64(3), np.float32(0.25),
           None, "1")
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.lt, operator.and_]

def tensor(dtype, shape):
    size = int(np.prod(shape))
    data = (np.arange(size) % 5 + 1).astype(interpreter._get_np_dtype(dtype)).reshape(shape or [1])
    return tl.tensor(interpreter.TensorHandle(data, dtype), tl.block_type(dtype, shape) if shape else dtype)

def result_of(function, *operands):
    try:
        made = function(*operands)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(made, tl.tensor):
        return str(made)
    data = made.handle.data
    same = [made is operand for operand in operands]
    types = [made.type, made.dtype, [*made.shape], made.numel, made.handle.dtype]
    return str([types, data.dtype, data.shape, data.tolist(), same])

def all_operations():
    rights = [tensor(dtype, shape) for dtype in DTYPES + POINTERS for shape in ([], [2, 4])]
    for of_left, shape in itertools.product(DTYPES + POINTERS, SHAPES):
        left = tensor(of_left, shape)
        for right, function in itertools.product(rights, OPERATORS):
            found.append(result_of(function, left, right))
        for number, function in itertools.product(NUMBERS if len(shape) != 1 else (), OPERATORS):
            found.append(result_of(function, left, number))
            found.append(result_of(function, number, left))
        for dtype in DTYPES:
            found.append(result_of(lambda: left.to(dtype)))
        found.append(result_of(lambda: tl.where(left, left, 1)))
        found.append(result_of(lambda: tl.maximum(left, 0)))
        found.append(result_of(lambda: tl.load(left, wrong=1)))
        found.append(result_of(lambda: tl.sum(left, 0)))

@triton.jit
def kernel(x_ptr):
    all_operations()

found = []

def told():
    found.clear()
    kernel[(1,)](torch.zeros(4, device="cuda"))
    right = sum("Error" not in one for one in found)
    assert right > 10_000 and len(found) - right > 10_000
    return found[:]
"""
OTHER_RELEASE = """
import triton.language as tl

wrap = tl.tensor.__init__
tl.tensor.__init__ = lambda self, handle, type, more=None: wrap(self, handle, type)
"""
COMPARED = """
import json
from grader.child.interpreter import apply_fixes
from grader.child.shortcuts import take_shortcuts

apply_fixes()
before = told()
taken = take_shortcuts()
print(json.dumps([taken, before, told()]))
"""


@pytest.mark.parametrize("what", [TYPES, OPERATIONS, KERNEL], ids=["types", "operations", "a kernel"])
def test_all_is_as_without_them(what, tmp_path):
    taken, before, after = compared(what, tmp_path)
    assert taken == ["fast_device_calls", "known_types", "known_members", "plain_values_stay", "alike_operands_stay"]
    differing = [(was, now) for was, now in zip(before, after, strict=True) if was != now]
    assert not differing, differing[:5]


def test_one_that_does_not_fit_a_release_is_not_taken(tmp_path):
    taken, before, after = compared(OTHER_RELEASE + KERNEL, tmp_path)
    assert taken == ["fast_device_calls", "known_members", "plain_values_stay", "alike_operands_stay"]
    assert after == before


def compared(what: str, tmp_path: Path) -> list:
    """Which shortcuts were taken, and what was told before and after."""
    script = tmp_path / "script.py"  # Triton reads a kernel's source
    script.write_text(what + COMPARED)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
