"""Finds lines of kernels that print, and tells the learner that a report does not show their output."""

from __future__ import annotations

import ast

from grader.sentences import Said, Sentence
from grader.submission.nodes import calls_in
from grader.submission.text import kernels_of

MOST_LINES = 4  # the sentence names this many lines at most


class Printing(Sentence):
    """A sentence about lines that print. {trace}: the command that shows a kernel's values."""

    NOT_SHOWN = (
        "{lines} in a kernel: nothing of that is shown here. `{trace}` shows what every line makes, in one program."
    )


def printing_lines(tree: ast.Module) -> list[int]:
    """Returns the lines of kernels that call print or tl.device_print, in order."""
    return sorted({call.lineno for kernel in kernels_of(tree) for call in _prints(kernel)})


def nothing_shown(lines: list[int], trace: str) -> Said:
    """Returns the sentence about these lines. trace: the command that shows the values of this file's kernels."""
    *others, last = lines[:MOST_LINES]
    where = f"Lines {', '.join(map(str, others))} and {last} print" if others else f"Line {last} prints"
    return Printing.NOT_SHOWN(lines=where, trace=trace)


def _prints(kernel: ast.FunctionDef) -> list[ast.Call]:
    """Returns the calls of print and tl.device_print. The report shows what tl.static_print prints, at compile time."""
    return [call for call in calls_in([kernel]) if ast.unparse(call.func) in ("print", "tl.device_print")]
