"""Functions of the file that are what their lines say: a recipe names a function by its place, and no changed function.

Triton keeps a kernel's text, and Python a constexpr function's code. Host code can exchange either.
"""

from __future__ import annotations

import builtins
import inspect
import linecache
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from grader.front_end.triton_text_api import JITCallable, JITFunction

PYTHONS = dict(vars(builtins))  # before any line of a file has run
UNSURE = object()  # a default that Python and Triton read differently


def is_as_written(function: JITCallable) -> bool:
    """Returns whether a function's text, or code, is that of the lines in which it begins."""
    code = getattr(function.fn, "__code__", None)
    if not isinstance(code, CodeType):
        return False
    is_text = isinstance(function, JITFunction)
    return _has_text_of(code, function.src) if is_text else code in _codes_in(code.co_filename)


def _has_text_of(code: CodeType, text: str) -> bool:
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    begin = next((number for number, line in enumerate(lines) if line.lstrip().startswith("def ")), len(lines))
    written, given = lines[begin:], text.splitlines()
    margin = len(written[0]) - len(written[0].lstrip()) if written else 0
    last = max((line for line in _lines_of(code)), default=0) - code.co_firstlineno - begin
    return last < len(given) <= len(written) and all(
        one.rstrip() == line[margin:].rstrip() for one, line in zip(given, written)
    )


def _lines_of(code: CodeType) -> Iterator[int]:
    yield from (line for *_, line in code.co_lines() if line)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _lines_of(inner)


@cache
def _codes_in(path: str) -> frozenset[CodeType]:
    source = "".join(linecache.getlines(path))
    return frozenset(_with_inner(compile(source, path, "exec", dont_inherit=True)))


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _with_inner(inner)


def defaults_of(function: JITCallable) -> dict[str, Any]:
    """Returns the values of parameters that have a default; UNSURE for all if the signatures disagree."""
    signatures = [inspect.signature(function.fn), function.signature]
    read = [{name: one.default for name, one in each.parameters.items()} for each in signatures]
    first, *others = [*read, _raw_defaults(function.fn)]
    given = {name: value for name, value in first.items() if value is not inspect.Parameter.empty}
    is_sure = all(
        other.get(name, inspect.Parameter.empty) is value for other in others for name, value in first.items()
    )
    return given if is_sure else dict.fromkeys(first, UNSURE)


def _raw_defaults(function: FunctionType) -> dict[str, Any]:
    """Returns the defaults that Python uses in a call, by parameter."""
    names, given = function.__code__.co_varnames[: function.__code__.co_argcount], function.__defaults__ or ()
    return dict(zip(names[len(names) - len(given) :], given)) | (function.__kwdefaults__ or {})


def python_has(function: FunctionType, name: str) -> bool:
    """Returns whether the function sees Python's own object under this name, or nothing."""
    return getattr(function, "__builtins__", {}).get(name) is PYTHONS.get(name)
