"""The bindings of a name that a function sees are those that Python takes: programs are run, their values compared."""

from __future__ import annotations

import ast
import contextlib
import random
from collections.abc import Iterator
from types import CodeType

import pytest

from grader.front_end.bindings import FileScopes, at_last

SEEN = "def seen(): return X\n"
IN_A_CLASS = "class K:\n    {}\n    def seen(): return X\nseen = K.seen\n"
PROGRAMS = {  # X is 1 for the function `seen`, and 0 where another scope has a name X of its own
    "a class around": "X = 1\n" + IN_A_CLASS.format("X = 0"),
    "a class in a function": "def f():\n    X = 1\n    class K:\n        X = 0\n        def seen(): return X\n"
    "    return K.seen\nX = 0\nseen = f()\n",
    "an argument of a lambda in a default": "X = 1\ndef f(g=lambda X: X):\n    def seen(): return X\n"
    "    return seen\nseen = f()\n",
    "a nonlocal name of another function": "X = 1\ndef f():\n    X = 0\n    def g():\n        nonlocal X\n"
    "        X = 0\n    g()\nf()\n" + SEEN,
    "a global between": "X = 1\ndef f():\n    X = 0\n    def g():\n        global X\n        def seen(): return X\n"
    "        return seen\n    return g()\nseen = f()\n",
    "a private name": "_K__X = 1\nclass K:\n    global __X\n    __X = 1\n    def seen(): return _K__X\nseen = K.seen\n",
    "a value in a returned annotation": "X = 0\ndef f() -> (X := 1): pass\n" + SEEN,
    "a value in a default": "X = 0\ndef f(y=(X := 1)): pass\n" + SEEN,
    "a value that is bound again": "X = 0\nX = 1\n" + SEEN,
    "a value that a branch binds again": "X = 1\nif not X:\n    X = 0\n" + SEEN,
    "a name of a comprehension": "X = 1\n[0 for X in (0,)]\n" + SEEN,
    "a global in a function": "X = 0\ndef f():\n    global X\n    X = 1\nf()\n" + SEEN,
    "a nonlocal name": "X = 0\ndef f():\n    X = 0\n    def g():\n        nonlocal X\n        X = 1\n    g()\n"
    "    def seen(): return X\n    return seen\nseen = f()\n",
}
UNTOLD = {"a nonlocal name", "a global in a function", "a value in a returned annotation", "a value in a default"}
ALSO_ZERO = {"a value that a branch binds again"}


def compiled(text: str) -> CodeType:
    return compile(text, "program", "exec", dont_inherit=True)  # without this file's __future__


def seen_values(tree: ast.Module, name: str = "X") -> dict[str, set[int | None]]:
    """Returns the values that each function seen* may find; None stands for a value that its binding does not tell."""
    scopes = FileScopes(tree)
    functions = [one for one in scopes.around if isinstance(one, ast.FunctionDef) and one.name.startswith("seen")]
    return {
        one.name: {getattr(found.made_by, "value", None) for found in at_last(scopes.seen_by(one).bindings(name))}
        for one in functions
    }


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_function_sees_what_python_gives_it(title):
    scope: dict = {}
    exec(compiled(PROGRAMS[title]), scope)
    assert scope["seen"]() == 1
    values = seen_values(ast.parse(PROGRAMS[title]), "_K__X" if "_K__X" in PROGRAMS[title] else "X")["seen"]
    assert (1 in values or None in values) and (0 in values) == (title in ALSO_ZERO | UNTOLD)
    assert (None in values) == (title in UNTOLD or title == "a private name")


def statements(draw: random.Random, depth: int, count: Iterator[int]) -> list[str]:
    """Returns lines that bind X, each to a number of its own, and functions `seen*` that return it."""
    lines = draw.choice(([], [], [], ["global X"], ["nonlocal X"])) if depth else []
    for _ in range(draw.randint(1, 4)):
        n = next(count)
        simple = [
            f"X = {n}", f"X = {n}", f"if {n % 2}: X = {n}", f"for X in ({n},): pass", f"[X for X in ({n},)]",
            f"[0 for _ in (1,) if (X := {n})]", f"(lambda X: X)({n})", f"def g(y=lambda X=(X := {n}): X): pass",
            f"def seen{n}(): return X\nfound.append(seen{n})",
        ]  # fmt: skip
        nested = [f"def f{n}():", f"class K{n}:", f"def f{n}(X={n}):"] if depth < 3 else []
        one = draw.choice(simple + simple[-1:] + 2 * nested)
        lines += one.split("\n")
        if one in nested:
            lines += ["    " + line for line in statements(draw, depth + 1, count)]
            lines += [f"f{n}()"] if one.startswith("def") else []
    return lines


def test_programs_that_nobody_wrote_see_what_python_gives_them():
    compared = told = 0
    for seed in range(3000):
        draw = random.Random(seed)
        text = "\n".join(["X = 1", *statements(draw, 0, iter(range(2, 1000)))])
        found: list = []
        with contextlib.suppress(SyntaxError, NameError):
            exec(compiled(text), {"found": found})
        values = seen_values(ast.parse(text)) if found else {}
        for function in found:
            with contextlib.suppress(NameError):
                value, possible = function(), values[function.__name__]
                compared += 1
                told += None not in possible
                assert value in possible or None in possible, f"{function.__name__} sees {value} in\n{text}"
    assert compared > 500 and told > 250
