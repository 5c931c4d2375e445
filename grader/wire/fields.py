"""Reads what an untrusted process sent: each field is checked for its kind and its size before anyone uses it.

This is written by hand, though msgspec reads faster: most checks are rules about a plan rather than types, and reading
is a small part of a verdict's time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, Literal, TypeVar, overload

from grader.wire.frames import JsonObject, ProtocolError
from grader.wire.printable import several_lines

Kind = TypeVar("Kind")  # a data class
Item = TypeVar("Item")

MOST_ITEMS = 256
MOST_TEXT = 2000


def items(header: JsonObject, key: str, build: Callable[[Any], Item]) -> list[Item]:
    """Returns the list `header[key]`, each item built by `build`. Raises ProtocolError, as all functions here do."""
    data = header.get(key) or []
    if not isinstance(data, list) or len(data) > MOST_ITEMS:
        raise ProtocolError(f"{key} is not a short list")
    return [build(item) for item in data]


def build(kind: type[Kind], data: object) -> Kind:
    """Returns a data class made of an object with its fields; other fields are left out. Raises ProtocolError."""
    if not isinstance(data, dict):
        raise ProtocolError(f"{kind.__name__} is not an object")
    known = _kinds(kind)  # type: ignore[arg-type]  # mypy takes a type[Kind] for one without a hash
    values = {name: checked(value, known[name], name) for name, value in data.items() if name in known}
    try:
        return kind(**values)
    except TypeError:
        raise ProtocolError(f"{kind.__name__} lacks a field") from None


@cache
def _kinds(kind: type[Any]) -> dict[str, str]:
    return {field.name: str(field.type) for field in fields(kind)}


@overload
def checked(value: object, kind: Literal["int"], name: str) -> int: ...
@overload
def checked(value: object, kind: Literal["bool"], name: str) -> bool: ...
@overload
def checked(value: object, kind: Literal["str"], name: str) -> str: ...
@overload
def checked(value: object, kind: Literal["list[int]"], name: str) -> list[int]: ...
@overload
def checked(value: object, kind: Literal["list[str]"], name: str) -> list[str]: ...
@overload
def checked(value: object, kind: str, name: str) -> Any: ...


def checked(value: object, kind: str, name: str) -> Any:
    """Returns the value if it is of the kind that a data class's annotation names; texts lose control characters.

    Texts are cut to MOST_TEXT characters. Raises ProtocolError.
    """
    if kind == "int" and type(value) is int and abs(value) < 1 << 62:
        return value
    if kind == "str" and type(value) is str:
        return several_lines(value[:MOST_TEXT])
    if kind == "bool" and type(value) is bool:
        return value
    if kind == "list[int]" and isinstance(value, list) and len(value) <= MOST_ITEMS:
        return [checked(item, "int", name) for item in value]
    if kind == "list[str]" and isinstance(value, list) and len(value) <= MOST_ITEMS:
        return [checked(item, "str", name) for item in value]
    if kind.endswith("| None"):
        return None if value is None else checked(value, kind.removesuffix("| None").strip(), name)
    raise ProtocolError(f"{name} is not {kind}")
