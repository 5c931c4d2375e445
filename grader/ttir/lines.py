"""Regular expressions for the lines of MLIR's generic form.

They never go back over what they have matched (`*+`, `++`), so a line takes time in proportion to its length.
"""

from __future__ import annotations

import re

from grader.ttir.attributes import STRING
from grader.ttir.module import BadText, Type
from grader.ttir.types import type_of

MOST_RESULTS = 1024  # of an operation

_RESULT = r"%[\w$.\-]++(?::\d{1,4})?"
_BRACES = rf'(?:[^"}}]++|{STRING})*+'
_TYPES = r'\(([^()"]*+)\) -> (\([^()"]*+\)|[^\s()"]++)'
_END = rf"(?: \{{(?P<more>{_BRACES})\}})? : (?P<types>{_TYPES}) loc\((?P<location>.*+)"
OPERATION = re.compile(
    rf' *+(?:(?P<results>{_RESULT}(?:, {_RESULT})*+) = )?"(?P<name>[\w.]++)"\((?P<operands>[^()"]*+)\)'
    + rf'(?:\[(?P<successors>[^\]"]*+)\])?(?: <\{{(?P<attributes>(?:[^"}}]++|{STRING}|\}}(?!>))*+)\}}>)?'
    + rf"(?:(?P<opens> \(\{{)|{_END})",
    re.ASCII,
)
CLOSE = re.compile(rf" *+\}}\){_END}", re.ASCII)
LABEL = re.compile(r" *+\^(bb\d+)(?:\((.*)\))?:(?:  // .*)?", re.ASCII)
_TYPE_LINE = re.compile(_TYPES, re.ASCII)
_LOCATION = rf'(?:[^"()]++|{STRING}|\((?:[^"()]++|{STRING}|\([^"()]*+\))*+\))*+'
_ARGUMENT = re.compile(rf'(%[\w$.\-]++): ([^\s()"]++) loc\(({_LOCATION})\)(?:, |$)', re.ASCII)
ALIAS = re.compile(r"#(\w+) = (.*)", re.ASCII)
_SUCCESSOR = re.compile(r"\^(bb\d+)", re.ASCII)


def types_of(text: str) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
    """Returns the types before and after the arrow of `(i32, f32) -> i1`. Raises BadText."""
    match = _TYPE_LINE.fullmatch(text)
    if match is None:
        raise BadText(f"types that cannot be read: {text[:60]!r}")
    return _type_list(match[1]), _type_list(match[2].removeprefix("(").removesuffix(")"))


def _type_list(text: str) -> tuple[Type, ...]:
    return tuple([type_of(part) for part in text.split(", ")]) if text else ()


def result_names(text: str) -> list[str]:
    """Returns the names of results: `%a, %b:2` stands for %a, %b#0 and %b#1. Raises BadText."""
    names: list[str] = []
    for part in text.split(", "):
        name, _, count = part.partition(":")
        if len(names) + int(count or 1) > MOST_RESULTS:
            raise BadText(f"more than {MOST_RESULTS} results")
        names += [f"{name}#{number}" for number in range(int(count))] if count else [name]
    return names


def arguments_of(text: str) -> tuple[list[str], tuple[Type, ...], list[str]]:
    """Returns names, types and locations of `%a: i32 loc(...), %b: f32 loc(...)`. Raises BadText."""
    names, types, places, position = [], [], [], 0
    while position < len(text):
        match = _ARGUMENT.match(text, position)
        if match is None:
            raise BadText(f"a block's arguments that cannot be read: {text[position : position + 60]!r}")
        names.append(match[1])
        types.append(type_of(match[2]))
        places.append(match[3])
        position = match.end()
    return names, tuple(types), places


def labels_of(text: str) -> list[str]:
    labels = []
    for part in text.split(", "):
        match = _SUCCESSOR.fullmatch(part)
        if match is None:
            raise BadText(f"a successor that cannot be read: {part[:60]!r}")
        labels.append(match[1])
    return labels
