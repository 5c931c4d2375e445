"""Works that are nearly the same: a hint to look at two of them, never a verdict.

Winnowing, as Schleimer, Wilkerson and Aiken describe it (Winnowing: local algorithms for document fingerprinting,
SIGMOD 2003): the tokens of what a student wrote, names made alike, are cut into overlapping runs; of the hashes of
neighbouring runs the least stands for them. Two works that share a passage of WINDOW + RUN - 1 tokens share a
fingerprint. In a kernel of ten lines much is bound to be alike, so what the stub gives does not count, nor what stands
in the solution or in many of the other works.
"""

from __future__ import annotations

import ast
import hashlib
import io
import keyword
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

RUN, WINDOW = 10, 4  # tokens, hashes
LEAST_SHARED = 8  # fingerprints; less is chance
LEAST_SHARE = 0.7  # of all that is particular to either
COMMON_TO, COMMON_SHARE = 4, 0.1  # a fingerprint in more works than this, and in a larger share of them, tells nothing
KEPT_NAMES = frozenset(("tl", "triton", "torch", "math"))


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
        tokens = list(_tokens(_own_part(ast.parse(text), ast.parse(stub))))
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
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


def _own_part(tree: ast.Module, stub: ast.Module) -> Iterable[ast.stmt]:
    """The statements that the stub does not have; of its functions those of their bodies."""
    given = {ast.dump(statement) for statement in stub.body}
    bodies = {node.name: {ast.dump(s) for s in node.body} for node in stub.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in bodies:
            yield from (s for s in node.body if ast.dump(s) not in bodies[node.name] and not _is_text(s))
        elif ast.dump(node) not in given and not isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_text(node):
            yield node


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _tokens(statements: Iterable[ast.stmt]) -> Iterable[str]:
    """Comments, blank lines and the form of expressions are gone, every name of the student's own is the same."""
    for statement in statements:
        text = ast.unparse(_SameNames().visit(statement))
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING):
                yield token.string


class _SameNames(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.Name:
        kept = node.id in KEPT_NAMES or keyword.iskeyword(node.id)
        return ast.Name(node.id if kept else "name", node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg("name", None)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = "name"
        return self.generic_visit(node)


def _hash(tokens: list[str]) -> int:
    return int.from_bytes(hashlib.blake2b("\0".join(tokens).encode(), digest_size=8).digest())
