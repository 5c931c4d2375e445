"""Sentences about a failure: tables hold the words, and evidence fills them in.

A table is an enumeration; a member is a sentence with fields in braces. Calling a member with evidence returns a
`Said`, which keeps the sentence and its evidence apart. `Said.text` alone puts the two together.

    class Memory(Sentence):
        NO_MASK = "The tl.{function} in line {line} has no mask: {count:#lane} past the end of {name} take part in it."

    Memory.NO_MASK(function="load", line=12, count=3, name="x")
"""

from __future__ import annotations

import ast
import math
import operator
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

Value = str | int | float | Sequence  # a sequence of numbers and texts: all can be written as JSON
Fields = dict[str, Value]  # the evidence of a sentence, by the names of its fields


class Sentence(Enum):
    """The base class of the tables. In a field's format, "#element" counts (1 element, 2 elements), "," joins a list,
    and "_" puts blanks between thousands."""

    @property
    def id(self) -> str:
        """The name of the sentence in the file of `--result`, such as "memory.no-mask"."""
        table = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", type(self).__name__).lower()
        return f"{table}.{self.name.lower().replace('_', '-')}"

    @cached_property
    def fields(self) -> frozenset[str]:
        """The names of the fields that evidence fills in."""
        return frozenset(field for _, field, _, _ in string.Formatter().parse(self.value) if field)

    def __call__(self, **evidence: Value) -> Said:
        """Fills in the sentence. Raises TypeError for names other than its fields, and for values that are no data."""
        if evidence.keys() != self.fields:
            raise TypeError(f"{self.id} takes {sorted(self.fields)}, and was given {sorted(evidence)}")
        if strange := [name for name, value in evidence.items() if not _is_data(value)]:
            raise TypeError(f"{self.id}: {strange} are no texts, numbers or lists of these")
        return Said(self, evidence)


@dataclass(frozen=True)
class StatedSentence:
    """A sentence that a file states, and no table: "The loop makes {cdiv(N, BLOCK_N)} iterations for {N} columns." A
    field is a number or a text by its name, or arithmetic with such names."""

    id: str
    value: str

    def said_of(self, names: Mapping[str, Value]) -> Said:
        """Fills in the sentence. Raises NameError for a field that is no arithmetic with these names, and what that
        raises, ArithmeticError or TypeError."""
        fields = dict.fromkeys(field for _, field, _, _ in string.Formatter().parse(self.value) if field)
        return Said(self, {field: _number(field, names) for field in fields})


def _number(field: str, names: Mapping[str, Value]) -> Value:
    try:
        return _value(ast.parse(field, mode="eval").body, names)
    except SyntaxError:
        raise NameError(f"{field} is no expression") from None


def _value(node: ast.expr, names: Mapping[str, Value]) -> Any:
    """Returns what an expression is worth: of names, numbers, operators and a few functions, and of nothing else."""
    match node:
        case ast.Name(id) if id in names:
            return names[id]
        case ast.Constant(int() | float() as number):
            return number
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, names)
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATORS:
            return _OPERATORS[type(operation)](_value(left, names), _value(right, names))
        case ast.Call(ast.Name(id), arguments, []) if id in _FUNCTIONS:
            return _FUNCTIONS[id](*(_value(one, names) for one in arguments))
    raise NameError(f"{ast.unparse(node)} is no number that a sentence may hold")


def _cdiv(size: int, part: int) -> int:
    return -(-size // part)


_FUNCTIONS: dict[str, Callable] = {"cdiv": _cdiv}
_OPERATORS: dict[type[ast.operator], Callable] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip


@dataclass(frozen=True)
class Said:
    """A sentence, and the evidence that fills it in, by the names of its fields."""

    sentence: Sentence | StatedSentence
    evidence: dict[str, Value]

    @property
    def text(self) -> str:
        return _WORDS.vformat(self.sentence.value, (), self.evidence)

    def to_json(self) -> dict:
        """Returns the id and the evidence. NaN and infinities, for which JSON has no word, become texts."""
        return {"sentence": self.sentence.id, "evidence": {name: _as_json(one) for name, one in self.evidence.items()}}


class _Words(string.Formatter):
    def format_field(self, value: Value, specification: str) -> str:
        if isinstance(value, int | float) and specification.startswith("#"):
            return count_text(value, specification[1:])
        if specification == "," and isinstance(value, tuple | list):
            return ", ".join(map(str, value))
        if specification == "_":
            return f"{value:_}".replace("_", " ")
        return super().format_field(value, specification)


_WORDS = _Words()


def _is_data(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_data, value))
    return isinstance(value, str | int | float)


def _as_json(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return list(map(_as_json, value)) if isinstance(value, tuple | list) else value


def count_text(count: float, noun: str) -> str:
    """Returns a number with its noun, in the plural unless it is 1: "1 element", "2 processes", "2 bytes"."""
    plural = f"{noun}es" if noun.endswith("ss") else noun if noun.endswith("s") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


def joined(texts: Iterable[str]) -> str:
    """Returns sentences in one line, with one mark between two of them: "it is newer; softmax is empty." """
    *first, last = [text for text in texts if text] or [""]
    return "; ".join([*(text.removesuffix(".") for text in first), last])
