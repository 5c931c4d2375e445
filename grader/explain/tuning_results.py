"""Says what is wrong with the result of a function that gives a kernel its configurations and its key.

Python reports it at a line that the learner was given; the mistake is in the function's own return.
"""

from __future__ import annotations

import ast
import re

from grader.sentences import Said, Sentence
from grader.submission.text import Submission
from grader.submission.tuning_lines import function_that_is_asked, only_return
from grader.wire.messages import Failure

NOT_TWO = re.compile(r"(?:too many|not enough) values to unpack|cannot unpack non-iterable")
NO_CONFIGURATION = re.compile(r"'str' object has no attribute '\w+'")
MOST_TEXT = 60  # characters of an expression that a sentence shows


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
    """Returns the sentence about what such a function returns, and the line in which it does; None for all else."""
    tree = submission.tree
    function = function_that_is_asked(tree) if tree is not None else None
    returns = only_return(function) if function is not None else None
    if returns is None:
        return None
    found = dict(line=returns.lineno, returned=_text(returns.value), function=function.name)
    if NOT_TWO.search(failure.message) and _asks_for_two(tree, function.name, failure.line):
        return TuningResults.NOT_TWO(**found), returns.lineno
    if NO_CONFIGURATION.search(failure.message) and _has_texts_first(returns.value, function):
        return TuningResults.EXCHANGED(**found), returns.lineno
    return None


def _asks_for_two(tree: ast.Module, function: str, line: int) -> bool:
    """Tells if this line is `configs, key = tuning()`."""
    here = (node for node in tree.body if isinstance(node, ast.Assign) and node.lineno <= line <= node.end_lineno)
    return any(
        isinstance(target, ast.Tuple) and len(target.elts) == 2 and f"{function}(" in _text(node.value)
        for node in here
        for target in node.targets
    )


def _has_texts_first(pair: ast.expr, function: ast.FunctionDef) -> bool:
    """Tells if the first of two things is a list of texts, as a key is."""
    if not isinstance(pair, ast.Tuple) or len(pair.elts) != 2:
        return False
    first = pair.elts[0]
    if isinstance(first, ast.Name):
        assigned = (node for node in ast.walk(function) if isinstance(node, ast.Assign))
        values = [one.value for one in assigned if first.id in [getattr(to, "id", "") for to in one.targets]]
        first = values[0] if len(values) == 1 else first
    texts = getattr(first, "elts", [])
    return bool(texts) and all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in texts)


def _text(node: ast.expr) -> str:
    try:
        text = " ".join(ast.unparse(node).split())
    except ValueError:  # a number of 4301 digits
        return "this"
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 3]}..."
