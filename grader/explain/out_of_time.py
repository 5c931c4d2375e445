"""Explains a call, or an import of the file, that did not end in time: where it was when it was stopped."""

from __future__ import annotations

import ast

from grader.explain.causes import Cause
from grader.explain.evidence import source_line
from grader.explain.verdict import Verdict, failed
from grader.processes.faults import ChildEnded
from grader.sentences import Said, Sentence
from grader.submission.nodes import covers, last_line
from grader.submission.text import Submission


class OutOfTime(Sentence):
    """Sentences about a stop. {what}: "Importing softmax.py", or the entry. {time}: the limit, as "8 s"."""

    SOMEWHERE = "{what} was stopped after {time}: does every loop reach its end?"
    IN_LINE = "{what} was stopped after {time}: it was in line {line}."
    IN_LOOP = "{what} was stopped after {time}: it was in the loop that begins in line {loop}."
    IN_LINE_OF_LOOP = "{what} was stopped after {time}: it was in line {line}, in the loop that begins in line {loop}."
    COMPILING = "{what} was stopped after {time}: the compiler was still at work on what line {line} launches."

    ADVICE_LINE = "Does this line come to an end, and every loop around it?"
    ADVICE_LOOP = "Does this loop come to an end, and every loop around it?"
    ADVICE_RANGE = (
        "tl.static_range, and `for` over Python values, are unrolled, iteration by iteration: use range for long loops."
    )
    ADVICE_MAIN = 'What tries your kernel out belongs below `if __name__ == "__main__":`.'


def out_of_time(what: str, kind: str, how: ChildEnded, at_import: bool, submission: Submission) -> Verdict:
    """Returns the verdict on a call that was stopped, with the line and the loop that it was in, if known."""
    line = how.where.line
    loop = 0 if how.where.compiling else _loop_around(line, submission.tree)
    said, advice = _said(dict(what=what, time=how.detail), line, loop, how.where.compiling)
    if at_import:
        advice = OutOfTime.ADVICE_MAIN()
    shown = loop or line
    return failed(Cause.TIME_LIMIT, said, advice, source_line(submission, shown), kind=kind, line=shown)


def _said(spent: dict[str, str], line: int, loop: int, compiling: bool) -> tuple[Said, Said | None]:
    """Returns the sentence and the advice. line, loop: 0 if not known."""
    if compiling:
        return OutOfTime.COMPILING(**spent, line=line), OutOfTime.ADVICE_RANGE()
    if loop and loop != line:
        return OutOfTime.IN_LINE_OF_LOOP(**spent, line=line, loop=loop), OutOfTime.ADVICE_LOOP()
    if loop:
        return OutOfTime.IN_LOOP(**spent, loop=loop), OutOfTime.ADVICE_LOOP()
    if line:
        return OutOfTime.IN_LINE(**spent, line=line), OutOfTime.ADVICE_LINE()
    return OutOfTime.SOMEWHERE(**spent), None


def _loop_around(line: int, tree: ast.Module) -> int:
    """Returns the line in which the innermost loop around `line` begins; 0 if there is none."""
    if not line:
        return 0
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and covers(one, line)]
    inner: ast.AST = max(functions, key=lambda one: one.lineno) if functions else tree
    loops = [node for node in ast.walk(inner) if isinstance(node, ast.For | ast.While)]
    return max((loop.lineno for loop in loops if loop.lineno <= line <= _last_line_of_iterations(loop)), default=0)


def _last_line_of_iterations(loop: ast.For | ast.While) -> int:
    """Returns the last line of the loop's body. The `else` of a loop is not part of any iteration."""
    return last_line(loop.body[-1])
