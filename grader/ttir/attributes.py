"""Reads attributes as Python values.

One regular expression takes the text apart token by token and never goes back, so that a hostile text costs no more
than its length; what the reader does not know is refused.
"""

from __future__ import annotations

import re
from typing import Any

from grader.ttir.floats import WIDTHS, float_of_bits
from grader.ttir.module import BadText, Dense, Type
from grader.ttir.types import type_of

STRING = r'"(?:[^"\\]++|\\.)*+"'
_MOST_DEPTH = 8  # of lists in dictionaries in lists
_NUMBER = r"-?0x[0-9A-Fa-f]++|-?\d++(?:\.\d*+(?:[eE][+-]?\d++)?)?"
_ANGLES = r'<(?:[^<>"]++|<(?:[^<>"]++|<[^<>"]*+>)*+>)*+>'
_TOKEN = re.compile(
    rf"""\s*+(?:
      (?P<string>{STRING})
    | dense<(?P<dense>(?:[^<>"]++|{STRING})*+)>
    | array<(?P<array>[^<>"]*+)>
    | (?P<number>{_NUMBER})
    | \#(?P<alias>\w++)(?![\w.<])
    | \#[\w.]++<(?P<opaque>(?:[^<>"]++|<[^<>"]*+>)*+)>
    | @(?P<symbol>[\w$.\-]++|{STRING})
    | (?P<function>\([^()"]*+\)\s*->\s*(?:\([^()"]*+\)|[^\s,()"]++))
    | (?P<word>!?[A-Za-z_][\w.$]*+(?:{_ANGLES})?)
    | (?P<mark>[\[\]{{}}=,:])
    )""",
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t"}
_ELEMENT = re.compile(rf"\s*+({_NUMBER}|true|false)\s*+(?:,|$)", re.ASCII)
_INTEGER = re.compile(r"-?(?:0|[1-9]\d*)|0x[0-9A-Fa-f]+", re.ASCII)


def string_of(text: str) -> str:
    """Returns the text between the quotes of `"..."`, with escapes undone."""
    inside = text[1:-1]
    if "\\" not in inside:
        return inside
    whole = _ESCAPE.sub(_character, inside.encode("utf-8", "surrogatepass"))
    return whole.decode("utf-8", "replace")


def _character(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes.fromhex(code.decode()) if len(code) == 2 else _ESCAPED.get(code, code)


def attributes_of(text: str, aliases: dict[str, str]) -> dict[str, Any]:
    """Returns the values of `name = value, name = value, flag`, where a flag is True. Raises BadText.

    aliases: the module's `#name = text`.
    """
    return _Reader(text, aliases).dictionary("end", 0) if text else {}


class _Reader:
    def __init__(self, text: str, aliases: dict[str, str]) -> None:
        self.aliases = aliases
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.at = 0
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise BadText(f"an attribute that cannot be read: {text[position : position + 60]!r}")
            self.kinds.append(match.lastgroup)
            self.texts.append(match[match.lastgroup])
            position = match.end()
        self.kinds += ["end", "end"]
        self.texts += ["end", "end"]

    def take(self, mark: str) -> bool:
        if self.texts[self.at] == mark and self.kinds[self.at] in ("mark", "end"):
            self.at += 1
            return True
        return False

    def dictionary(self, closing: str, depth: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        if self.take(closing):
            return entries
        while True:
            kind, name = self.kinds[self.at], self.texts[self.at]
            if kind not in ("word", "string"):
                raise BadText(f"an attribute's name is missing before {name[:60]!r}")
            self.at += 1
            name = string_of(name) if kind == "string" else name
            if name in entries:
                raise BadText(f"the attribute {name} is given twice")
            entries[name] = self.value(depth) if self.take("=") else True
            if self.take(closing):
                return entries
            self.expect(",")

    def expect(self, mark: str) -> None:
        if not self.take(mark):
            raise BadText(f"{mark!r} is missing before {self.texts[self.at][:60]!r}")

    def list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        if self.take("]"):
            return items
        while True:
            items.append(self.value(depth))
            if self.take("]"):
                return items
            self.expect(",")

    def value(self, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise BadText("attributes in attributes in attributes")
        kind, text = self.kinds[self.at], self.texts[self.at]
        self.at += 1
        if kind == "number":
            return number_of(text, self.type())
        if kind == "dense":
            return dense_of(text, self.type())
        if kind == "array":
            return array_of(text)
        if kind in ("string", "symbol"):
            return string_of(text) if text.startswith('"') else text
        if kind == "alias":
            return self.aliases.get(text) or _missing(text)
        if kind in ("opaque", "function"):
            return text
        if kind == "word" and text in ("true", "false"):
            return text == "true"
        if kind == "mark" and text == "[":
            return self.list(depth + 1)
        if kind == "mark" and text == "{":
            return self.dictionary("}", depth + 1)
        raise BadText(f"an attribute's value that cannot be read: {text[:60]!r}")

    def type(self) -> Type:
        self.expect(":")
        if self.kinds[self.at] != "word":
            raise BadText(f"a type is missing before {self.texts[self.at][:60]!r}")
        self.at += 1
        return type_of(self.texts[self.at - 1])


def _missing(alias: str) -> str:
    raise BadText(f"#{alias} is not defined")


def number_of(text: str, type: Type) -> int | float | bool:
    """Returns `7`, `-1`, `1.5e+00` or the bits of a float, `0x7F800000`, as a value of `type`. Raises BadText."""
    element = type.element
    if type.kind != "number":
        raise BadText(f"the number {text[:40]} of a type that is no number")
    if text in ("true", "false"):
        if element != "i1":
            raise BadText(f"{text} as a value of {element}")
        return text == "true"
    if element in WIDTHS:
        return _float(text, element)
    if _INTEGER.fullmatch(text) is None or len(text) > 24:
        raise BadText(f"{text[:40]} as a value of {element}")
    value, bits = int(text, 0), int(element[1:])
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise BadText(f"{text[:40]} does not fit {element}")
    if bits == 1:
        return bool(value & 1)
    return value - (1 << bits) if value >> bits - 1 > 0 else value


def _float(text: str, element: str) -> float:
    if not text.startswith("0x"):
        if "." not in text:
            raise BadText(f"{text[:40]} as a value of {element}")
        return float(text)
    try:
        return float_of_bits(int(text[:20], 16), element)
    except OverflowError as error:
        raise BadText(str(error)) from None


def array_of(text: str) -> list[int | float | bool]:
    """Returns the values of `i32: 1, 0`, the inside of a dense array. Raises BadText."""
    element, _, values = text.partition(":")
    type = type_of(element.strip())
    return [number_of(value, type) for value in _elements(values)]


def dense_of(text: str, type: Type) -> Dense:
    """Returns the inside of `dense<...>` for a tensor. Raises BadText.

    The text holds a single value for all elements, all values in row order, or the bytes of all values.
    """
    element = Type(type.element, (), type.kind)
    if not type.shape:
        raise BadText("dense<...> of a type that is no tensor")
    if text.startswith('"'):
        values = _values_of_bytes(text, element)
    else:
        values = [number_of(value, element) for value in _elements(text.replace("[", " ").replace("]", " "))]
    if len(values) not in (1, type.lanes):
        raise BadText(f"{len(values)} values for a tensor of {type.lanes} elements")
    return Dense(tuple(values))


def _elements(text: str) -> list[str]:
    elements, position, end = [], 0, len(text.rstrip())
    while position < end:
        match = _ELEMENT.match(text, position)
        if match is None:
            raise BadText(f"values that cannot be read: {text[position : position + 60]!r}")
        elements.append(match[1])
        position = match.end()
    return elements


def _values_of_bytes(text: str, element: Type) -> list[int | float | bool]:
    """Returns the elements whose bytes `"0x..."` holds, the lowest byte first. Raises BadText."""
    try:
        raw = bytes.fromhex(text[3:-1]) if text.startswith('"0x') else b""
    except ValueError:
        raw = b""
    width = WIDTHS.get(element.element) or int(element.element[1:])
    if width == 1 or not raw or len(raw) % (width // 8):
        raise BadText(f"dense<{text[:40]}...> of {element.element} cannot be read")
    size = width // 8
    whole = [int.from_bytes(raw[at : at + size], "little") for at in range(0, len(raw), size)]
    if element.element in WIDTHS:
        return [float_of_bits(bits, element.element) for bits in whole]
    return [bits - (1 << width) if bits >> width - 1 else bits for bits in whole]
