"""Finds lines of kernels that lose something, as far as the text tells: digits in 16 bits, NaN in a maximum."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from grader.submission.nodes import calls_in, is_method_call
from grader.submission.text import kernels_of

OF_16_BITS = {"float16": "fp16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class Rounding:
    line: int
    dtype: str  # "fp16" or "bf16"
    of_a_sum: bool  # the converted value is a sum, or the name of a sum


def line_of_rounding(tree: ast.Module, dtype_of_memory: str, of_a_sum: bool = False) -> Rounding | None:
    """Returns the only place where a kernel converts to 16 bits a value that it computes with afterwards; None where
    there is none, or several.

    `dtype_of_memory`: "fp16", "bf16" or another dtype of the arguments in this call. `of_a_sum`: only a sum counts, in
    a file that converts to fp32 as well.
    """
    kernels = kernels_of(tree)
    found = [one for kernel in kernels for one in _roundings(kernel, dtype_of_memory)]
    widened = any(_converts_to(node) == "float32" for kernel in kernels for node in ast.walk(kernel))
    if len(found) != 1 or of_a_sum and not (found[0].of_a_sum and widened):
        return None
    return found[0]


def line_of_maximum_with_0(tree: ast.Module) -> int:
    """Returns the line of the only tl.maximum with 0, if it is not told to keep NaN and the file chooses in no other
    way; else 0."""
    calls = list(calls_in(kernels_of(tree)))
    names = [getattr(call.func, "attr", "") for call in calls]
    with_0 = [call for call, name in zip(calls, names) if name == "maximum" and any(map(_is_0, call.args))]
    if len(with_0) != 1 or names.count("maximum") > 1 or {"where", "max", "clamp", "minimum"} & {*names}:
        return 0
    (call,) = with_0
    return call.lineno if len(call.args) == 2 and not call.keywords else 0


def _is_0(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) in (int, float) and value.value == 0


def _roundings(kernel: ast.FunctionDef, dtype_of_memory: str) -> list[Rounding]:
    nodes = list(ast.walk(kernel))
    held = _handed_over(nodes)
    alone = {id(node.value): node for node in nodes if isinstance(node, ast.Assign) and len(node.targets) == 1}
    loads, sums = _assigned(nodes, _is_load), _assigned(nodes, _is_sum)
    found = []
    for node in nodes:
        dtype = OF_16_BITS.get(to := _converts_to(node), dtype_of_memory if to == "memory" else "")
        if dtype not in OF_16_BITS.values() or id(node) in held:
            continue
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        value = node.func.value
        if _is_load(value) or isinstance(value, ast.Name) and value.id in loads - sums:
            continue  # as a rule it has these 16 bits already
        target = alone[id(node)].targets[0] if id(node) in alone else None
        if isinstance(target, ast.Name) and not _is_computed_with(target.id, nodes, held, node.lineno):
            continue
        is_sum = _is_sum(value) or isinstance(value, ast.Name) and value.id in sums
        found.append(Rounding(node.lineno, dtype, is_sum))
    return found


def _handed_over(nodes: list[ast.AST]) -> set[int]:
    """Returns the ids of all nodes in stores and in products of tiles, which want 16 bits, and in returned values."""
    takers = ("store", "dot", "atomic_add")
    chosen = [one for one in nodes if isinstance(one, ast.Return) or any(is_method_call(one, name) for name in takers)]
    return {id(part) for node in chosen for part in ast.walk(node)}


def _is_computed_with(name: str, nodes: list[ast.AST], held: set[int], line: int) -> bool:
    read = (one for one in nodes if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load))
    return any(one.lineno > line and id(one) not in held for one in read)


def _assigned(nodes: list[ast.AST], is_sought: Callable[[ast.expr], bool]) -> set[str]:
    """Returns the names that are assigned a value of the sought kind."""
    assigned = (node for node in nodes if isinstance(node, ast.Assign) and is_sought(node.value))
    return {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}


def _is_load(value: ast.expr) -> bool:
    return is_method_call(value, "load")


def _is_sum(value: ast.expr) -> bool:
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)


def _converts_to(node: ast.AST) -> str:
    """Returns "float16" for x.to(tl.float16), "memory" for x.to(z_ptr.dtype.element_ty); "" for anything else."""
    if not is_method_call(node, "to") or len(node.args) != 1:
        return ""
    dtype = node.args[0]
    name = dtype.attr if isinstance(dtype, ast.Attribute) else ""
    return "memory" if name == "element_ty" else name
