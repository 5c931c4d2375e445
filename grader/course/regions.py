"""The marked regions of a solution, and which of them a submission has filled in."""

from __future__ import annotations

import ast

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"

STUB = ("# YOUR CODE HERE", "pass")  # `raise` does not compile inside a kernel; `pass` leaves the output unwritten


def marked_regions(solution: str) -> list[tuple[int, int]]:
    """Returns (first line, last line) of each marked region of a solution file, markers included, counted from 1."""
    regions, start = [], 0
    for number, line in enumerate(solution.splitlines(), 1):
        if line.strip() == BEGIN:
            start = number
        elif line.strip() == END:
            regions.append((start, number))
    return regions


def stub_text(solution: str) -> str:
    """Returns the text that a learner starts from: the solution with a stub instead of each marked region.

    The stubs in exercises/ are derived by nbgrader, which a learner need not have; a test holds the two together.
    """
    lines = solution.splitlines(keepends=True)
    for first, last in reversed(marked_regions(solution)):
        marker = lines[first - 1]
        indent = marker[: len(marker) - len(marker.lstrip())]
        lines[first - 1 : last] = [f"{indent}{line}\n" for line in STUB]
    return "".join(lines)


def given_lines(solution: str, tree: ast.Module, text: str) -> set[int]:
    """Returns the lines of a submission's statements that stand word for word in the stub, outside of its regions.

    No mistake is in them: the learner has not written them. text: of the submission, whose syntax tree is `tree`.
    """
    of_stub = {line.strip() for line in stub_text(solution).splitlines()} - {*STUB}
    lines, numbers = [line.strip() for line in text.splitlines()], set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            if of_stub.issuperset(lines[node.lineno - 1 : max(last, node.lineno)]):
                numbers |= {*range(node.lineno, max(last, node.lineno) + 1)}
    return numbers


def empty_regions(solution: str, submission: ast.Module) -> tuple[list[str], int]:
    """Returns (functions of the submission whose marked region is still empty, number of functions with a region).

    Regions that hold whole functions are empty as long as the submission has no statement of its own beside its
    functions; each goes by the name of its first function. Syntax trees are compared: comments, blank lines and
    docstrings do not count as an attempt, nor does `pass`.
    """
    regions = marked_regions(solution)
    theirs = {node.name: node for node in submission.body if isinstance(node, ast.FunctionDef)}
    marked = [
        node
        for node in ast.parse(solution).body
        if isinstance(node, ast.FunctionDef)
        and any(node.lineno < first <= (node.end_lineno or 0) for first, _ in regions)
    ]
    empty = []
    for node in marked:
        statements = [s for s in node.body if not any(first < s.lineno < last for first, last in regions)]
        if node.name in theirs and _statements(statements) == _statements(theirs[node.name].body):
            empty.append(node.name)
    outer = [names[0] for first, last in regions if (names := _functions_between(solution, first, last))]
    if outer and {*_statements(submission.body)} <= {*_statements(ast.parse(stub_text(solution)).body)}:
        empty += outer
    return empty, len(marked) + len(outer)


def _functions_between(solution: str, first: int, last: int) -> list[str]:
    """Returns the names of the functions that stand as a whole between two lines of a solution."""
    functions = [node for node in ast.parse(solution).body if isinstance(node, ast.FunctionDef)]
    return [node.name for node in functions if first < node.lineno < last]


def _statements(body: list[ast.stmt]) -> list[str]:
    def counts(statement: ast.stmt) -> bool:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        return not (is_text or isinstance(statement, ast.Pass))

    return [ast.dump(statement) for statement in body if counts(statement)]
