"""A program of a call as text, in the order in which it runs: each line of the file, and below it its values."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from grader.learn.trace.calls import stopped
from grader.learn.trace.stops import Stop, stops_of
from grader.learn.trace.words import MEANINGS, Line, full, legend, plain, short

if TYPE_CHECKING:
    from rich.console import Console

    from grader.learn.trace.calls import CallToTrace
    from grader.wire.traced_program import TracedProgram

MARGIN = 6  # columns for the line's number and its mark
SILENT = "Lines that are not shown, or show nothing: known when it was compiled, another name, or used by nothing."


def title(call: CallToTrace) -> str:
    return f"{call.run.folder.id}, {call.why}: {call.label}"


def heading(program: TracedProgram) -> str:
    return f"{program.kernel}, program {tuple(program.program)} of a grid {tuple(program.grid)}"


def print_program(call: CallToTrace, program: tuple[int, ...]) -> None:
    """Prints this program of each launch."""
    from grader.show.terminal import console

    out, reply = console(), call.traced(program)
    out.print(title(call), style="bold", markup=False, soft_wrap=True)
    begin = call.launch(reply) if call.element else -1
    for launch, traced in enumerate(reply.traced):
        out.print(f"\n{heading(traced)}", style="bold", markup=False, soft_wrap=True)
        if any(index >= size for index, size in zip_longest(program, traced.grid, fillvalue=1) if index):
            out.print(f"The grid has no program {program}: this is one of its last.", markup=False, soft_wrap=True)
        stops = stops_of(traced.steps, call.run.submission.tree)
        for number, stop in enumerate(stops):
            marked = stop.is_at(call.line) or (launch == begin and number == call.stop(stops))
            _print_stop(out, call, stop, ">" if marked else " ")
            if call.wrong and launch == begin and number == call.stop(stops):
                out.print(f"{'':{MARGIN + 4}}{call.wrong}", markup=False, soft_wrap=True)
        if traced.left_out:
            out.print(f"... and {traced.left_out} more values", markup=False)
        out.print()
        for line in legend(traced.steps):
            print_line(out, line)
    out.print(SILENT, style="dim", markup=False, soft_wrap=True)
    for text in filter(None, (stopped(reply), call.no_exact)):
        out.print(text, markup=False, soft_wrap=True)


def _print_stop(out: Console, call: CallToTrace, stop: Stop, mark: str) -> None:
    submission, margin = call.run.submission, "  " * len(stop.calls)
    for number in range(stop.line, stop.statement.end + 1):
        text = submission.indented(number)
        note = f"   # {stop.note}" if stop.note and number == stop.line else ""
        if text.strip() and (number == stop.line or stop.note in ("", "iteration 1")):
            out.print(f"{number:>4}{mark} {margin}{text}{note}", style="cyan", markup=False, soft_wrap=True)
    if stop.steps and stop.steps[0].kind == "parameter":
        parameters = "; ".join(plain(full(name, step)[0][:2]) for name, step in stop.told)
        out.print(f"{'':{MARGIN + 4}}{parameters}", markup=False, soft_wrap=True)
        return
    indent = " " * (MARGIN + len(margin) + _indent(submission.indented(stop.line)) + 4)
    for name, step in stop.told:
        if step.kind == "carried" and step.dtype == "pointer" and stop.follows:
            continue  # it is shown above, where the iteration before has made it
        for line in full(name, step):
            print_line(out, [(indent, ""), *line])


def values_shown(stop: Stop) -> Line:
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
