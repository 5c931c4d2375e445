"""A digest of the code that runs: a measurement of a kernel stays valid while only comments and docstrings change."""

from __future__ import annotations

import ast
import hashlib

HAVE_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def digest_of_code(text: str) -> str:
    """Returns 16 hexadecimal digits that depend on the code of a module, and not on its comments, its blank lines, or
    its docstrings. Raises SyntaxError."""
    return hashlib.sha256(ast.unparse(_without_docstrings(ast.parse(text))).encode()).hexdigest()[:16]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, HAVE_DOCSTRINGS) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree
