"""Messages about refused calls of tl's functions and about operators: which arguments, and which shapes, meet.

Triton's own messages name neither the call nor its operands; the syntax tree and the frames that raised do.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from types import FrameType

import triton.language as tl

UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")
MISSING = re.compile(r"missing \d+ required positional arguments?: '(\w+)'")
TWICE = re.compile(r"got multiple values for (?:keyword )?argument '(\w+)'|multiple values for argument '(\w+)'")
OPERANDS = re.compile(r"^invalid operands of type (\S+) and (\S+)")
NOT_CALLED = re.compile(
    r"^cannot convert (?:<function|JITFunction|BoundJITMethod|<bound method)|'(?:function|JITFunction|BoundJITMethod)'"
    r"|'method'|^'constexpr_type' .* no attribute 'scalar'"
)
POINTER = re.compile(r"pointer<")
SHAPES_OF_DOT = re.compile(r"equal ranks|equal reduction dim|compatible for matmul|must be either 2D or 3D")
SMALL_DOT = re.compile(r"Input shapes should have .*K >= (\d+)")
OWN_ARGUMENTS = frozenset({"_semantic", "_generator", "self"})  # which the compiler gives
UNPACKED = ("not enough values to unpack", "list index out of range")  # Triton 3.9; 3.6 and 3.7
ON_THE_HOST = frozenset({"cdiv", "next_power_of_2"})  # of the module triton


def call_in_other_words(message: str, frames: list[FrameType], node: ast.AST | None) -> str:
    """Returns another message for what the compiler refuses at this node of the file; "" where its own will do."""
    if NOT_CALLED.search(message):
        return "a function that is not called"
    if isinstance(node, ast.Call):
        return _of_a_call(message, frames, node)
    if isinstance(node, ast.BinOp | ast.AugAssign):
        return _of_an_operator(message, frames, node)
    if isinstance(node, ast.Compare) and (unknown := {ast.In: "in", ast.NotIn: "not in"}.get(type(node.ops[0]))):
        return f"no operator: {unknown}"
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and "index out of range" in message:
        return "a list that grows"
    value = node.value if isinstance(node, ast.Assign) else None
    if isinstance(value, ast.Attribute) and value.attr == "shape" and message.startswith(UNPACKED):
        return f"no shape: {_short(value.value)}"
    return ""


def _of_a_call(message: str, frames: list[FrameType], node: ast.Call) -> str:
    function, owner = getattr(node.func, "attr", ""), getattr(getattr(node.func, "value", None), "id", "")
    if getattr(node.func, "id", "") == "len":
        return "no length: len"
    if getattr(node.func, "id", "") in ("list", "tuple"):
        return "a list that grows"
    if owner == "math" and "must be real number" in message and hasattr(tl, function):
        return f"a tile in math: {function}"
    if owner == "triton" and function in ON_THE_HOST and "@triton.jit" in message:
        return f"a function of the host: {function}"
    in_parts = len(node.args) > 1 and not isinstance(node.args[0], ast.Tuple | ast.List)
    if function == "zeros" and in_parts and ("not iterable" in message or TWICE.search(message)):
        return f"no tuple for a shape: {function}"
    if function == "dot":
        return _of_a_product(message, frames)
    return _of_arguments(message, function) if owner == "tl" else ""


def _of_arguments(message: str, function: str) -> str:
    """Returns the message about an argument of tl's function that is missing, unknown or given twice; "" if none is."""
    names = _parameters(function)
    kinds = {"unknown": UNEXPECTED, "missing": MISSING, "twice": TWICE}
    refused = ((kind, found) for kind, pattern in kinds.items() if (found := pattern.search(message)))
    what, match = next(refused, ("", None))
    if match is None or not names:
        return ""
    name = next(filter(None, match.groups()))
    if what == "twice" and name in OWN_ARGUMENTS:
        what = "too many"
    return f"arguments of tl.{function}: {what}: {name}: {', '.join(names)}"


def _parameters(function: str) -> list[str]:
    """Returns the parameters' names of a function of tl; [] where tl lacks it, or they are not known."""
    try:
        called = getattr(tl, function)
        names = inspect.signature(getattr(called, "fn", called)).parameters
    except (AttributeError, TypeError, ValueError):
        return []
    return [name for name in names if name not in OWN_ARGUMENTS]


def _of_a_product(message: str, frames: Iterable[FrameType]) -> str:
    """Returns the message about tl.dot(a, b), with the shapes that meet in it; "" for any other refusal."""
    shapes = {name: _shape(operand) for frame in frames for name, operand in _operands_of(frame).items()}
    a, b = shapes.get("input", ""), shapes.get("other", "")
    if not a or not b:
        return ""
    if SHAPES_OF_DOT.search(message):
        return f"no product of {a} and {b}"
    if small := SMALL_DOT.search(message):
        return f"a small product of {a} and {b}: {small[1]}"
    return ""


def _operands_of(frame: FrameType) -> dict[str, tl.tensor]:
    held = frame.f_locals if frame.f_code.co_name == "dot" else {}
    return {name: held[name] for name in ("input", "other") if isinstance(held.get(name), tl.tensor)}


def _shape(value: tl.tensor) -> str:
    return str([int(getattr(size, "value", size)) for size in value.shape])


def _of_an_operator(message: str, frames: list[FrameType], node: ast.BinOp | ast.AugAssign) -> str:
    """Returns the message about a @ b, x ** 2 and x ^ 2, about x_ptr * y, or about a fraction as an offset; else ""."""
    if unknown := {ast.MatMult: "@", ast.Pow: "**"}.get(type(node.op)):
        return f"no operator: {unknown}"
    operands = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.target, node.value]
    if "cannot add pointers together" in message:
        return f"no sum: {_short(operands[0])}: {_short(operands[1])}"
    match = OPERANDS.search(message)
    if match is None:
        return ""
    kinds = [kind.rpartition(".")[2].replace("float", "fp") for kind in match.groups() if not POINTER.search(kind)]
    if len(kinds) < 2:
        address = _short(_address(operands, frames))
        is_offset = kinds and isinstance(node.op, ast.Add | ast.Sub) and kinds[0].startswith(("fp", "bfp"))
        return f"an offset of {kinds[0]}: {address}" if is_offset else f"a number is wanted: {address}"
    operator = {ast.BitXor: "^", ast.BitAnd: "&", ast.BitOr: "|"}.get(type(node.op))
    return f"bits of {kinds[0]}: {operator}" if operator and kinds else ""


def _address(operands: list[ast.expr], frames: list[FrameType]) -> ast.expr:
    """Returns the operand that is an address, as far as names tell: Triton may have exchanged the two."""
    generators = [frame.f_locals["self"] for frame in frames if hasattr(frame.f_locals.get("self"), "lscope")]
    known = {name: value for generator in generators for name, value in generator.lscope.items()}
    values = [known.get(getattr(getattr(node, "value", node), "id", getattr(node, "id", ""))) for node in operands]
    is_address = [isinstance(value, tl.tensor) and value.type.scalar.is_ptr() for value in values]
    if True not in is_address and values[0] is not None:
        return operands[1]
    return operands[is_address.index(True) if True in is_address else 0]


def _short(node: ast.expr) -> str:
    """Returns the expression as the file has it, without an index behind it; "this" for a long expression."""
    node = node.value if isinstance(node, ast.Subscript) else node
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else "this"
