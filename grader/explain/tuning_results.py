"""Explains a wrong result of the function that gives a kernel its configurations and its key.

Python reports the error at a given line of the file; the mistake is in the function's own return.
"""

from __future__ import annotations

import ast
import re

from grader.sentences import Said, Sentence
from grader.submission.nodes import covers
from grader.submission.text import Submission, code_text
from grader.submission.tuning_lines import function_that_is_asked, only_return
from grader.wire.messages import Failure

NOT_TWO = re.compile(r"(?:too many|not enough) values to unpack|cannot unpack non-iterable")
NO_CONFIGURATION = re.compile(r"'str' object has no attribute '\w+'")


class TuningResults(Sentence):
    NOT_TWO = (
        "Line {line} returns {returned}, and {function} has to return two things, (configs, key): the list of "
        "configurations, and the list of names in the key."
    )
    EXCHANGED = (
        "Line {line} returns {returned}, and the first of the two is no list of triton.Config: {function} has to "
        "return (configs, key), in this order."
    )


def tuning_result(failure: Failure, submission: Submission) -> tuple[Said, int] | None:
    """Returns the sentence about the function's wrong result, and the line of its return; None for other failures."""
    function = function_that_is_asked(submission.tree)
    returns = only_return(function) if function is not None else None
    if function is None or returns is None or returns.value is None:
        return None
    line, text = returns.lineno, code_text(returns.value)
    if NOT_TWO.search(failure.message) and _asks_for_two(submission.tree, function.name, failure.line):
        return TuningResults.NOT_TWO(line=line, returned=text, function=function.name), line
    if NO_CONFIGURATION.search(failure.message) and _has_texts_first(returns.value, function):
        return TuningResults.EXCHANGED(line=line, returned=text, function=function.name), line
    return None


def _asks_for_two(tree: ast.Module, function: str, line: int) -> bool:
    """Returns whether the line is `configs, key = tuning()`, with the function's name."""
    here = (node for node in tree.body if isinstance(node, ast.Assign) and covers(node, line))
    return any(
        isinstance(target, ast.Tuple) and len(target.elts) == 2 and f"{function}(" in code_text(node.value)
        for node in here
        for target in node.targets
    )


def _has_texts_first(pair: ast.expr, function: ast.FunctionDef) -> bool:
    """Returns whether `pair` has two items, and the first is a list of texts, as a key is."""
    if not isinstance(pair, ast.Tuple) or len(pair.elts) != 2:
        return False
    first = pair.elts[0]
    if isinstance(first, ast.Name):
        assigned = (node for node in ast.walk(function) if isinstance(node, ast.Assign))
        values = [one.value for one in assigned if first.id in [getattr(to, "id", "") for to in one.targets]]
        first = values[0] if len(values) == 1 else first
    texts = getattr(first, "elts", [])
    return bool(texts) and all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in texts)
