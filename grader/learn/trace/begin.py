"""Chooses where a trace begins: at the line that failed, or else at the store of the first wrong element."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.learn.trace.stops import Stop, first_of, stops_of

if TYPE_CHECKING:
    import ast

    from grader.wire.reply import Reply
    from grader.wire.traced_program import TracedStep

ELEMENT = re.compile(r"(\w+)(?:\[([\d, ]*)\])?")  # as in a sentence: z[3, 4], or z for a result without dimensions


@dataclass(frozen=True)
class Element:
    """An element of a result: the name of the result, and the index."""

    result: str
    index: tuple[int, ...]

    def is_written_by(self, step: TracedStep) -> bool:
        """Returns True for a store or an atomic whose box, the smallest around all its elements, holds this element."""
        spans = list(zip(step.box[::2], step.box[1::2]))
        there = len(spans) == len(self.index) and all(low <= at <= high for at, (low, high) in zip(self.index, spans))
        return step.kind in ("store", "atomic") and step.argument == self.result and there


def element_of(text: str) -> Element | None:
    """Returns the element that a text such as "z[3, 4]" names; None if it names none."""
    found = ELEMENT.fullmatch(text)
    return found and Element(found[1], tuple(int(at) for at in (found[2] or "").split(",") if at.strip()))


def stop_of(stops: Sequence[Stop], line: int, element: Element | None) -> int:
    """Returns the number of the stop to begin at: the first at the line, or the last that writes the element, or 0."""
    if line or element is None:
        return first_of(stops, line)
    return max((n for n, stop in enumerate(stops) if any(map(element.is_written_by, stop.steps))), default=0)


def launch_of(reply: Reply, tree: ast.Module, line: int, element: Element | None) -> int:
    """Returns the number of the launch to begin with: the first at the line, or the last that writes the element."""
    if line:
        stops = [stops_of(traced.steps, tree) for traced in reply.traced]
        return next((n for n, of_one in enumerate(stops) if any(stop.is_at(line) for stop in of_one)), 0)
    if element is None:
        return 0
    writes = (n for n, traced in enumerate(reply.traced) if any(map(element.is_written_by, traced.steps)))
    return max(writes, default=0)
