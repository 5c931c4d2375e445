"""Messages about refused kernels, made from values that the compiler held and its own message leaves out.

A pointer that is indexed, and an axis that is no number, end in a message of Triton's that speaks of a missing
@triton.jit. The frames that raised it still hold the values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import FrameType

import triton.language as tl

from grader.front_end.called_functions import call_in_other_words
from grader.front_end.triton_text_api import base_value, core, tensor_descriptor_base

WITH_AXIS = frozenset({"argmax", "argmin", "cumprod", "cumsum", "max", "min", "sort", "sum", "xor_sum"})
ADDRESS = "an address is indexed: "
BLOCK_AT_ADDRESS = re.compile(r"^(\w+) argument cannot be block type if pointer argument is not a block")
MOST_NAME = 60  # characters of an expression that a message shows


def in_other_words(message: str, error: BaseException, node: ast.AST | None) -> str:
    """Returns another message for what the compiler refuses at this node of the file; "" where its own will do."""
    frames = list(_frames(error))
    return (
        _read(frames, node)
        or _assigned(frames)
        or _descriptor_for_address(frames)
        or _without_axis(frames, node)
        or _block_at_address(message, node)
        or _operands(message, frames, node)
        or _without_dtype(message, node)
        or _accumulator(error, frames)
        or _shapes(error, frames, node)
        or call_in_other_words(message, frames, node)
    )


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _read(frames: list[FrameType], node: ast.AST | None) -> str:
    """Returns the message about x_ptr[i], or about x[i] where x is a tile and i is no constant."""
    for frame in frames:
        value = frame.f_locals.get("self")
        if frame.f_code.co_name != "__getitem__" or not isinstance(value, tl.tensor):
            continue
        by_value = isinstance(frame.f_locals.get("slices"), tl.tensor)
        if value.type.is_ptr() or (by_value and value.type.scalar.is_ptr()):
            return f"{ADDRESS}{_text_of(node.value) if isinstance(node, ast.Subscript) else 'this'}"
        if by_value:
            return "unsupported tensor index: a value of the kernel"
    return ""


def _assigned(frames: list[FrameType]) -> str:
    """Returns the message about z_ptr[i] = x."""
    for frame in frames:
        generator, node = frame.f_locals.get("self"), frame.f_locals.get("node")
        written = getattr(node, "value", None)
        if frame.f_code.co_name == "visit_Subscript_Store" and isinstance(written, ast.Name):
            value = getattr(generator, "lscope", {}).get(written.id)
            if isinstance(value, tl.tensor) and value.type.is_ptr():
                return f"{ADDRESS}{_text_of(written)}"
    return ""


def _descriptor_for_address(frames: list[FrameType]) -> str:
    """Returns the message about tl.load(x_desc) and tl.store(x_desc, tile), whatever else stands in the call."""
    for frame in frames:
        is_access = frame.f_code.co_name in ("load", "store") and frame.f_code.co_filename == core.__file__
        if is_access and isinstance(frame.f_locals.get("pointer"), tensor_descriptor_base):
            return "a descriptor for an address"
    return ""


def _without_axis(frames: list[FrameType], node: ast.AST | None) -> str:
    """Returns the message about tl.max(m, x), where a value stands for an axis, and about tl.max(i, 2) of one value."""
    if not isinstance(node, ast.Call) or (name := getattr(node.func, "attr", "")) not in WITH_AXIS:
        return ""
    for frame in frames:
        axis, value = frame.f_locals.get("axis"), frame.f_locals.get("input")
        axis = axis.value if isinstance(axis, tl.constexpr) else axis
        written = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
        one_value = isinstance(value, tl.tensor) and not value.type.is_block()
        of_two = name in ("max", "min") and one_value and isinstance(axis, int) and not written
        if isinstance(axis, tl.tensor | float) or of_two:
            return f"an axis is a value of the kernel: tl.{name}"
    return ""


def _block_at_address(message: str, node: ast.AST | None) -> str:
    """Returns the message about tl.store(z_ptr, z, mask), with the pointer that Triton does not name."""
    match = BLOCK_AT_ADDRESS.search(message)
    if match is None or not isinstance(node, ast.Call):
        return ""
    function = node.func
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return ""
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    pointer = node.args[0] if node.args else named.get("pointer")
    is_method = function.value.id != "tl"  # z_ptr.store(z), or Triton's language under another name
    return "" if pointer is None or is_method else f"a block at one address: {match[1]} of {_text_of(pointer)}"


def _operands(message: str, frames: list[FrameType], node: ast.AST | None) -> str:
    """Returns the message about two tiles that one operator or one access joins, with their names and shapes added."""
    if "incompatible dimensions at index" not in message:
        return ""
    if isinstance(node, ast.Call):
        return next((f"{message}{words}" for words in map(_of_an_access, frames) if words), "")
    if not isinstance(node, ast.BinOp):
        return ""
    for frame in frames:
        if frame.f_code.co_name == "binary_op_type_checking_impl":
            left, right = _text_of(node.left), _text_of(node.right)
            first, second = (_shape(frame.f_locals.get(name)) for name in ("lhs", "rhs"))
            if isinstance(node.op, ast.Mult) and len(first) == len(second) == 2 and first[1] == second[0]:
                return f"a product by *: {first} and {second}"
            known = first and second and "this" not in (left, right)
            return f"{message}; left is {first}: {left}; right is {second}: {right}" if known else ""
    return ""


def _of_an_access(frame: FrameType) -> str:
    """Returns the shapes of tl.store's or tl.load's arguments that do not go together; "" for any other frame."""
    if frame.f_code.co_name not in ("load", "store") or frame.f_code.co_filename != core.__file__:
        return ""
    pointer, *others = ((name, _shape(frame.f_locals.get(name))) for name in ("pointer", "value", "mask", "other"))
    unlike = (one for one in others if any(a != b and 1 not in (a, b) for a, b in zip(pointer[1], one[1])))
    return "".join(f"; left is {pointer[1]}: pointer; right is {shape}: {name}" for name, shape in [*unlike][:1])


def _without_dtype(message: str, node: ast.AST | None) -> str:
    """Returns the message about tl.zeros((BLOCK_N,)), which lacks its dtype."""
    is_zeros = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "zeros"
    return "tl.zeros lacks its dtype" if is_zeros and re.search(r"missing .* argument: 'dtype'", message) else ""


def _accumulator(error: BaseException, frames: list[FrameType]) -> str:
    """Returns the message about tl.dot(a, b, acc) whose `acc` differs in dtype from the product.

    Triton 3.7 ends with an assertion that has no words.
    """
    for frame in frames if isinstance(error, AssertionError) else ():
        held = frame.f_locals
        added, wanted, product = held.get("acc"), held.get("out_dtype"), held.get("ret_ty")
        if frame.f_code.co_name != "dot" or not isinstance(added, tl.tensor) or not isinstance(product, tl.block_type):
            continue
        if added.type.shape == product.shape and added.type.scalar != wanted:
            return f"an accumulator of {added.type.scalar} for {wanted}"
    return ""


def _shapes(error: BaseException, frames: list[FrameType], node: ast.AST | None) -> str:
    """Returns the message about tiles whose shapes do not go together, which Triton seldom names."""
    for frame in frames if isinstance(error, AssertionError) else ():
        held = frame.f_locals
        if frame.f_code.co_name == "dot":
            a, b, added = (_shape(held.get(name)) for name in ("input", "other", "acc"))
            if len(a) == len(b) == 2 and a[1] != b[0]:
                return f"a product of {a} and {b}"
            if len(a) == len(b) == len(added) == 2 and added != [a[0], b[1]]:
                return f"an accumulator of shape {added} for {[a[0], b[1]]}"
        elif frame.f_code.co_name == "split" and (shape := _shape(held.get("a"))) and shape[-1] != 2:
            return f"a split of {shape}"
        elif frame.f_code.co_name == "validate_store_like":
            block, value = (_shape(held.get(name)) for name in ("desc", "value"))
            descriptor = getattr(getattr(node, "func", None), "value", None)
            if block and value and block != value:
                return f"a tile of {value} for blocks of {block}: {_text_of(descriptor) if descriptor else 'this'}"
    return ""


def _shape(value: object) -> list[int]:
    """Returns the shape of a tile, or of a descriptor's block; an empty list for anything else."""
    shape = value.block_shape if isinstance(value, tensor_descriptor_base) else getattr(value, "shape", ())
    return [int(getattr(size, "value", size)) for size in shape] if isinstance(value, base_value) else []


def _text_of(node: ast.expr) -> str:
    try:
        text = " ".join(ast.unparse(node).split())
    except ValueError:  # a number of 4301 digits
        return "this"
    return text if len(text) <= MOST_NAME else "this"
