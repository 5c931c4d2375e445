"""A submission that consists of a text, in a real child: past the list of what a file may import, on purpose."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from grader.gpu.models import DEFAULT_MODEL
from grader.processes.child import ChildProcess
from grader.processes.faults import ChildEnded
from tests.waiting import NEVER


def printed_by(text: str, sandbox: int | None = None) -> str:
    """Returns what the text prints when it is imported, and behind it the exception or the end of the process."""
    child = ChildProcess(DEFAULT_MODEL, sandbox)
    try:
        answer, _ = child.ask({"kind": "load", "filename": "kernel.py"}, text.encode(), NEVER)
        failure = answer["error"] or {}
        said = f"{failure.get('type', '')} {failure.get('message', '')}"
    except ChildEnded as ended:
        said = f"{ended.how} {ended.detail}"
    finally:
        child.end()
    return f"{child.printed}{said}".strip()


@contextlib.contextmanager
def loaded(text: str) -> Iterator[ChildProcess]:
    """Gives the child that has imported the text; it ends with the block."""
    child = ChildProcess(DEFAULT_MODEL)
    try:
        child.ask({"kind": "load", "filename": "kernel.py"}, text.encode(), NEVER)
        yield child
    finally:
        child.end()
