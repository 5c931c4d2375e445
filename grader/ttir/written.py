"""Writes values and operations of a text as the learner's file would: `rows * stride_xm`, and no arith.muli."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from grader.ttir.module import Dense

UNKNOWN = "…"  # stands for what is not written here
MOST = 60  # characters of an expression
SIGNS = {
    "arith.addf": "+", "arith.addi": "+", "arith.subf": "-", "arith.subi": "-", "arith.mulf": "*", "arith.muli": "*",
    "arith.divf": "/", "arith.divsi": "//", "arith.remf": "%", "arith.remsi": "%", "arith.andi": "&", "arith.ori": "|",
    "tt.addptr": "+",
}  # fmt: skip
# By predicate; those of numbers without a sign, and of unordered floats, are written alike.
COMPARISONS = {
    "arith.cmpi": ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">="),
    "arith.cmpf": ("", *(ordered := ("==", ">", ">=", "<", "<=", "!=")), "", *ordered),
}
CALLS = {
    "arith.maxnumf": "maximum", "arith.minnumf": "minimum", "arith.maxsi": "maximum", "arith.minsi": "minimum",
    "arith.select": "where", "tt.dot": "dot", "math.exp": "exp", "math.exp2": "exp2", "math.log": "log",
    "math.log2": "log2", "math.sqrt": "sqrt", "math.rsqrt": "rsqrt", "math.sin": "sin", "math.cos": "cos",
}  # fmt: skip
OF_THE_GRID = {"tt.get_program_id": "program_id", "tt.get_num_programs": "num_programs"}
# These give the same numbers in another shape or dtype, mostly without a word in the file.
SILENT = (
    "tt.splat", "tt.broadcast", "tt.expand_dims", "arith.extsi", "arith.extui", "arith.extf", "arith.trunci",
    "arith.truncf", "arith.sitofp", "arith.uitofp",
)  # fmt: skip


def written(name: str, operands: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """Returns an operation as an expression of its operands, which are expressions; UNKNOWN where it would be long."""
    expression = _written(name, operands, attributes)
    return expression if len(expression) <= MOST else UNKNOWN


def _written(name: str, operands: Sequence[str], attributes: Mapping[str, Any]) -> str:
    sign = COMPARISONS[name][attributes["predicate"]] if name in COMPARISONS else SIGNS.get(name)
    if sign and len(operands) == 2:
        return f" {sign} ".join(f"({operand})" if " " in operand else operand for operand in operands)
    if name in SILENT:
        return operands[0]
    if name in CALLS:
        return f"tl.{CALLS[name]}({', '.join(operands)})"
    if name in OF_THE_GRID:
        return f"tl.{OF_THE_GRID[name]}({attributes['axis']})"
    if name == "tt.make_range":
        return f"tl.arange({attributes['start']}, {attributes['end']})"
    if name == "arith.constant":
        value = attributes["value"]
        return number(value.values[0] if isinstance(value, Dense) else value)
    return UNKNOWN


def number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        sign = "-" if value < 0 else ""
        return f'{sign}float("{"nan" if math.isnan(value) else "inf"}")'
    return f"{value:g}" if isinstance(value, float) and not value.is_integer() else str(value)


def instead(new: str, old: str) -> str:
    """Returns the words for an expression that stands in the place of another."""
    if new == old:
        return f"`{new}` as an earlier line made it"
    return f"`{new}` in the place of {'what is there' if old == UNKNOWN else f'`{old}`'}"
