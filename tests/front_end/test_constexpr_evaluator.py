"""A constexpr function gives what Python would, and what is not evaluated is refused by its line."""

from __future__ import annotations

import ast
import inspect

import pytest
import triton.language as tl

from grader.front_end.constexpr_evaluator import NotEvaluated, evaluator
from grader.front_end.told_values import Unseen

FUNCTIONS = {
    "a sum": ("def f(a, b=2): return a + b", [(3,), (3, 4)]),
    "a loop": ("def f(n):\n    k = 0\n    for i in range(n):\n        k += i * i\n    return k", [(0,), (7,)]),
    "a loop with ends": (
        "def f(n):\n    k = 0\n    while True:\n        k += 1\n        if k % 2: continue\n        if k > n: break\n"
        "    else:\n        return -1\n    return k",
        [(0,), (5,)],
    ),
    "a loop to its end": ("def f(n):\n    for i in range(n):\n        pass\n    else:\n        return i\n", [(4,)]),
    "a list": ("def f(n):\n    a = [1, 2]\n    a.append(n)\n    a[0] = 5\n    return tuple(a[::2]), a[-1]", [(3,)]),
    "a dictionary": ("def f(n):\n    d = {'a': n}\n    d['b'] = 2\n    return d['a'] + d.get('c', 4)", [(3,)]),
    "names in parts": ("def f(n):\n    (a, b), c = (n, 2), 3\n    return a * 100 + b * 10 + c", [(1,)]),
    "words": ("def f(n): return f'{n:04d}' + 'ab'.upper()", [(7,)]),
    "comparisons": ("def f(n): return 1 < n <= 4 and n in (2, 3) or not n", [(0,), (2,), (4,), (9,)]),
    "one of two": ("def f(n): return n if n > 3 else -n", [(2,), (5,)]),
    "operators": ("def f(n): return (n << 2 | 1) ^ 3, n // 2, n % 3, n ** 2, ~n, n / 4, n >> 1, n & 6, -n", [(11,)]),
    "builtins": ("def f(n): return max(n, 3), min([n, 4]), sum((1, n)), abs(-n), len('abc'), int(2.7)", [(5,)]),
    "named arguments": ("def f(a, *, b=1): return a - b", [(5,)]),
    "itself": ("def f(n): return 1 if n < 2 else n * f(n - 1)", [(5,)]),
    "nothing": ("def f(n):\n    'words'\n    n += 1", [(5,)]),
    "an annotation": ("def f(n: int) -> int:\n    k: int = n\n    return k", [(5,)]),
    "words as they are written": ("def f(n): return f'{n!r:>4} {n!s} {n!a}' + f'{(n,)!r}'", [(7,), ("é",)]),
    "a list in place": (
        "def f(n):\n    a = b = [1]\n    a += [n]\n    a[0] += 2\n    return tuple(b)",
        [(3,)],
    ),
    "arguments in their order": ("def f(n):\n    a = [5, n]\n    return round(a.pop(), ndigits=a.pop())", [(3,)]),
    "any number of arguments": ("def f(*n, **m): return n, m.get('k')", [(), (1, 2)]),
    "nothing, by identity": ("def f(n): return n is None, None is not n, (n == 1) is True", [(None,), (1,)]),
    "lists of rounds": (
        "def f(n): return [i * j for i in range(n) if i % 2 for j in range(i)], {i: n for i in 'ab'}, {i for i in [n]}",
        [(5,), (0,)],
    ),
    "rounds that end early": ("def f(n):\n    i = 7\n    return any(1 // i for i in (n, 0)), i", [(1,)]),
    "rounds in rounds": ("def f(n): return sum(sum(k + i for k in range(i)) for i in range(n))", [(5,)]),
    "a name of rounds that is the function's, too": (
        "def f(n): return [n for n in range(n)], n, [[n + m for m in (n,)] for n in (n, 2)]",
        [(3,)],
    ),
    "a name of rounds that has a value before the next": (
        "def f(n):\n    m = 5\n    return [m for m in (n, 2) for k in range(m)], {m: k for k in (n,) for m in (k,)}, m",
        [(3,)],
    ),
    "comparisons of constexpr values": (
        "def f(n): return isinstance(n == 3, bool), isinstance(n in (3,), bool), 1 < n < 5, 1 < n < 2, n < 4 < n",
        [(tl.constexpr(3),)],
    ),
    "parts of things": ("def f(n): return n[1], 'abc'[n[0]], range(9)[n[1]], {2: 5}[n[1]]", [((1, 2),)]),
    "an assertion": ("def f(n):\n    assert n > 2, 'few'\n    return n", [(5,)]),
}


def both(text: str):
    scope: dict = {}
    exec(text, scope)
    ours: dict = {}
    (node,) = ast.parse(text).body
    ours["f"] = evaluator(node, ours, inspect.signature(scope["f"]))
    return scope["f"], ours["f"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_gives_what_python_gives(name):
    text, calls = FUNCTIONS[name]
    python, ours = both(text)
    for arguments in calls:
        assert repr(ours(*arguments)) == repr(python(*arguments))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def f(n): return n // 0", ZeroDivisionError),
        ("def f(n): return (1, 2)[n]", IndexError),
        ("def f(n):\n    assert n > 100", AssertionError),
        ("def f(n): return m", NameError),
        ("def f(a, b): return a", TypeError),
        ("def f(): return 1", TypeError),
        ("def f(n):\n    a, b = 1, 2, 3", ValueError),
        ("def f(n): return f(n)", RecursionError),
        ("def f(n):\n    if n < 0:\n        max = n\n    return max(n, 1)", UnboundLocalError),
        ("def f(n):\n    [i for i in (n,)]\n    return i", NameError),
        ("def f(n):\n    if n < 0:\n        def max(): pass\n    return max(n, 1)", UnboundLocalError),
        ("def f(n):\n    if n < 0:\n        del max\n    return max(n, 1)", UnboundLocalError),
        ("def f(n):\n    if n < 0:\n        import os as max\n    return max(n, 1)", UnboundLocalError),
        ("def f(n):\n    max: int\n    return max(n, 1)", UnboundLocalError),
        (
            "def f(n):\n    if n < 0:\n        match n:\n            case max: pass\n    return max(n, 1)",
            UnboundLocalError,
        ),
        ("def f(n): return [n for y in (1,) for n in (n,)]", UnboundLocalError),
        ("def f(n): return [max for y in (1,) for max in (max,)]", UnboundLocalError),
        ("def f(n): return sum(n for y in (1,) for n in (n,))", UnboundLocalError),
        ("def f(n): return [0 for y in (1,) if n for n in (2,)]", UnboundLocalError),
        (
            "def f(n): return [0 for y in (1,) for z in [n for w in (1,) for n in (n,)] for n in (1,)]",
            UnboundLocalError,
        ),
        ("def f(n): return {n: 0 for y in (n,) for n in range(n)}", UnboundLocalError),
        ("def f(n):\n    if n < 0:\n        [0 for _ in () if (max := 1)]\n    return max(n, 1)", UnboundLocalError),
    ],
)
def test_it_raises_what_python_raises(text, error):
    for function in both(text):
        with pytest.raises(error):
            function(7)


@pytest.mark.parametrize(
    "body",
    [
        "import os", "return (lambda: n)()", "def g(): pass", "global n",
        "with n: pass", "try:\n        pass\n    finally:\n        pass", "return (m := n)", "del n", "a, *b = 1, 2",
        "n.x = 1", "raise ValueError", "return max(*[1, 2])", "return max(1, **{})", "print(n, file=n)",
        "yield n", "return {**{}}", "class A: pass", "return n is 7", "n @= n", "return f'{max}'", "return str(max)",
        "return str((n, max))", "return '%s' % max", "return '%s' % (n, max)", "return max[n]", "return max(n, _m=1)",
        "s = '%s'; s %= max", "n[0]: int", "if n < 0:\n        yield n", "if n < 0:\n        n = yield",
        "return list(set(('a', 'b')))", "return {i for i in 'ab'}", "return {float('nan'): 1}",
        "return float('nan') in (1.0, 2.0)", "return (1.0, float('nan')) == n", "return [float('nan')].index(n)",
        "return max([(float('nan'), 1), (n, 2)])", "return sorted((i, float('nan')) for i in (1, 2))",
        "d = {}\n    d[float('nan')] = n", "return {float('nan') for i in (n,)}",
    ],
)  # fmt: skip
def test_what_is_not_evaluated_is_refused_by_its_line(body):
    (node,) = ast.parse(f"def f(n):\n    {body}").body
    with pytest.raises(NotEvaluated, match="line [23]: a constexpr function cannot hold `"):
        evaluator(node, {}, inspect.signature(lambda n: n))(7)


@pytest.mark.parametrize("use", ["X == 1", "1 if X else 0", "not X", "(X, 1)", "n", "len([X])"])
def test_a_value_that_a_kernel_cannot_see_has_no_truth_and_no_equality(use):
    (node,) = ast.parse(f"def f(n):\n    return {use}").body
    with pytest.raises(NotEvaluated, match="line 2: [Xn] is no number, text, type or function of Triton here"):
        evaluator(node, {"X": Unseen()}, inspect.signature(lambda n: n))(Unseen() if use == "n" else 1)
