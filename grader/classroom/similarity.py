"""Finds works that are nearly the same: a hint to look at both, never a verdict.

Winnowing, as Schleimer, Wilkerson and Aiken describe it (Winnowing: local algorithms for document fingerprinting,
SIGMOD 2003): the syntax tree of what a student wrote, with names made alike, is read as a sequence of tokens and cut
into overlapping runs. The least hash of WINDOW neighbouring runs becomes a fingerprint. Two works that share a passage
of WINDOW + RUN - 1 tokens share a fingerprint. In a kernel of ten lines much is bound to be alike, so the code of the
stub does not count, nor do fingerprints of the solution or of many other works.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from grader.course.regions import BEGIN, END

RUN, WINDOW = 10, 4  # tokens, hashes
LEAST_SHARED = 8  # fingerprints; less is chance
LEAST_SHARE = 0.7  # of all fingerprints that are particular to either work
COMMON_TO, COMMON_SHARE = 4, 0.1  # a fingerprint in more works than this, and in a larger share of them, tells nothing
KEPT_NAMES = frozenset(("tl", "triton", "torch", "math"))
NAME = "="  # no other token begins so
LEAST_OF_A_COPY = 35  # fingerprints of a kernel; of a shorter one all right kernels look alike
NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)  # what the parser raises
NAMED = {(ast.arg, "arg"), (ast.FunctionDef, "name")}  # fields that hold names of the student's choice


@dataclass(frozen=True)
class Pair:
    """Two works by name, and how many of their particular fingerprints they have in common.

    `share`: `count` as a share of all particular fingerprints of both.
    """

    one: str
    other: str
    share: float
    count: int


def near_identical(works: dict[str, str], stub: str, solution: str) -> list[Pair]:
    """Returns the pairs of works to look at, the most alike first. `works`: the students' texts, by name."""
    known = fingerprints(solution, stub)
    prints = {name: fingerprints(text, stub) - known for name, text in works.items()}
    counts = Counter(mark for marks in prints.values() for mark in marks)
    most = max(COMMON_TO, COMMON_SHARE * len(works))
    rare = {name: {mark for mark in marks if counts[mark] <= most} for name, marks in prints.items()}
    pairs = []
    for (one, other), count in _shared(rare).items():
        share = count / len(rare[one] | rare[other])
        if count >= LEAST_SHARED and share >= LEAST_SHARE:
            pairs.append(Pair(one, other, share, count))
    return sorted(pairs, key=lambda pair: (-pair.share, -pair.count, pair.one, pair.other))


def copies(works: dict[str, str], stub: str, shipped: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the names of works that are a kernel of the course to the letter, and of those that are one but for
    names, comments and layout; the second not of short kernels.
    """
    known = list(shipped)
    lines = [_lines(text) for text in known]
    shapes = [_shape(text) for text in known if not is_short(text, stub)]
    letter = [name for name, text in works.items() if _lines(text) in lines]
    return letter, [name for name, text in works.items() if name not in letter and _shape(text) in shapes]


def is_short(kernel: str, stub: str) -> bool:
    """Returns whether a kernel is so short that all right ones look alike."""
    return len(fingerprints(kernel, stub)) < LEAST_OF_A_COPY


def _lines(text: str) -> list[str]:
    """Returns the lines that are not blank and do not mark a region of a solution."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line not in ("", BEGIN, END)]


def fingerprints(text: str, stub: str) -> set[int]:
    """Returns the fingerprints of what `text` has beyond the stub; an empty set for a text that is no Python."""
    try:
        tokens = [_same_name(token) for token in _own_tokens(ast.parse(text), _given(stub))]
    except NO_PYTHON:
        return set()
    hashes = [_hash(tokens[start : start + RUN]) for start in range(len(tokens) - RUN + 1)]
    return {min(hashes[start : start + WINDOW]) for start in range(max(1, len(hashes) - WINDOW + 1)) if hashes}


def _shape(text: str) -> list[str]:
    """Returns all tokens but imports and docstrings, names made alike; ["no Python"] for a text that is none."""
    try:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.FunctionDef)):
                node.body = [each for each in node.body if not _is_import_or_text(each)]
        return list(map(_same_name, _tokens(tree)))
    except NO_PYTHON:
        return ["no Python"]


def _shared(prints: dict[str, set[int]]) -> Counter[tuple[str, str]]:
    """Returns how many fingerprints each pair has in common, for pairs that have any."""
    holding = defaultdict(list)
    for name, marks in prints.items():
        for mark in marks:
            holding[mark].append(name)
    return Counter(pair for names in holding.values() for pair in combinations(sorted(names), 2))


@dataclass(frozen=True)
class _Given:
    """The tokens of each statement of a stub, and of each statement in a function's body, by the function's name."""

    statements: set[tuple[str, ...]]
    bodies: dict[str, set[tuple[str, ...]]]


@functools.lru_cache(maxsize=8)
def _given(stub: str) -> _Given:
    statements = ast.parse(stub).body
    functions = [node for node in statements if isinstance(node, ast.FunctionDef)]
    return _Given(
        {tuple(_tokens(node)) for node in statements},
        {function.name: {tuple(_tokens(node)) for node in function.body} for function in functions},
    )


def _own_tokens(tree: ast.Module, given: _Given) -> Iterator[str]:
    """Yields the tokens of the statements that the stub does not have.

    A function of the stub is compared statement by statement; imports and docstrings are left out.
    """
    for node in tree.body:
        own, known = [node], given.statements
        if isinstance(node, ast.FunctionDef) and node.name in given.bodies:
            own, known = node.body, given.bodies[node.name]
        for statement in own:
            tokens = tuple(_tokens(statement))
            if tokens not in known and not _is_import_or_text(statement):
                yield from tokens


def _is_import_or_text(statement: ast.stmt) -> bool:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, (ast.Import, ast.ImportFrom))


def _tokens(node: ast.AST) -> Iterator[str]:
    """Yields the tokens of a syntax tree in the order of its text. Names begin with NAME.

    Comments, blank lines and parentheses are not in the tree.
    """
    if isinstance(node, ast.Name):
        yield NAME + node.id
        return
    yield type(node).__name__
    for field in node._fields:
        value = getattr(node, field, None)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST) and not isinstance(part, ast.expr_context):
                yield from _tokens(part)
            elif isinstance(part, str) and (type(node), field) in NAMED:
                yield NAME + part
            elif part is not None and not isinstance(part, ast.AST):
                yield repr(part)


def _same_name(token: str) -> str:
    """Returns NAME for every name of the student's own; any other token as it is."""
    return token if not token.startswith(NAME) or token[len(NAME) :] in KEPT_NAMES else NAME


def _hash(tokens: list[str]) -> int:
    return int.from_bytes(hashlib.blake2b("\0".join(tokens).encode(), digest_size=8).digest())
