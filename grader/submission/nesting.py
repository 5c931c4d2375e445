"""Limits how deeply a file nests: code that reads a syntax tree recurses per level, and Python limits recursion."""

from __future__ import annotations

import ast

MOST_LEVELS = 100  # of nodes; the deepest of Triton's and torch's own files have 27


def line_nested_too_deep(tree: ast.Module) -> int:
    """Returns the first line with a part that lies deeper than MOST_LEVELS; 0 where there is none."""
    level: list[ast.AST] = [tree]
    for _ in range(MOST_LEVELS):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return min((node.lineno for node in level if hasattr(node, "lineno")), default=0)
