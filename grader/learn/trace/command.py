"""`course trace`: the values of a kernel's variables in a program, line by line."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.course.by_name import EXERCISE
from grader.course.folder import Folder
from grader.learn.usable_submission import judge_it, refuse_what_cannot_run, refuse_without_kernels

if TYPE_CHECKING:
    from grader.learn.trace.calls import CallToTrace


class Program(click.ParamType):
    name = "program"

    def convert(self, value, param, ctx):
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in value.strip("()").split(",") if part.strip()]
        if not 1 <= len(parts) <= 3 or not all(part.isdecimal() for part in parts):
            self.fail(f"{value!r} is no program: 1, or 1,0 in a grid of two axes.", param, ctx)
        return tuple(int(part) for part in parts)


@click.command(short_help="what the variables of your kernel hold, line by line, in one program")
@click.argument("exercise", type=EXERCISE, metavar="NN")
@click.option("--program", type=Program(), metavar="I,J", help="which program (default: the one that failed)")
@click.option("--example", is_flag=True, help="look into the small example, though the last run failed elsewhere")
@click.option("--exact", is_flag=True, help="also what each line would make if nothing were rounded")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="write a page instead")
@click.option("--submission", metavar="PATH", help="show this file instead of yours")
def trace(
    exercise: Folder,
    program: tuple[int, ...] | None,
    example: bool,
    exact: bool,
    html: Path | None,
    submission: str | None,
) -> None:
    """Carries your kernel out and shows what each line makes, in one program of the grid. No GPU is needed.

    After a failed run it opens at the call, the program and the line that failed; else it shows a small example. On a
    terminal, keys go from line to line, through the iterations of a loop and from program to program.

    \b
    Example:  course trace 03 --program 1
    """
    from grader.show.terminal import busy

    with busy("Running ..."):
        call = _call(exercise, example, submission)
        call.exact = exact
    try:
        _show(call, program or call.program or (0,), html)
    finally:
        call.run.end()


def _call(folder: Folder, example: bool, submission: str | None) -> CallToTrace:
    """Returns the call to show, with a run that the caller has to end. Raises click.ClickException."""
    from grader.course.folder import load_test_file
    from grader.judging.run import Run
    from grader.learn.trace.calls import SEED, example_call, failed_without_values, failing_call

    module = load_test_file(folder)
    refuse_without_kernels(folder, module.exercise)
    run = Run(folder, submission, SEED)
    with contextlib.ExitStack() as ends:
        ends.callback(run.end)
        refuse_what_cannot_run(run)
        last_run_counts = not example and submission is None
        if last_run_counts and (failing := failing_call(folder, module)) is not None:
            return failing
        why = "a small example"
        if last_run_counts and failed_without_values(folder, module):
            why += ", as the test that failed has no values to show"
        call = example_call(module.exercise, run, why)
        ends.pop_all()  # the run is the call's from here on
        return call


def _show(call: CallToTrace, program: tuple[int, ...], html: Path | None) -> None:
    from grader.show.terminal import console

    if html is not None:
        from grader.learn.trace.page import write_page

        write_page(html, call, program)
        out = console()
        out.print(f"{html}: {html.stat().st_size / 1000:.0f} kB", markup=False, soft_wrap=True)
        out.print(f"Next: open it in a browser: {html.resolve().as_uri()}", markup=False, soft_wrap=True)
    elif sys.stdout.isatty() and sys.stdin.isatty():
        from grader.learn.trace.screen import Screen

        Screen(call, program).loop()
    else:
        from grader.learn.trace.text import print_program

        print_program(call, program)
        console().print(f"Next: {next_of(call)}", markup=False, soft_wrap=True)


def next_of(call: CallToTrace) -> str:
    return judge_it(call.run) if call.failed else f"course trace {call.run.folder.number} --html trace.html"
