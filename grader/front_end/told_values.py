"""The values that a recipe tells: public objects of Triton, functions of the file, and plain values."""

from __future__ import annotations

import ast
import importlib
from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import triton.language as tl

from grader.front_end.allowed_attributes import is_public
from grader.submission.public_names import MODULES
from grader.wire.frames import JsonObject


class NotPlain(Exception):
    """A recipe tells a value that no kernel may see, or another value than the file gives."""


class Unseen:
    """Stands for a value that a kernel cannot see, as a list: Triton's front end refuses it by its name."""


NO_VALUE = (NotPlain, ImportError, AttributeError, TypeError, ValueError, SyntaxError)  # what value_of raises
MATH = "math"
DTYPES = {value.name: value for value in vars(tl).values() if isinstance(value, tl.dtype)}
Functions = Mapping[tuple[str, int], Any]  # the functions of the file, by name and line


def is_public_path(path: str) -> bool:
    """Returns whether a kernel may name this module, or this public object of a module."""
    module, _, name = path.rpartition(".")
    return path in MODULES or path == MATH or is_public(module, name)


def public_object(path: str) -> Any:
    """Returns the module or object of this path. Raises NotPlain if a kernel may not name it.

    Raises ImportError or AttributeError if it does not exist.
    """
    if not is_public_path(path):
        raise NotPlain(f"{path} is no public name of Triton")
    if path in MODULES or path == MATH:
        return importlib.import_module(path)
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def value_of(described: JsonObject, functions: Functions) -> Any:
    """Returns the value that a recipe tells. Raises NotPlain, and what public_object raises."""
    (kind, content), *_ = described.items()
    if kind == "items":
        return tuple(value_of(item, functions) for item in content)
    if kind == "named":
        fields, parts = content
        return namedtuple("Named", fields, rename=True)(*(value_of(part, functions) for part in parts))
    if kind == "constexpr":
        return tl.constexpr(value_of(content, functions))
    if kind == "dtype" and content in DTYPES:
        return DTYPES[content]
    if kind == "function" and tuple(content) in functions:
        return functions[tuple(content)]
    if kind == "public":
        return public_object(content)
    if kind == "tuple":
        name, fields, defaults = content
        return tuple_class(name, fields, [named_value(default, functions) for default in defaults])
    if kind == "value":
        value = float(content) if content in ("inf", "-inf", "nan") else ast.literal_eval(content)
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
    raise NotPlain(content if isinstance(content, str) else kind)


def named_value(told: list[Any], functions: Functions) -> Any:
    """Returns the value of a name that a recipe tells as [name, 1 for a constexpr, value]. Raises as value_of does."""
    _, is_constexpr, described = told
    value = value_of(described, functions)
    return tl.constexpr(value) if is_constexpr else value


def tuple_class(name: str, fields: list[str], defaults: list[Any]) -> type:
    """Returns a class of tuples with names for their parts. Raises ValueError for names that Python does not take."""
    return namedtuple(name, fields, rename=True, defaults=defaults, module="__main__")


def is_same(one: Any, other: Any) -> bool:
    """Returns whether a kernel cannot tell two values apart, but for names that a tuple's parts have."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, tl.constexpr):
        return is_same(one.value, other.value)
    if isinstance(one, type) and issubclass(one, tuple) and issubclass(other, tuple):
        return is_same(_facts_of(one), _facts_of(other))
    if one is None or isinstance(one, (bool, int, float, str)):
        return repr(one) == repr(other)  # which tells 0.0 from -0.0, and takes NaN for NaN
    return one == other if isinstance(one, tl.dtype) else one is other


def _facts_of(named_tuple: Any) -> tuple[Any, ...]:
    """Returns what a kernel can tell of a class of tuples with names."""
    return named_tuple.__name__, named_tuple._fields, *named_tuple._field_defaults.items()


def with_names(value: Any, path: tuple[int, ...], fields: dict[tuple[int, ...], list[str]]) -> Any:
    """Returns a type in which each tuple whose path has names is a tuple with these names."""
    if not isinstance(value, tuple):
        return value
    parts = [with_names(part, (*path, number), fields) for number, part in enumerate(value)]
    return namedtuple("Named", fields[path])(*parts) if path in fields else tuple(parts)
