"""The texts of tensors: printing shows their values, and the program that prints cannot read them.

`str(x)` would hand a tensor's values to Python, past everything that watches torch. So the text of a tensor is a name,
and the values replace it on the way out.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TextIO

MOST_TEXTS = 10_000
NAME = re.compile(r"<values (\d+)>")

_texts: list[str] = []


def hidden(text: str) -> str:
    """Returns a name for this text, which standard output shows in full."""
    if len(_texts) == MOST_TEXTS:
        return "<values>"
    _texts.append(text)
    return f"<values {len(_texts) - 1}>"


class _Revealing:
    """An output stream that shows the texts instead of their names."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(NAME.sub(_revealed, text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _revealed(name: re.Match[str]) -> str:
    number = int(name[1])
    return _texts[number] if number < len(_texts) else name[0]


def reveal() -> None:
    """Makes standard output and standard error show values instead of names, for the rest of this process."""
    sys.stdout, sys.stderr = _Revealing(sys.stdout), _Revealing(sys.stderr)
