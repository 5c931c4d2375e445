"""Works that are nearly the same: a hint to look at two of them, never a verdict.

Winnowing, as Schleimer, Wilkerson and Aiken describe it (Winnowing: local algorithms for document fingerprinting,
SIGMOD 2003): the syntax tree of what a student wrote, names made alike, is read as a row of tokens and cut into
overlapping runs; of the hashes of neighbouring runs the least stands for them. Two works that share a passage of
WINDOW + RUN - 1 tokens share a fingerprint. In a kernel of ten lines much is bound to be alike, so what the stub gives
does not count, nor what stands in the solution or in many of the other works.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

RUN, WINDOW = 10, 4  # tokens, hashes
LEAST_SHARED = 8  # fingerprints; less is chance
LEAST_SHARE = 0.7  # of all that is particular to either
COMMON_TO, COMMON_SHARE = 4, 0.1  # a fingerprint in more works than this, and in a larger share of them, tells nothing
KEPT_NAMES = frozenset(("tl", "triton", "torch", "math"))
NAME = "="  # no other token begins so
NAMED = {(ast.arg, "arg"), (ast.FunctionDef, "name")}  # fields that name what is the student's own


@dataclass(frozen=True)
class Pair:
    """Two works by name, the share of their particular fingerprints that they have in common, and how many."""

    one: str
    other: str
    share: float
    count: int


def near_identical(works: dict[str, str], stub: str, solution: str) -> list[Pair]:
    """Pairs of the works (name -> text) to look at, the most alike first."""
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


def fingerprints(text: str, stub: str) -> set[int]:
    """Of what `text` has beyond the stub; empty for a text that is no Python."""
    try:
        tokens = [_same_name(token) for token in _own_tokens(ast.parse(text), _given(stub))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    hashes = [_hash(tokens[start : start + RUN]) for start in range(len(tokens) - RUN + 1)]
    return {min(hashes[start : start + WINDOW]) for start in range(max(1, len(hashes) - WINDOW + 1)) if hashes}


def _shared(prints: dict[str, set[int]]) -> Counter[tuple[str, str]]:
    """How many fingerprints each pair has in common; of pairs that have any."""
    holding = defaultdict(list)
    for name, marks in prints.items():
        for mark in marks:
            holding[mark].append(name)
    return Counter(pair for names in holding.values() for pair in combinations(sorted(names), 2))


@dataclass(frozen=True)
class _Given:
    """The tokens of each statement that a stub has, and of each that a function of it has."""

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
    """Of the statements that the stub does not have; of its functions those of their bodies."""
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
    """A syntax tree in the order of its text: comments, blank lines and parentheses are gone. Names begin with NAME."""
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
    """Every name of the student's own is the same."""
    return token if not token.startswith(NAME) or token[len(NAME) :] in KEPT_NAMES else NAME


def _hash(tokens: list[str]) -> int:
    return int.from_bytes(hashlib.blake2b("\0".join(tokens).encode(), digest_size=8).digest())
