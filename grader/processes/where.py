"""The line in which a child was when its time was used up, read from what Python's faulthandler prints at the end.

The file it runs may print the same: what is read here only words a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEAD = b"Stack (most recent call first):\n"
FRAME = re.compile(r'^  File "([^"\n]*)", line (\d{1,7}) ', re.MULTILINE)
COMPILER = "/triton/compiler/"


@dataclass(frozen=True)
class Where:
    """line: in the learner's file, 0 if unknown. compiling: the compiler was at work on a kernel launched there."""

    line: int = 0
    compiling: bool = False


def stack_in(printed: bytes) -> bytes:
    """Returns the stack that the output ends with, from its heading on; b"" if there is none."""
    _, head, stack = printed.rpartition(HEAD)
    return head + stack if head else b""


def where_in(printed: bytes, filename: str) -> Where:
    compiling = False
    for path, line in FRAME.findall(stack_in(printed).decode("utf-8", "replace")):
        if path.rpartition("/")[2] == filename:
            return Where(int(line), compiling)
        compiling |= COMPILER in path
    return Where()
