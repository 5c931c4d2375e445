"""Tells of a variable that nothing uses: the compiler leaves out what it is made of, so no edit of its text helps."""

from __future__ import annotations

import ast

from grader.explain.verdict import Verdict
from grader.sentences import Sentence
from grader.submission.text import Submission, kernels_of


class Unused(Sentence):
    NAME = "Line {line} makes {name}, and no line uses it: is another name written where {name} is meant?"


def add_unused(verdict: Verdict, submission: Submission) -> None:
    """Adds the line of the only variable of the kernels that nothing uses: the compiler leaves out what it is made of,
    so that no edit brings it back. It is the line of no mistake."""
    lines: dict[str, int] = {}
    for kernel in kernels_of(submission.tree):
        names = [node for node in ast.walk(kernel) if isinstance(node, ast.Name)]
        used = {"_", *(name.id for name in names if isinstance(name.ctx, ast.Load))}
        lines |= {name.id: name.lineno for name in names if isinstance(name.ctx, ast.Store) and name.id not in used}
    if len(lines) == 1:
        ((name, line),) = lines.items()
        verdict.said.append(Unused.NAME(line=line, name=name))
