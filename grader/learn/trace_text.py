"""A program of a call as text, in the order in which it runs: each line of the file, and below it its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.learn.trace_calls import stopped
from grader.learn.trace_stops import Stop, stops_of
from grader.learn.trace_words import MEANINGS, Line, full, legend, plain, short

if TYPE_CHECKING:
    from rich.console import Console

    from grader.learn.trace_calls import Call
    from grader.wire.watched_program import WatchedProgram

MARGIN = 6  # columns for the line's number and its mark
SILENT = "Lines that are not shown, or show nothing: known when it was compiled, another name, or used by nothing."


def title(call: Call) -> str:
    return f"{call.run.folder.id}, {call.why}: {call.label}"


def heading(program: WatchedProgram) -> str:
    return f"{program.kernel}, program {tuple(program.program)} of a grid {tuple(program.grid)}"


def print_program(call: Call, program: tuple[int, ...]) -> None:
    """Prints this program of each launch."""
    from grader.show.terminal import console

    out, reply = console(), call.watched(program)
    out.print(title(call), style="bold", markup=False, soft_wrap=True)
    begin = call.launch(reply) if call.element else -1
    for launch, watched in enumerate(reply.watched):
        out.print(f"\n{heading(watched)}", style="bold", markup=False, soft_wrap=True)
        stops = stops_of(watched.steps, call.run.submission.tree)
        for number, stop in enumerate(stops):
            marked = stop.is_at(call.line) or (launch == begin and number == call.stop(stops))
            _print_stop(out, call, stop, ">" if marked else " ")
            if call.wrong and launch == begin and number == call.stop(stops):
                out.print(f"{'':{MARGIN + 4}}{call.wrong}", markup=False, soft_wrap=True)
        if watched.left_out:
            out.print(f"... and {watched.left_out} more values", markup=False)
        out.print()
        for line in legend(watched.steps):
            print_line(out, line)
    out.print(SILENT, style="dim", markup=False, soft_wrap=True)
    if text := stopped(reply):
        out.print(text, markup=False, soft_wrap=True)


def _print_stop(out: Console, call: Call, stop: Stop, mark: str) -> None:
    submission, margin = call.run.submission, "  " * len(stop.calls)
    for number in range(stop.line, stop.statement.end + 1):
        text = submission.indented(number)
        note = f"   # {stop.note}" if stop.note and number == stop.line else ""
        if text.strip() and (number == stop.line or stop.note in ("", "turn 1")):
            out.print(f"{number:>4}{mark} {margin}{text}{note}", style="cyan", markup=False, soft_wrap=True)
    if stop.steps and stop.steps[0].kind == "parameter":
        parameters = "; ".join(plain(full(name, step)[0][:2]) for name, step in stop.told)
        out.print(f"{'':{MARGIN + 4}}{parameters}", markup=False, soft_wrap=True)
        return
    indent = " " * (MARGIN + len(margin) + _indent(submission.indented(stop.line)) + 4)
    for name, step in stop.told:
        if step.kind == "carried" and step.dtype == "pointer" and stop.follows:
            continue  # it is shown above, where the turn before has made it
        for line in full(name, step):
            print_line(out, [(indent, ""), *line])


def beside(stop: Stop) -> Line:
    """Returns the values to show next to the source line of a stop."""
    line: Line = []
    for name, step in stop.told:
        if step.kind == "carried" and name != stop.statement.index:
            continue  # it is shown next to the line that makes it
        line += [("  ", "")] * bool(line) + short(name, step)
    return line


def print_line(out: Console, line: Line) -> None:
    from rich.text import Text

    pieces = [(text, MEANINGS.get(meaning, "")) for text, meaning in line]
    out.print(Text.assemble(*pieces), soft_wrap=True)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
