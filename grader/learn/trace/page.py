"""A trace as a page of HTML that holds everything: several programs, stop by stop, for any browser, offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.files import write_whole
from grader.learn.trace.calls import other_programs, stopped
from grader.learn.trace.stops import Statements, Stop, stops_of
from grader.learn.trace.text import SILENT, title, values_shown
from grader.learn.trace.words import full, legend
from grader.progress import progress
from grader.show.html_page import rendered

if TYPE_CHECKING:
    from grader.learn.trace.calls import CallToTrace
    from grader.wire.traced_program import TracedProgram

TEMPLATE = Path(__file__).with_name("trace.html")
MOST_PROGRAMS = 16
MOST_BYTES = 1_000_000  # of JSON; beyond this no further program is added


def write_page(path: Path, call: CallToTrace, program: tuple[int, ...]) -> None:
    shown, reply = _programs(call, program), call.traced(program)
    values = {
        "title": title(call), "id": call.run.folder.id, "programs": shown, "silent": SILENT, "when": progress.now(),
        "stopped": " ".join(filter(None, (stopped(reply), call.no_exact))), "begin": call.launch(reply),
    }  # fmt: skip
    try:
        write_whole(path, rendered(TEMPLATE, None, **values))
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None


def _programs(call: CallToTrace, program: tuple[int, ...]) -> list[dict]:
    """Returns this program of each launch, then the programs after it, launch by launch, as values for the page."""
    reply = call.traced(program)
    shown, size = [_program_shown(call, traced) for traced in reply.traced], 0
    for launch, traced in enumerate(reply.traced):
        following = other_programs(traced, 1)
        for _ in range(MOST_PROGRAMS - 1):
            size = sum(len(json.dumps(one)) for one in shown)
            if following == tuple(traced.program) or size > MOST_BYTES:
                break
            other = call.traced(following).traced[launch]
            shown.append(_program_shown(call, other))
            following = other_programs(other, 1)
    return shown


def _program_shown(call: CallToTrace, traced: TracedProgram) -> dict:
    submission = call.run.submission
    stops = stops_of(traced.steps, submission.tree)
    lines = Statements(submission.tree).lines_of({stop.line for stop in stops}, traced.kernel)
    return {
        "name": f"{traced.kernel}, program {tuple(traced.program)}",
        "grid": str(tuple(traced.grid)),
        "source": [[number, submission.indented(number)] for number in lines],
        "stops": [_stop(stop) for stop in stops],
        "first": call.stop(stops),
        "legend": legend(traced.steps),
        "left": traced.left_out,
    }


def _stop(stop: Stop) -> dict:
    return {
        "line": stop.line,
        "end": stop.statement.end,
        "calls": list(stop.calls),
        "path": [[iteration.line, iteration.number, iteration.of] for iteration in stop.path],
        "note": stop.note,
        "beside": values_shown(stop),
        "told": [line for name, step in stop.told for line in full(name, step)],
    }
