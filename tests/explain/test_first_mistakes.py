"""What beginners write first and the compiler refuses: it is named by what it is, with its line."""

from __future__ import annotations

import re

import pytest

from grader import leading, normal
from grader.explain.verdict import FAIL, PASS
from tests.conftest import ROOT, mutant
from tests.explain.first_mistakes import BEFORE_39

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
NO_IN = "a kernel has no `{}`: compare with each, as in (a == b) | (a == c)."
NUMBER = "i = tl.program_id(0)"
NOT_LOADED = "an address stands where numbers are wanted: tl.load(address) reads what lies there."
APART = "an argument stands where none belongs. Offsets are added to an address: tl.load(x_ptr + offsets, mask=mask), "
OF_NUMBERS = "the mask holds numbers, and it has to say of each lane whether it takes part: offsets < N does."
NOT_CALLED = "a function stands here and is not called: with its arguments, as in tl.program_id(0), it gives a value."
NO_MATH = "the file does not import math, which computes with Python's numbers: for a value of the kernel it is tl."
NO_LIST = "a kernel has no list that grows, or that a tile becomes. A tile holds many numbers as it is, and what a"
PICKS = "an index picks no element of a tile: mask and reduce"

OF_ADDITION = {
    "x_ptr[i]": (LOAD, "x_ptr[i]", f"x_ptr {CANNOT.format('x_ptr')}"),
    "x_ptr[0]": (LOAD, "x_ptr[0]", f"x_ptr {CANNOT.format('x_ptr')}"),
    "x_ptr[:]": (
        (LOAD, "x_ptr[:]", "x is an address, and here a number is wanted: tl.load(x) reads what lies there.", 2)
        if BEFORE_39  # x_ptr[:] is x_ptr there
        else (LOAD, "x_ptr[:]", f"x_ptr {CANNOT.format('x_ptr')}")
    ),
    "addresses": (LOAD, "(x_ptr + offs)[i]", f"x_ptr + offs {CANNOT.format('x_ptr + offs')}"),
    "z_ptr[offs] =": (STORE, "z_ptr[offs] = x + y", f"z_ptr {CANNOT.format('z_ptr')}"),
    "z_ptr[offs] +=": (STORE, "z_ptr[offs] += x + y", f"z_ptr {CANNOT.format('z_ptr')}"),
    "x[i]": (STORE, STORE.replace("x + y", "x[i] + y"), PICKS),
    "x[0]": (STORE, STORE.replace("x + y", "x[0] + y"), PICKS),
    "x[0] =": (STORE, "x[0] = 1.0", "neither a tile nor a list can be assigned to in parts: use tl.where."),
    "append": (STORE, f"sums = []\n    sums.append(x + y)\n    {STORE}", NO_LIST, 1),
    "extend": (STORE, f"sums = [x]\n    sums.extend([y])\n    {STORE}", NO_LIST, 1),
    "a list in a loop": (
        LOAD,
        f"0\n    xs = []\n    for _ in range(1):\n        xs += [{LOAD}]\n    x = xs[0]",
        NO_LIST,
        4,
    ),
    "list()": (STORE, STORE.replace("x + y", "list(x + y)"), NO_LIST),
    "item of a list": (
        LOAD,
        f"{LOAD}\n    xs = [0.0, 0.0]\n    xs[0] = x",
        "neither a tile nor a list can be assigned to in parts",
        2,
    ),
    "comprehension": (
        "tl.arange(0, BLOCK_N)",
        "[i for i in range(BLOCK_N)]",
        "a kernel cannot contain a list comprehension. Numbers",
    ),
    "a list in a sum": (
        STORE,
        STORE.replace("x + y", "x + [1.0, 2.0]"),
        "a list or tuple stands where one block, or"
        if BEFORE_39
        else "a kernel has no list that grows, or that a tile",
    ),
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
    "math of a constant": (
        MASK,
        "mask = offs < math.sqrt(BLOCK_N)",
        "the file does not import math: add `import math`",
    ),
    "math of a tile": (STORE, STORE.replace("x + y", "math.exp(x)"), f"{NO_MATH}exp."),
    "math of a sum": (STORE, STORE.replace("x + y", "x * math.sqrt(tl.sum(y, 0))"), f"{NO_MATH}sqrt."),
    "np.exp": (STORE, STORE.replace("x + y", "np.exp(x)"), "np is not defined. In a kernel it is tl.exp."),
    "F.softmax": (STORE, STORE.replace("x + y", "F.softmax(x, 0)"), "F is not defined. In a kernel it is tl.softmax."),
    "the values of a maximum": (
        STORE,
        STORE.replace("x + y", "x - tl.max(y, 0).values"),
        "values of a kernel have no .values.",
    ),
    "a method of an address": (MASK, "mask = offs < x_ptr.size(0)", "values of a kernel have no .size."),
    "a method that is not called": (STORE, STORE.replace("x + y", "x - y.max"), NOT_CALLED),
    "a method that is stored": (STORE, STORE.replace("x + y", "y.sum"), NOT_CALLED),
    "a method in a product": (STORE, STORE.replace("x + y", "x.exp * y"), NOT_CALLED),
    "Python's sum": (STORE, STORE.replace("x + y", "sum(x)"), "sum is not known there: it is a built-in of Python"),
    "one path": (
        STORE,
        f"if i > 0:\n        one = 1\n    {STORE.replace('x + y', 'x + one')}",
        "one is not known there: the kernel assigns it in a branch or a loop that may be left out, or only further",
        2,
    ),
    "a if x > 0 else b": (STORE, STORE.replace("x + y", "x if x > 0 else y"), CONDITION),
    "while mask": (STORE, f"while mask:\n        x += 1\n    {STORE}", CONDITION),
    "axis 1 of 1": (
        STORE,
        STORE.replace("x + y", "x - tl.max(y, 1)"),
        "there is no axis 1 here: the only one is axis 0",
    ),
    "axis 2 of 2": (
        STORE,
        STORE.replace("x + y", "tl.max(y[:, None], 2)"),
        "there is no axis 2 here: there are 2 axes,",
    ),
    "axis 0 of 0": (STORE, STORE.replace("x + y", "tl.max(i, 0)"), "there is no axis 0 here: this is one value"),
    "tl.zeros": (STORE, STORE.replace("x + y", "x + tl.zeros((BLOCK_N,))"), "tl.zeros wants a dtype too, as in tl.ze"),
    "tl.float32()": (STORE, STORE.replace("x + y", "x + tl.float32(float('inf'))"), "a dtype is not called: x.to(tl."),
    "in": (STORE, f"if x.dtype in [tl.float16]:\n        x += 1\n    {STORE}", NO_IN.format("in")),
    "not in": (STORE, f"if x.dtype not in [tl.float16]:\n        x += 1\n    {STORE}", NO_IN.format("not in")),
    "no load": (
        STORE,
        STORE.replace("x + y", "x_ptr + y_ptr"),
        "x_ptr and y_ptr are addresses, and here numbers are wanted: tl.load(x_ptr) reads what lies there.",
    ),
    "addresses are added": (STORE, STORE.replace("x + y", "(x_ptr + offs) + (y_ptr + offs)"), "x_ptr + offs and y_ptr"),
    "tl.maximum of addresses": (STORE, STORE.replace("x + y", "tl.maximum(x_ptr + offs, y)"), NOT_LOADED),
    "tl.exp of addresses": (STORE, STORE.replace("x + y", "tl.exp(x_ptr + offs)"), NOT_LOADED),
    "tl.sum of addresses": (STORE, STORE.replace("x + y", "tl.sum(x_ptr + offs, 0)"), NOT_LOADED),
    "addresses are stored": (STORE, STORE.replace("x + y", "x_ptr + offs"), NOT_LOADED),
    "addresses are compared": (MASK, "mask = x_ptr < N", NOT_LOADED),
    "minus an address": (STORE, STORE.replace("x + y", "-(y_ptr + offs)"), NOT_LOADED),
    "offsets apart": (LOAD, "tl.load(x_ptr, offs, mask=mask)", APART),
    "offsets apart in tl.store": (STORE, "tl.store(z_ptr, offs, x + y, mask=mask)", APART),
    "offsets apart, by places": (STORE, "tl.store(z_ptr, offs, x + y, mask)", APART),
    "a mask of numbers": (STORE, STORE.replace("=mask", "=N - offs"), OF_NUMBERS),
    "a load's mask of numbers": (LOAD, LOAD.replace("=mask", "=offs"), OF_NUMBERS),
    "a load's mask is a number": (LOAD, "tl.load(x_ptr + offs, N)", OF_NUMBERS),
    "tl.program_id": (NUMBER, "i = tl.program_id", NOT_CALLED),
    "0 + tl.program_id": (NUMBER, "i = 0 + tl.program_id", NOT_CALLED),
    "i + tl.num_programs": (NUMBER, f"{NUMBER} + tl.num_programs", NOT_CALLED),
    "tl.program_id[0]": (NUMBER, "i = tl.program_id[0]", NOT_CALLED),
    "tl.cdiv": (NUMBER, "i = tl.cdiv", NOT_CALLED),
    "x - tl.max": (STORE, STORE.replace("x + y", "x - tl.max"), NOT_CALLED),
    "tl.sum of two": (STORE, STORE.replace("x + y", "tl.sum(x, y)"), "tl.sum wants the number of an axis, as in"),
}


def refused(bench, old: str, new: str):
    """The first line that is said of this change, and the line of the file that it is said of."""
    assert ADD.count(old) == 1
    verdict = bench(ADD.replace(old, new)).check(normal(2048), normal(2048))
    assert verdict.id == "does-not-compile"
    return verdict.lines[0], verdict.line, ADD[: ADD.index(old)].count("\n") + 1


IN_LOOPS = {
    "replaced": ("x = offs", "x begins the loop of line {loop} as fp32 [1024], and here it becomes int32 [1024]: a", 1),
    "a number": ("x = 1.0", "x begins the loop of line {loop} as fp32 [1024], and here it becomes fp32: a", 1),
    "a pointer": (
        "x_ptr = x_ptr + offs",
        "x_ptr begins the loop of line {loop} as pointer to fp32, and here it beco",
        1,
    ),
    "twice": (
        "x += y\n        x = offs",
        "x begins the loop as fp32 [1024] and leaves it as int32 [1024]: a variable",
        0,
    ),
}


@pytest.mark.parametrize("name", IN_LOOPS)
def test_a_variable_that_a_loop_changes_is_told_where_it_does(bench, name):
    statement, said, below = IN_LOOPS[name]
    text, told, line = refused(bench, STORE, f"for k in range(N):\n        {statement}\n    {STORE}")
    assert told == line + below
    assert text.startswith(f"The compiler refuses line {told}: {said.format(loop=line)}")


@pytest.mark.parametrize(("statement", "replaces"), [("x = offs", True), ("x = x.to(tl.float16)", False)])
def test_that_a_loop_replaces_a_variable_is_told(bench, statement, replaces):
    text, _, _ = refused(bench, STORE, f"for k in range(N):\n        {statement}\n    {STORE}")
    assert text.endswith("Each iteration replaces x: += adds to what it was.") == replaces


@pytest.mark.parametrize("name", OF_ADDITION)
def test_a_first_mistake_is_named_with_its_line(bench, name):
    old, new, said, *below = OF_ADDITION[name]
    text, told, line = refused(bench, old, new)
    line += sum(below)
    assert told == line and text.startswith(f"The compiler refuses line {line}: {said}")


A_SHAPE = "A number is wanted in line 18, and here it is a shape, as x.shape and x.size() are: x.numel() counts all"
SHAPES = {
    "x.shape": A_SHAPE,
    "x.size()": A_SHAPE,
    "x.shape // 1024": A_SHAPE.replace("18", "17"),
    "x.shape()": "A shape is no function in line 17: M, N = x.shape takes its numbers, and x.shape[0] is one of them.",
}


@pytest.mark.parametrize("size", SHAPES)
def test_a_shape_in_the_place_of_a_number_is_told(bench, size):
    assert ADD.count("x.numel()") == 1
    verdict = bench(ADD.replace("x.numel()", size)).check(normal(2048), normal(2048))
    assert verdict.lines[0].startswith(SHAPES[size])


def test_a_kernel_s_name_in_other_letters_is_told_in_the_line_of_the_kernel(bench):
    verdict = bench(ADD.replace("masked_add_kernel", "加法内核")).check(normal(2048), normal(2048))
    assert verdict.id == "does-not-compile" and verdict.line == 7
    said = "The compiler refuses line 7: a kernel's name is made of a to z, A to Z, 0 to 9 and _, and this one is "
    assert verdict.lines[:2] == [
        f"{said}加法内核.",
        "Line 7:  def 加法内核(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):",
    ]


def test_all_other_names_may_be_in_other_letters(bench):
    text = ADD
    for name, other in {"mask": "掩码", "offs": "下标", "x_ptr": "甲指针", "BLOCK_N": "块", "many": "总数"}.items():
        text = re.sub(rf"\b{name}\b(?!=mask)", other, text)
    text = text.replace("掩码=", "mask=")
    assert bench(text).check(normal(2500), normal(2500)).outcome == "pass"


def test_inline_assembly_is_told_with_its_line(bench):
    assembly = (
        'tl.inline_asm_elementwise("add.f32 $0, $1, $2;", "=f,f,f", [x, y], dtype=tl.float32, is_pure=True, pack=1)'
    )
    verdict = bench(ADD.replace("x + y", assembly)).check(normal(2048), normal(2048))
    assert verdict.line == 13 and verdict.lines[1].startswith("Line 13:  tl.store(")
    said = "The kernel uses what is not judged here (line 13): inline assembly. What tl's functions compute is."
    assert verdict.lines[0] == said


def test_a_pointer_s_load_of_a_descriptor_is_told_as_that(bench):
    text = (ROOT / "solutions/23_descriptor_matmul/descriptor_matmul.py").read_text(encoding="utf-8")
    assert text.count("a_desc.load([m, k])") == 1
    sizes = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
    for added in ("tl.load(a_desc + [m, k])", "tl.load(m + a_desc)", "tl.load(a_desc)", "a_desc + 1"):
        verdict = bench(text.replace("a_desc.load([m, k])", added), "23_descriptor_matmul").check(
            normal(64, 64), normal(64, 64), **sizes
        )
        line = text[: text.index("a_desc.load([m, k])")].count("\n") + 1
        said = f"The compiler refuses line {line}: a descriptor is no pointer and no tile: x.load([row, column]) loads"
        assert verdict.line == line and verdict.lines[0].startswith(said)


def test_an_accumulator_of_another_dtype_than_the_product_is_told_with_both(bench):
    text = (ROOT / "solutions/05_grouped_matmul/grouped_matmul.py").read_text(encoding="utf-8")
    zeros, dot = "dtype=tl.float32)", "tl.dot(a, b, acc,"
    assert text.count(zeros) == text.count(dot) == 1
    line = text[: text.index(dot)].count("\n") + 1
    text = text.replace(zeros, "dtype=tl.float16)").replace(dot, "tl.dot(a, b, acc, out_dtype=tl.float32,")
    verdict = bench(text, "05_grouped_matmul").check(normal(64, 64), normal(64, 64))
    said = f"The compiler refuses line {line}: tl.dot(a, b, acc) makes its sums in fp32, and this accumulator is fp16"
    assert verdict.line == line and verdict.lines[0].startswith(said)


# ---- kernels with parameters that are given by name, or by place, alone ----------------------------------------------

SIGNATURE = "(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr)"
LAUNCH = "(x, y, z, many, BLOCK_N=1024)"


def launched(bench, signature: str, launch: str):
    """Returns the verdict on the addition whose kernel has this signature and gets these arguments."""
    text = ADD.replace(SIGNATURE, signature).replace(LAUNCH, launch)
    assert signature in text and launch in text
    return bench(text).check(normal(2048), normal(2048))


def test_a_parameter_that_is_given_by_name_alone_is_known(bench):
    verdict = launched(bench, "(x_ptr, y_ptr, z_ptr, *, N, BLOCK_N: tl.constexpr)", "(x, y, z, N=many, BLOCK=1024)")
    assert verdict.lines[0] == (
        "The kernel's BLOCK_N is not given by the launch in line 18, which passes BLOCK: the kernel has no parameter "
        "of that name."
    )


def test_a_size_is_no_slip_where_a_stride_is_asked_for(bench):
    """N is the stride of a contiguous tensor's rows: the mistake of this softmax is another one."""
    verdict = bench(mutant("03_softmax/chunk_of_minus_infinity"), "03_softmax").check(
        leading(float("-inf"), normal(3, 400))
    )
    assert verdict.outcome == FAIL and not any("to the parameter stride_xm" in line for line in verdict.lines)


def test_an_argument_that_belongs_to_a_parameter_given_by_name_alone_is_misplaced(bench):
    signature = "(x_ptr, y_ptr, *, z_ptr, N, BLOCK_N: tl.constexpr)"
    verdict = launched(bench, signature, "(x, z, z_ptr=y, N=many, BLOCK_N=1024)")
    assert verdict.lines[0].startswith("The launch in line 18 gives z to the parameter y_ptr: arguments go to")


def test_arguments_are_counted_from_the_parameters_that_are_given_by_place_alone(bench):
    verdict = launched(bench, "(x_ptr, /, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr)", LAUNCH)
    assert verdict.outcome == "fail"  # Triton 3.9 takes no such parameters
    assert not verdict.lines[0].startswith("The launch")


def test_a_global_is_read_as_a_constexpr_and_refused_with_the_annotation_alone(bench):
    """The advice holds on every release: the value has to be a tl.constexpr."""
    scaled = ADD.replace("x + y", "(x + y) * SCALE")
    right = scaled.replace("@triton.jit", "SCALE = tl.constexpr(1.0)\n\n\n@triton.jit")
    assert bench(right).check(normal(64), normal(64)).outcome == PASS
    annotated = scaled.replace("@triton.jit", "SCALE: tl.constexpr = 1.0\n\n\n@triton.jit")
    verdict = bench(annotated).check(normal(64), normal(64))
    assert (
        verdict.outcome == FAIL
        and "SCALE = tl.constexpr(...) where it is set: an annotation is not" in verdict.lines[0]
    )


def test_an_infinity_of_torch_is_said_as_a_kernel_says_it(bench):
    verdict = bench(ADD.replace(STORE, STORE.replace("x + y", "x + torch.inf"))).check(normal(2048), normal(2048))
    assert verdict.lines[0].endswith('torch.inf is not allowed in a kernel. In a kernel it is float("inf").')
    right = STORE.replace("x + y", 'x + y + float("inf") * 0 * (x - x)')
    assert bench(ADD.replace(STORE, right)).check(normal(2048), normal(2048)).id != "not-allowed"
