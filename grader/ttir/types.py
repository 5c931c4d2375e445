"""Reads the types that the text names."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from grader.ttir.module import BadText, Type

MOST_ELEMENTS = 1 << 20  # of a tensor, Triton's own limit
MOST_DIMENSIONS = 20  # tl.sort takes a tile apart into dimensions of 2, and there are at most 2^20 elements

NUMBERS = frozenset(
    [
        "i1",
        "i8",
        "i16",
        "i32",
        "i64",
        "f16",
        "bf16",
        "f32",
        "f64",
        "f8E4M3FN",
        "f8E5M2",
        "f8E4M3B11FNUZ",
        "f8E4M3FNUZ",
        "f8E5M2FNUZ",
    ]
)
SIGNED_NUMBERS = frozenset(["si8", "si16", "si32", "si64", "ui8", "ui16", "ui32", "ui64"])  # in descriptors alone

_FLOATS = frozenset(name for name in NUMBERS if "f" in name)

_TENSOR = re.compile(r"((?:[1-9]\d{0,8}x)+)(\S+)", re.ASCII)
_LONGEST = 200  # characters of one type


@lru_cache(4096)
def type_of(text: str) -> Type:
    """Returns the type of `i32`, `!tt.ptr<f32>`, `tensor<64x!tt.ptr<f32>>`, `!tt.tensordesc<32x32xf32>` and so on.

    A pointer to pointers has the element "!tt.ptr<...>"; a block pointer (Triton 3.7 and older) has the block's shape
    and the kind "block pointer". Raises BadText.
    """
    if text in NUMBERS:
        return Type(text)
    if len(text) > _LONGEST:
        raise BadText(f"a type of {len(text)} characters")
    if text.startswith("tensor<") and text.endswith(">"):
        shape, inner = _tensor(text[7:-1], text)
        if inner in NUMBERS:
            return Type(inner, shape)
        element = type_of(inner) if inner.startswith("!tt.ptr<") else None
        if element is not None and element.kind == "pointer":
            return Type(element.element, shape, "pointer")
    elif text.startswith("!tt.ptr<") and text.endswith(">"):
        return _pointer(text[8:-1], text)
    elif text.startswith("!tt.tensordesc<") and text.endswith(">"):
        inside = text[15:-1]
        if inside.startswith("tensor<") and inside.endswith(">"):
            inside = inside[7:-1]
        shape, inner = _tensor(inside, text)
        if inner in NUMBERS or inner in SIGNED_NUMBERS:
            return Type(inner, shape, "descriptor")
    raise BadText(f"the type {_short(text)} is not known here yet")


def is_float(type: Type) -> bool:
    return type.kind == "number" and type.element in _FLOATS


def is_integer(type: Type) -> bool:
    return type.kind == "number" and type.element not in _FLOATS


def _pointer(inside: str, text: str) -> Type:
    if inside in NUMBERS:
        return Type(inside, (), "pointer")
    if inside.startswith("tensor<") and inside.endswith(">"):
        shape, inner = _tensor(inside[7:-1], text)
        if inner in NUMBERS:
            return Type(inner, shape, "block pointer")
    elif type_of(inside).kind == "pointer":
        return Type(inside, (), "pointer")
    raise BadText(f"the type {_short(text)} is not known here yet")


def _tensor(inside: str, text: str) -> tuple[tuple[int, ...], str]:
    """Returns the shape and the element's name of `64x32xf32`. Raises BadText."""
    match = _TENSOR.fullmatch(inside)
    if match is None:
        raise BadText(f"the type {_short(text)} is not known here yet")
    shape = tuple(int(size) for size in match[1].split("x")[:-1])
    if len(shape) > MOST_DIMENSIONS or math.prod(shape) > MOST_ELEMENTS:
        raise BadText(f"a tensor of more than {MOST_ELEMENTS} elements or {MOST_DIMENSIONS} dimensions: {_short(text)}")
    return shape, match[2]


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
