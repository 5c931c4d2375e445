"""Values whose text, and whose equality, is the same where the file runs by itself; for other values both are refused.

A text is made from a recipe, so its objects differ from the objects of the file's process. A NaN in a tuple is found by
its identity, a function is equal to itself alone, and the text of a class says where it was made.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

import triton.language as tl

from grader.front_end.triton_text_api import JITCallable

NO_TEXT = "the text of a function or a class is not fixed; a text is made of numbers, texts and dtypes"
NO_EQUALITY = "a function, a class and a NaN in a tuple have no equality; compare numbers, texts and dtypes"
NO_CLASS = "the class of a tuple with names is not known; pass a number that says which one it is"
NO_ORDER = "a set has a fixed order for numbers alone; use a tuple"


class NotFixed(Exception):
    """A kernel asks for what differs from one process to another; the message is NO_TEXT or its like."""


WITH_TEXT = (NoneType, bool, int, float, str, tl.dtype)
HOLDERS = (tuple, list, dict, set, tl.tuple)
LOOKING = frozenset({"count", "get", "index", "pop"})  # methods of HOLDERS that compare the values within


def has_text(value: Any) -> bool:
    """Returns whether a value is written the same way here as where the file runs by itself."""
    if isinstance(value, tl.constexpr):
        return has_text(value.value)
    if type(value) in (tuple, list):
        return all(map(has_text, value))
    return type(value) in WITH_TEXT


def has_equality(value: Any, is_key: bool = False) -> bool:
    """Returns whether a value is equal to the same values here as where the file runs by itself.

    is_key: the value is looked for among others, where a NaN is found by its identity. In a tuple it always is.
    """
    if isinstance(value, tl.constexpr):
        return has_equality(value.value, is_key)
    if isinstance(value, HOLDERS):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        return all(has_equality(part, is_key=True) for part in parts)
    if isinstance(value, JITCallable) or is_class_of_tuples(value):
        return False
    return not (is_key and isinstance(value, float) and value != value)


def looks_for(function: Any) -> bool:
    """Returns whether a method finds a value among the values of a tuple, a list, a dictionary or a set."""
    return isinstance(getattr(function, "__self__", None), HOLDERS) and function.__name__ in LOOKING


def has_order(value: Any) -> bool:
    """Returns whether a set keeps a value in the same order in each process: texts hash differently in each."""
    return all(map(has_order, value)) if type(value) is tuple else type(value) in (bool, int, float)


def is_class_of_tuples(kinds: Any) -> bool:
    """Returns whether `kinds` is a class of tuples with names for their parts, or a tuple or list that holds one.

    It is not known here if a value is of that class: a recipe tells the names of its parts alone.
    """
    kinds = kinds.value if isinstance(kinds, tl.constexpr) else kinds
    if isinstance(kinds, (tuple, list, tl.tuple)):
        return any(map(is_class_of_tuples, kinds))
    return isinstance(kinds, type) and issubclass(kinds, tuple) and kinds is not tuple
