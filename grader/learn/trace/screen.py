"""A trace on a terminal: the kernel with the values of its variables, and keys that go through it."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

import click

from grader.learn.key_input import single_keys
from grader.learn.trace.calls import other_programs, stopped
from grader.learn.trace.stops import Statements, Stop, stops_of
from grader.learn.trace.text import heading, print_line, title, values_shown
from grader.learn.trace.words import Line, full, legend, plain

if TYPE_CHECKING:
    from grader.learn.trace.calls import CallToTrace
    from grader.wire.traced_program import TracedProgram

TICK = 0.5  # seconds, after which a change of the terminal's size is seen
KEYS = "n next line   b back   i next iteration   u before   p next program   o before   l next launch   q quit"
LEAST_SOURCE, MOST_SOURCE = 30, 58  # columns


class Screen:
    def __init__(self, call: CallToTrace, program: tuple[int, ...]) -> None:
        self.call, self.launch = call, call.launch(call.traced(program))
        self._open(program)

    def _open(self, program: tuple[int, ...]) -> None:
        tree = self.call.run.submission.tree
        self.reply = self.call.traced(program)
        self.stops = stops_of(self.traced.steps, tree)
        if not self.stops:
            raise click.ClickException(f"No line of {self.traced.kernel} makes a value.")
        lines = {stop.line for stop in self.stops}
        self.lines = Statements(tree).lines_of(lines, self.traced.kernel)
        self.at = self.call.stop(self.stops)

    @property
    def traced(self) -> TracedProgram:
        return self.reply.traced[self.launch % len(self.reply.traced)]

    def loop(self) -> None:
        with contextlib.suppress(KeyboardInterrupt, EOFError):
            self._until_q()
        click.echo()

    def _until_q(self) -> None:
        with single_keys() as read_key:
            size = shutil.get_terminal_size()
            self.draw(*size)
            while (key := read_key(TICK)) != "q":
                size, before = shutil.get_terminal_size(), size
                if (key and self.press(key)) or size != before:
                    self.draw(*size)

    def press(self, key: str) -> bool:
        """Carries a key out. Returns False for a key without a meaning."""
        if key in "nb":
            self.at = min(max(self.at + (1 if key == "n" else -1), 0), len(self.stops) - 1)
        elif key in "iu":
            self.at = iteration_from(self.stops, self.at, 1 if key == "i" else -1)
        elif key in "po":
            self._open(other_programs(self.traced, 1 if key == "p" else -1))
        elif key == "l":
            self.launch = (self.launch + 1) % len(self.reply.traced)
            self._open(tuple(self.traced.program))
        return key in "nbiupol"

    def draw(self, width: int, height: int) -> None:
        from grader.show.terminal import console

        out = console()
        out.width = width
        click.clear()
        out.print(title(self.call), style="bold", markup=False, no_wrap=True, overflow="ellipsis")
        out.print(heading(self.traced), markup=False, no_wrap=True, overflow="ellipsis")
        details = self._details()[: max(3, height // 3)]
        room = max(3, height - 5 - len(details))
        for line in self._source(width, room):
            print_line(out, line)
        out.print()
        for line in details:
            print_line(out, _cut(line, width))
        out.print(KEYS, style="dim", markup=False, no_wrap=True, overflow="ellipsis", end="")

    def _source(self, width: int, room: int) -> list[Line]:
        """Returns `room` lines of the kernel around the current line, each with the values that it made last."""
        stop, submission = self.stops[self.at], self.call.run.submission
        texts = {number: submission.indented(number) for number in self.lines}
        source = min(max([len(text) for text in texts.values()] + [LEAST_SOURCE]), MOST_SOURCE, width // 2)
        values = values_beside(self.stops, self.at)
        place = self.lines.index(stop.line) if stop.line in self.lines else 0
        first = min(max(0, place - room // 2), max(0, len(self.lines) - room))
        shown = []
        for number in self.lines[first : first + room]:
            here = stop.line <= number <= stop.statement.end
            text = texts[number][:source].ljust(source)
            head = (f"{number:>4}{'>' if here else ' '} {text}  ", "here" if here else "source")
            shown.append(_cut([head, *values.get(number, [])], width))
        return shown

    def _details(self) -> list[Line]:
        """Returns all values that the current line has made, and the meaning of their marks."""
        stop = self.stops[self.at]
        loops = "".join(f", iteration {one.number} of {one.of} of the loop in line {one.line}" for one in stop.path)
        note = f", {stop.note}" if stop.note and not stop.path else ""
        lines: list[Line] = [[(f"Line {stop.line}{loops}{note}", "quiet")]]
        for name, step in stop.told:
            lines += [[("  ", ""), *line] for line in full(name, step)]
        lines += legend([step for _, step in stop.told])
        if self.at == len(self.stops) - 1:
            lines += [[(text, "empty")] for text in (stopped(self.reply), self.call.no_exact) if text]
        return lines


def iteration_from(stops: list[Stop], at: int, step: int) -> int:
    """Returns the stop at the same line in the loop's next iteration (step 1) or the one before (-1), or else `at`."""
    now = stops[at]
    if not now.path:
        return at
    numbers = range(at + step, len(stops) if step > 0 else -1, step)
    for number in numbers:
        stop = stops[number]
        if (stop.statement, stop.calls) == (now.statement, now.calls) and stop.path != now.path:
            return number
    return at


def values_beside(stops: list[Stop], at: int) -> dict[int, Line]:
    """Returns the values that each line made last, up to the stop `at`; values of another iteration are quiet."""
    values: dict[int, Line] = {}
    for stop in stops[: at + 1]:
        if line := values_shown(stop):
            stale = stop.is_stale_at(stops[at])
            values[stop.line] = [(plain(line), "quiet")] if stale else line
    return values


def _cut(line: Line, width: int) -> Line:
    """Returns the part of a line that fits on the screen."""
    shown, left = [], width
    for text, meaning in line:
        shown.append((text[:left], meaning))
        left -= len(text)
        if left <= 0:
            break
    return shown
