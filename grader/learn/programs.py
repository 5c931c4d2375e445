"""`course programs`: what each program of a small call loads and stores, as text and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.course.by_name import EXERCISE
from grader.course.folder import Folder
from grader.files import write_whole
from grader.learn.usable_submission import WHY_IT_STOPPED, example_trial, judge_it, refuse_what_cannot_run

if TYPE_CHECKING:
    from grader.course.trial import Trial
    from grader.judging.run import Run
    from grader.learn.program_accesses import TouchedArgument
    from grader.wire.reply import Reply

MOST_PROGRAMS = 16
SEED = 0  # values do not matter here


@click.command(short_help="what each program loads and stores, on a small example")
@click.argument("exercise", type=EXERCISE, metavar="NN")
@click.option("--submission", metavar="PATH", help="show this file instead of yours")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="write a picture as well")
def programs(exercise: Folder, submission: str | None, svg: Path | None) -> None:
    """Runs your kernel on a small example and shows what each program loads and stores, element by element.

    \b
    Example:  course programs 02
    """
    from grader.course.folder import load_test_file
    from grader.judging.run import Run
    from grader.processes.faults import ChildEnded
    from grader.show.terminal import busy

    trial = example_trial(exercise, load_test_file(exercise).exercise)
    run = Run(exercise, submission, SEED)
    try:
        refuse_what_cannot_run(run)
        with busy("Running ..."):
            reply = run.call(trial, run.inputs(trial), fill="zero", log_accesses=True)
    except ChildEnded:
        raise click.ClickException(f"{trial.exercise.entry} did not come to its end. Next: {judge_it(run)}") from None
    finally:
        run.end()
    _show(exercise, run, trial, reply, svg)


def _show(folder: Folder, run: Run, trial: Trial, reply: Reply, svg: Path | None) -> None:
    from grader.learn.program_accesses import touched
    from grader.show.terminal import console, shown

    error = run.process.load_failure or reply.error
    if error is not None:
        what = f"{error.type}: {' '.join(error.message.split())}" if error.type else error.message
        what = WHY_IT_STOPPED.get(error.kind, what)
        where = f" in line {error.line}" if error.line else ""
        click.echo(f"It stopped{where}: {what or error.kind}")
    shapes = _shapes(trial, reply)
    grids = touched(reply.accesses, shapes)
    out, label = console(), trial.label(run.process.constants)
    grid = f"; {_grids(reply)}" if reply.launches else ""
    out.print(f"{folder.id} on a small example: {label}{grid}", style="bold", markup=False)
    _print_programs(out, reply, shapes)
    for one in grids:
        _print_grid(out, one)
    out.print()
    if reply.findings:
        out.print(f"Some accesses are wrong and were left out: {judge_it(run)}.", markup=False)
    if svg is not None:
        _write_picture(svg, grids, f"{folder.id}: {label}")
        out.print(f"Picture: {svg}", markup=False, soft_wrap=True)
    out.print(f"Next: pytest {shown(folder.path)}", markup=False, soft_wrap=True)


def _shapes(trial: Trial, reply: Reply) -> dict[str, tuple[int, ...]]:
    from grader.numerics.data_sets import Data

    pairs = zip(trial.arguments, trial.data)
    shapes = {name: tuple(data.shape) for name, data in pairs if isinstance(data, Data)}
    return {name: tuple(result.shape) for name, result in reply.outputs.items()} | shapes


def _grids(reply: Reply) -> str:
    several = len(reply.launches) > 1
    return f"{len(reply.launches)} launches" if several else f"grid {tuple(reply.launches[0].grid)}"


def _print_programs(out, reply: Reply, shapes: dict[str, tuple[int, ...]]) -> None:
    from grader.learn.program_accesses import in_words, verb_of

    by_program: dict[tuple[int, tuple[int, ...]], list[tuple[str, int]]] = {}
    for access in reply.accesses:
        words = in_words(access, shapes.get(access.argument, (1 << 62,)), all_right=not reply.findings)
        lines = by_program.setdefault((access.launch, tuple(access.program)), [])
        lines.append((f"{verb_of(access)} {words}", access.line))
    shown = -1
    for (launch, program), lines in list(by_program.items())[:MOST_PROGRAMS]:
        if launch != shown and len(reply.launches) > 1:
            traced, shown = reply.launches[launch], launch
            out.print(f"\nlaunch {launch + 1}: {traced.kernel}, grid {tuple(traced.grid)}", markup=False)
        out.print(f"\nprogram {program}", markup=False)
        for words, line in lines:
            out.print(f"  line {line:<4}{words}", markup=False)
    if len(by_program) > MOST_PROGRAMS:
        out.print(f"\n... and {len(by_program) - MOST_PROGRAMS} more programs")
    idle = sum(launch.idle for launch in reply.launches)
    if idle:
        out.print(f"\n{idle} program{' does' if idle == 1 else 's do'} nothing.")


def _print_grid(out, touched: TouchedArgument) -> None:
    from grader.show.programs_svg import short

    cells = [[short(touched.of(row, column)) for column in range(touched.columns)] for row in range(touched.rows)]
    width = max((len(cell) for line in cells for cell in line), default=1)
    several = max((int(cell[:-1]) for line in cells for cell in line if cell.endswith("x")), default=0)
    legend = f" ({several}x: {several} programs)" if several else ""
    out.print(f"\n{touched.name}, by the program that {touched.verb} each element{legend}", markup=False)
    for line in cells:
        out.print("  " + " ".join(f"{cell:>{width}}" for cell in line), markup=False, soft_wrap=True)


def _write_picture(path: Path, grids: list[TouchedArgument], title: str) -> None:
    from grader.show.programs_svg import programs_svg

    try:
        write_whole(path, programs_svg(grids, title))
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None
