"""The reasons why a kernel is not judged: each is a sentence about what was given, and the next step."""

from __future__ import annotations

from typing import Any

from grader.wire.printable import one_line

MOST_MESSAGE = 160  # characters of what Python or torch says


class CannotJudge(RuntimeError):
    """Says why the judge cannot judge what it was given. `next`: what to do about it. `more`: other fields of the
    judgement."""

    def __init__(self, said: str, next: str, **more: Any) -> None:
        super().__init__(f"{said} Next: {next}")
        self.said, self.next, self.more = said, next, more


def message_of(error: BaseException) -> str:
    """Returns "RuntimeError: size mismatch", on one line and not too long."""
    text = one_line(" ".join(str(error).split()))
    text = text if len(text) <= MOST_MESSAGE else f"{text[:MOST_MESSAGE]} ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
