"""A digest of code without its words: what was measured of a kernel holds until what runs is another one."""

from __future__ import annotations

import ast
import hashlib


def digest_of_code(text: str) -> str:
    """Of the code without comments, docstrings and blank lines: words may change, what runs may not."""
    return hashlib.sha256(ast.unparse(_without_docstrings(ast.parse(text))).encode()).hexdigest()[:16]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree
