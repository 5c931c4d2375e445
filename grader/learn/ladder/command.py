"""`course ladder`: from the naive kernel to the best, rung by rung: what changed, why, and what that gained."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.course.by_name import EXERCISE
from grader.course.folder import Folder

if TYPE_CHECKING:
    from grader.gpu.device import Device
    from grader.learn.ladder.climb import Climb
    from grader.learn.ladder.counts import Counts
    from grader.learn.ladder.figures import Figures
    from grader.learn.ladder.rungs import Ladder, Rung


@click.command(short_help="kernels from the naive one to the best, and what each step gains")
@click.argument("exercise", type=EXERCISE, metavar="NN")
@click.option("--rung", type=click.IntRange(1), metavar="N", help="show the text of this rung, once you have passed")
@click.option("--counted", is_flag=True, help="on a GPU: show what can be counted without one, too")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg",
              help="draw the measured rungs into this file")  # fmt: skip
@click.option("--submission", metavar="PATH", help="this file among the rungs instead of yours")
@click.option("--keep", is_flag=True, help="for authors, on a GPU: keep the figures with the ladder")
def ladder(
    exercise: Folder, rung: int | None, counted: bool, svg: Path | None, submission: str | None, keep: bool
) -> None:
    """Shows the way from the naive kernel of an exercise to the best one, a rung for each change, and yours among them.

    On a GPU every rung is timed. Without one it shows what can be counted: bytes that are moved, programs, what the
    compiler made of each kernel; and what was measured on another machine.

    \b
    Example:  course ladder 05
    """
    its_ladder = _ladder(exercise)
    if rung is not None:
        _show_text(exercise, its_ladder, rung)
        return
    device = _device(keep, svg)
    with _climb(exercise, its_ladder, submission, device) as climb:
        measured = None if isinstance(device, str) else climb.measure(device)
        counts = climb.count() if measured is None or counted else {}
    figures = climb.kept() if measured is None else measured
    _show(climb, figures, counts)
    if svg is not None:
        _draw(exercise, climb, figures, svg)
    if keep and measured is not None:
        _keep(exercise, climb, measured)
    _say_next(exercise, climb)


def _ladder(folder: Folder) -> Ladder:
    from grader.learn.ladder.rungs import BadRung, ladder_of

    try:
        its_ladder = ladder_of(folder)
    except BadRung as error:
        raise click.ClickException(str(error)) from None
    if its_ladder is None:
        raise click.ClickException(
            f"{folder.id} has no ladder. Next: course hint {folder.number} ends with what was tried, and what it gained"
        )
    return its_ladder


def _device(keep: bool, svg: Path | None) -> Device | str:
    """Returns the GPU, or the reason that there is none. Raises click.ClickException for options that cannot be met."""
    from grader.gpu.device import device_here

    device = device_here()
    if keep and isinstance(device, str):
        raise click.ClickException(f"Figures are kept where they are measured, on a GPU: {device}.")
    if svg is not None and svg.suffix.lower() != ".svg":
        raise click.ClickException(f"--svg {svg}: a name that ends in .svg was expected.")
    if svg is not None and not svg.resolve().parent.is_dir():
        raise click.ClickException(f"--svg {svg}: there is no folder {svg.resolve().parent}.")
    return device


@contextlib.contextmanager
def _climb(folder: Folder, ladder: Ladder, submission: str | None, device: Device | str) -> Iterator[Climb]:
    from rich.progress import Progress

    from grader.learn.ladder.climb import Climb
    from grader.show.terminal import console

    out = console()
    with Progress(console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("Climbing", total=len(ladder.rungs) + 1)
        climb = Climb(folder, ladder, submission, device, lambda: bar.advance(task))
        try:
            yield climb
        finally:
            climb.end()


# ---- output -------------------------------------------------------------------------------------------------------


def _show(climb: Climb, figures: Figures | None, counts: dict[str, Counts | str]) -> None:
    from grader.learn.ladder.table import counted_table, measured_table, reasons
    from grader.show.terminal import console

    out, numbers = console(), climb.numbers
    out.print(f"{climb.folder.id}: from the naive kernel to the best", style="bold", markup=False)
    if figures is not None:
        out.print(f"\nMeasured: {figures.call}. {figures.origin}", markup=False)
        out.print(measured_table(figures, numbers, out.width))
    if counts:
        out.print(f"\nCounted: {climb.trial.data_label}, for {climb.model.target} ({climb.model.name})", markup=False)
        out.print(counted_table(counts, numbers, out.width))
    out.print("\nWhat changed, and why", style="bold")
    out.print(reasons(climb.ladder.rungs))
    for line in climb.notes(figures, counts):
        out.print(line, markup=False)


def _draw(folder: Folder, climb: Climb, figures: Figures | None, path: Path) -> None:
    from grader.learn.ladder.figures import Timed
    from grader.learn.ladder.table import figure_text
    from grader.learn.matplotlib_cache import keep_caches_in
    from grader.show.curves import YOURS
    from grader.show.terminal import console

    measured = {name: rung for name, rung in figures.rungs.items() if isinstance(rung, Timed)} if figures else {}
    if figures is None or not measured:
        raise click.ClickException("There is no picture: no rung was measured, here or elsewhere.")
    keep_caches_in(folder.root)
    from grader.show.ladder_svg import ladder_svg

    bars = [(name, rung.share, f"{figure_text(rung.rate)} {figures.unit}") for name, rung in measured.items()]
    title = f"{folder.id.replace('_', ' ')}, {figures.call}"
    text = ladder_svg(title, bars, f"{figures.gpu}, {figures.date}", figures.anchor, own=YOURS)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None
    console().print(f"Picture: {path}", markup=False, soft_wrap=True)


def _keep(folder: Folder, climb: Climb, figures: Figures) -> None:
    from grader.learn.ladder.figures import keep
    from grader.show.terminal import console, shown

    try:
        path = keep(folder, climb.without_own(figures))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}. No figures were kept.") from None
    console().print(f"Kept in {shown(path)}", markup=False, soft_wrap=True)


def _say_next(folder: Folder, climb: Climb) -> None:
    from grader.show.terminal import console

    following = f"course ladder {folder.number} --rung 1 shows the text of a rung"
    console().print(f"Next: {following}" if climb.is_open else f"Next: course open {folder.number}", markup=False)


# ---- a rung -------------------------------------------------------------------------------------------------------


def _show_text(folder: Folder, ladder: Ladder, number: int) -> None:
    """Prints the text of a rung without the marks of regions, so that it can be written into a file and judged."""
    from grader.course.regions import BEGIN, END
    from grader.learn.ladder.climb import is_open

    if number > len(ladder.rungs):
        raise click.ClickException(f"{folder.id} has {len(ladder.rungs)} rungs.")
    if not is_open(folder):
        raise click.ClickException(
            f"{folder.id} is not passed yet, and rungs are solutions. "
            f"To see them now, which is noted: course solution {folder.number} --give-up"
        )
    rung: Rung = ladder.rungs[number - 1]
    if not rung.text:
        raise click.ClickException(f"{rung.path} cannot be read.")
    click.echo("\n".join(row for row in rung.text.splitlines() if row.strip() not in (BEGIN, END)))
