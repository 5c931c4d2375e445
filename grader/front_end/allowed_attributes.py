"""The attributes that a kernel or a constexpr function may read: a list for each kind of value.

Triton's front end evaluates `a.b` by getattr, on modules and on Python's own objects too, and from most of these an
attribute or two lead to every module of the process. So each attribute is looked up here, on the very value.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import triton.language as tl

from grader.front_end.triton_visitor_api import CodeGenerator
from grader.submission.kernel_names import OF_TILES, OF_VALUES
from grader.submission.public_names import MODULES, members

PLAIN = (bool, int, float, str, tuple, list, dict, slice, range)
OF_PROPAGATE_NAN = frozenset({"ALL", "NONE"})
OF_TRITON = "triton.language."
_ABSENT = object()


class NotAllowed(AttributeError):
    """A kernel may not read an attribute, whether Triton's compiler would or not."""


def attribute(value: Any, name: str) -> Any:
    """Returns `value.name`. Raises NotAllowed where a kernel may not read it, AttributeError where there is none."""
    check(value, name)
    return getattr(value, name)


def check(value: Any, name: str) -> None:
    """Raises NotAllowed where a kernel may not read this attribute of this value."""
    if not _is_allowed(value, name):
        of = value.__name__ if isinstance(value, ModuleType) else type(value).__name__
        raise NotAllowed(f"a kernel reads no attribute {name} of {of}")


def _is_allowed(value: Any, name: str) -> bool:
    if isinstance(value, ModuleType):
        return is_public(value.__name__, name)
    if isinstance(value, tl.constexpr):
        return name == "value" or name != "type" and _is_allowed(value.value, name)
    if name.startswith("_"):
        return False
    if isinstance(value, type):
        return value is tl.PropagateNan and name in OF_PROPAGATE_NAN
    if name == "name" and isinstance(value, tl.tuple_type):
        return False  # it holds the text of constants
    of_values = name in OF_TILES or name in OF_VALUES
    if isinstance(value, tl.tuple):
        return of_values or name in (getattr(value.type, "fields", None) or ())
    if isinstance(value, tuple) and (fields := getattr(type(value), "_fields", None)) is not None:
        return of_values or name in fields
    return of_values and (type(value) in PLAIN or type(value).__module__.startswith(OF_TRITON))


def is_public(module: str, name: str) -> bool:
    """Returns whether a kernel may use this name of this module."""
    if module == "math":
        return not name.startswith("_")
    return module in MODULES and name in members(module)


def by_name(value: Any, name: str, *default: Any) -> Any:
    """Replaces Python's getattr: the default counts only for an attribute that is absent where the file runs, too.

    Raises AttributeError otherwise, and TypeError for a name that is no text.
    """
    if not isinstance(name, str):
        raise TypeError("the name of an attribute is a text")
    try:
        return attribute(value, name)
    except AttributeError:
        if not default or not _is_fixed(value) or inspect.getattr_static(value, name, _ABSENT) is not _ABSENT:
            raise
        return default[0]


def _is_fixed(value: Any) -> bool:
    """Returns whether a value has no more attributes in the file's process than here: it is of no class of the file."""
    kind = type(value)
    return value is None or kind in (*PLAIN, ModuleType) or kind.__module__.startswith(OF_TRITON)


def has_by_name(value: Any, name: Any) -> bool:
    """Replaces Python's hasattr."""
    return by_name(value, name, _ABSENT) is not _ABSENT


_operators: list[tuple[Any, str]] = []  # those that Triton is about to look up, as methods of their left operands


@contextlib.contextmanager
def operator_looked_up(left: Any, method: str) -> Iterator[None]:
    """Lets Triton up to 3.8 look up the method of an operator, such as __eq__ of a dtype, once while this is open.

    The file itself may read no such method: an operator's operands are checked where it stands.
    """
    _operators.append((left, method))
    try:
        yield
    finally:
        _operators.clear()


def _is_of_operator(value: Any, name: str) -> bool:
    is_it = any(value is left and name == method for left, method in _operators)
    _operators.clear()  # what is visited from here on has operators of its own
    return is_it


def guard_builtins() -> None:
    """Gives Triton's front end these functions as getattr and hasattr, for the rest of this process."""
    CodeGenerator.builtin_namespace.update({"getattr": by_name, "hasattr": has_by_name})


@functools.cache
def guard_functions_of(path: str) -> None:
    """Makes Triton's front end read attributes as `check` allows, in functions of this file.

    Triton's own functions, which a kernel calls, are left alone.
    """
    unguarded = CodeGenerator.get_Attribute

    def get_attribute(generator: CodeGenerator, value: Any, name: str) -> Any:
        if generator.file_name == path and not _is_of_operator(value, name):
            check(value, name)
        return unguarded(generator, value, name)

    CodeGenerator.get_Attribute = get_attribute
