"""Constexpr functions that nobody wrote: the evaluator gives what Python gives, or raises."""

from __future__ import annotations

import ast
import inspect
import random
import warnings
from typing import Any

import triton.language as tl

from grader.front_end.constexpr_evaluator import NotEvaluated, evaluator

NAMES = ("a", "b", "n", "X", "T", "max", "len")
SCOPE = {"X": tl.constexpr(2), "T": (tl.constexpr(1.0), 2, "a")}
LEAVES = (*NAMES, *NAMES, "1", "-1", "2.5", "True", "None", "'ab'", "float('nan')", "()")
SHAPES = (
    "({} + {})", "({} * {})", "({} // {})", "({} % {})", "({} < {})", "({} == {})", "({} in {})", "({} is {})",
    "({} < {} == {})", "({} and {})", "({} or {})", "(not {})", "({} if {} else {})", "({}, {})", "[{}, {}]",
    "{{{}: {}}}", "{}[{}]", "{}[::-1]", "[{} for n in {} if {}]", "sum({} for a in {})", "sorted({})", "set({})",
    "isinstance({}, int)", "isinstance({}, (tuple, str))", "hasattr({}, 'value')", "{}.index({})", "'%s' % {}",
    "tuple({})", "max({}, {})", "{}.value", "float({})", "{{{}: {} for b in {}}}",
)  # fmt: skip
STATEMENTS = ("{name} = {value}", "{name} += {value}", "{name}: int", "a, b = {value}", "return {value}", "pass")
NEVER = (
    "def {name}(): pass",
    "del {name}",
    "import os as {name}",
    "yield 1",
    "for {name} in n: pass",
    "lambda: (yield)",
)
AROUND = ("if {value}:", "for {name} in {value}:", "for {name} in (1, 2):")


def expression(draw: random.Random, depth: int = 0) -> str:
    if depth > 3 or draw.random() < 0.3:
        return draw.choice(LEAVES)
    shape = draw.choice(SHAPES)
    return shape.format(*(expression(draw, depth + 1) for _ in range(3)))


def body(draw: random.Random, margin: str) -> list[str]:
    lines = []
    for _ in range(draw.randint(1, 3)):
        given = {"name": draw.choice(NAMES), "value": expression(draw)}
        kind = draw.randint(0, 5)
        if kind == 0:
            lines += [f"{margin}if n < 0:", f"{margin}    {draw.choice(NEVER).format(**given)}"]
        elif kind == 1 and len(margin) < 12:
            lines += [margin + draw.choice(AROUND).format(**given), *body(draw, margin + "    ")]
        else:
            lines.append(margin + draw.choice(STATEMENTS).format(**given))
    return lines


def result(function: Any, arguments: tuple) -> tuple:
    """Returns what a call gives, as text and class by class; ("raises",) for an error of any kind."""
    try:
        return "gives", repr(function(*arguments))
    except NotEvaluated:
        return ("refused",)
    except Exception:
        return ("raises",)


def test_what_is_given_is_what_python_gives():
    seen = {"gives": 0, "raises": 0, "refused": 0}
    for seed in range(1500):
        draw = random.Random(seed)
        text = "\n".join(["def f(a, b=2):", "    n = 3", *body(draw, "    "), f"    return {expression(draw)}"])
        with warnings.catch_warnings(action="ignore"):
            try:
                code = compile(text, "program", "exec", dont_inherit=True)
            except SyntaxError:
                continue
            python = dict(SCOPE)
            exec(code, python)
            (node,) = ast.parse(text).body
        ours = evaluator(node, SCOPE, inspect.signature(python["f"]))
        for arguments in ((3,), (tl.constexpr(2), (1, 2)), ("ab",)):
            found = result(ours, arguments)
            seen[found[0]] += 1
            assert found[0] != "gives" or found == result(python["f"], arguments), f"{arguments}\n{text}"
    assert min(seen.values()) > 200, seen
