"""Objects of the file's process that are as Triton and Python made them: a recipe tells no others.

Host code can change an object after it was made: a method of a class of tuples, the name of a dtype, the type of a
constant. A kernel would see the change, and the front end makes the object anew without it.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from types import CodeType
from typing import Any

from triton.language import constexpr, dtype

# Python adds these to a class that a class statement or namedtuple makes; none of them changes a value.
DESCRIBES = frozenset({
    "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__doc__", "__firstlineno__",
    "__match_args__", "__module__", "__orig_bases__", "__parameters__", "__slots__", "__static_attributes__",
})  # fmt: skip


def is_plain_constexpr(value: Any) -> bool:
    """Returns whether a constant's type is the type of its value, as when it was made."""
    if type(value) is not constexpr or vars(value).keys() != {"value", "type"}:
        return False
    made = constexpr(value.value).type
    return type(value.type) is type(made) and vars(value.type) == vars(made)


def is_plain_dtype(value: Any) -> bool:
    return type(value) is dtype and vars(value) == vars(dtype(value.name))


def is_plain_tuple_class(kind: Any) -> bool:
    """Returns whether this is a class of tuples with names whose methods are as namedtuple makes them."""
    if type(kind) is not type or kind.__bases__ != (tuple,) or not isinstance(kind.__dict__.get("_fields"), tuple):
        return False
    try:
        made = _made(kind.__dict__["_fields"])
    except (TypeError, ValueError):  # no names
        return False
    own, names = vars(kind), vars(made).keys() - DESCRIBES
    if any(_deed(own.get(name)) != _deed(vars(made)[name]) for name in names - {"_field_defaults"}):
        return False
    if any(name.startswith("__") for name in own.keys() - names - DESCRIBES):
        return False
    new = own["__new__"].__func__
    is_ours = new.__globals__.get("_tuple_new") == tuple.__new__
    defaults = own.get("_field_defaults")
    return is_ours and isinstance(defaults, dict) and (new.__defaults__ or ()) == tuple(defaults.values())


@cache
def _made(fields: tuple[str, ...]) -> type:
    """Returns a class with these names; `rename` keeps the _1 of a name that Python has put there by itself."""
    return namedtuple("made", fields, rename=True)


def _deed(member: Any) -> Any:
    """Returns what a member of a class does: a function's code, the number of a field, or the member itself."""
    member = getattr(member, "__func__", member)
    code = getattr(member, "__code__", None)
    if isinstance(code, CodeType):
        return code
    return member.__reduce__()[1][0] if type(member).__name__ == "_tuplegetter" else member
