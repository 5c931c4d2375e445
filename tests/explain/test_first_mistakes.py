"""What beginners write first and the compiler refuses: it is named by what it is, with its line."""

from __future__ import annotations

import pytest

from grader import normal

ADD = """import torch
import triton
import triton.language as tl


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    i = tl.program_id(0)
    offs = i * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offs < N
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(z_ptr + offs, x + y, mask=mask)


def masked_add(x, y):
    z, many = torch.empty_like(x), x.numel()
    masked_add_kernel[(triton.cdiv(many, 1024),)](x, y, z, many, BLOCK_N=1024)
    return z
"""
LOAD = "tl.load(x_ptr + offs, mask=mask)"
MASK = "mask = offs < N"
STORE = "tl.store(z_ptr + offs, x + y, mask=mask)"
CANNOT = "is an address and cannot be indexed: tl.load({0} + offsets) reads what lies there, and tl.store({0} + offsets"
MAXIMUM = "tl.max takes a block and the number of an axis, as in tl.max(x, 0): the larger of two values is tl.maximum("
ONE = "{} is one address, and the value for it is a block: a block is stored at a block of addresses, {} + offsets"
MASKED = "{} is one address, and its mask or `other` is a block: a block is loaded or stored at a block of addresses"
CONDITION = "`if` and `while` need one value for the whole program, and this is a tile: use tl.where, or a mask."
PICKS = "an index picks no element of a tile: mask and reduce"

OF_ADDITION = {
    "x_ptr[i]": (LOAD, "x_ptr[i]", f"x_ptr {CANNOT.format('x_ptr')}"),
    "x_ptr[0]": (LOAD, "x_ptr[0]", f"x_ptr {CANNOT.format('x_ptr')}"),
    "x_ptr[:]": (LOAD, "x_ptr[:]", f"x_ptr {CANNOT.format('x_ptr')}"),
    "addresses": (LOAD, "(x_ptr + offs)[i]", f"x_ptr + offs {CANNOT.format('x_ptr + offs')}"),
    "z_ptr[offs] =": (STORE, "z_ptr[offs] = x + y", f"z_ptr {CANNOT.format('z_ptr')}"),
    "z_ptr[offs] +=": (STORE, "z_ptr[offs] += x + y", f"z_ptr {CANNOT.format('z_ptr')}"),
    "x[i]": (STORE, STORE.replace("x + y", "x[i] + y"), PICKS),
    "x[0]": (STORE, STORE.replace("x + y", "x[0] + y"), PICKS),
    "x[0] =": (STORE, "x[0] = 1.0", "a tile cannot be assigned to in parts"),
    "tl.max of two": (STORE, STORE.replace("x + y", "tl.max(x, y)"), MAXIMUM),
    "x.max(y)": (STORE, STORE.replace("x + y", "x.max(y)"), MAXIMUM),
    "tl.min of two": (STORE, STORE.replace("x + y", "tl.min(x, axis=y)"), "tl.min takes a block and the number of"),
    "store at z_ptr": (STORE, "tl.store(z_ptr, x + y, mask=mask)", ONE.format("z_ptr", "z_ptr")),
    "store at z_ptr + i": (STORE, "tl.store(z_ptr + i, x + y)", ONE.format("z_ptr + i", "z_ptr + i")),
    "atomic_add at z_ptr": (STORE, "tl.atomic_add(z_ptr, x + y)", ONE.format("z_ptr", "z_ptr")),
    "load at x_ptr": (LOAD, "tl.load(x_ptr, mask=mask)", MASKED.format("x_ptr")),
    "store one value": (STORE, "tl.store(pointer=z_ptr, value=1.0, mask=mask)", MASKED.format("z_ptr")),
    "BLOCK for BLOCK_N": (MASK, "mask = offs < BLOCK", "BLOCK is not defined. Is BLOCK_N meant?"),
    "n for N": (MASK, "mask = offs < n", "n is not defined. Is N meant?"),
    "a name of nowhere": (MASK, "mask = offs < count", "count is not defined: nothing in the file is called so."),
    "a name of the host": (MASK, "mask = offs < many", "many is not known there: it belongs to another part of the"),
    "math.sqrt": (MASK, "mask = offs < math.sqrt(4)", "the file does not import math: add `import math` at its top."),
    "Python's sum": (STORE, STORE.replace("x + y", "sum(x)"), "sum is not known there: it is a built-in of Python"),
    "one path": (
        STORE,
        f"if i > 0:\n        one = 1\n    {STORE.replace('x + y', 'x + one')}",
        "one is not known there: the kernel assigns it in a branch or a loop that may be left out, or only further",
        2,
    ),
    "a if x > 0 else b": (STORE, STORE.replace("x + y", "x if x > 0 else y"), CONDITION),
    "while mask": (STORE, f"while mask:\n        x += 1\n    {STORE}", CONDITION),
    "tl.sum of two": (STORE, STORE.replace("x + y", "tl.sum(x, y)"), "tl.sum wants the number of an axis, as in"),
}


def refused(bench, old: str, new: str):
    """The first line that is said of this change, and the line of the file that it is said of."""
    assert ADD.count(old) == 1
    verdict = bench(ADD.replace(old, new)).check(normal(2048), normal(2048))
    assert verdict.id == "does-not-compile"
    return verdict.lines[0], verdict.line, ADD[: ADD.index(old)].count("\n") + 1


@pytest.mark.parametrize("name", OF_ADDITION)
def test_a_first_mistake_is_named_with_its_line(bench, name):
    old, new, said, *below = OF_ADDITION[name]
    text, told, line = refused(bench, old, new)
    line += sum(below)
    assert told == line and text.startswith(f"The compiler refuses line {line}: {said}")
