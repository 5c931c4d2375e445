"""`course plot`: the throughput of a kernel over size, compared with the solution, torch and the GPU's ceiling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.course.by_name import EXERCISE
from grader.course.folder import Folder

if TYPE_CHECKING:
    from grader.gpu.device import Device
    from grader.judging.run import Run
    from grader.learn.sweep import Sweep
    from grader.show.curves import Curves


@click.command(short_help="throughput over size, on a GPU: yours, the solution's, torch's")
@click.argument("exercise", type=EXERCISE, metavar="NN")
@click.option("--submission", metavar="PATH", help="time this file instead of yours")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.png",
              help="where to write the picture (default: throughput_NN_name.png in the course)")  # fmt: skip
def plot(exercise: Folder, submission: str | None, out: Path | None) -> None:
    """Times your kernel on the GPU from small sizes to that of the exercise's throughput test, and draws the curve.

    Beside it stand the solution, torch, and the ceiling: a copy of as many bytes, or cuBLAS. Every output that is
    timed is compared with the reference; a kernel that is wrong is not plotted.

    \b
    Example:  course plot 03
    """
    path = out or exercise.root / f"throughput_{exercise.id}.png"
    _refuse_path(path)
    device = _gpu(exercise)
    from grader.gpu.pool.replays import Replays
    from grader.learn.usable_submission import refuse_what_cannot_run

    runs: dict[str, Run] = {}
    replays = Replays(device)
    try:
        for name, run in _runs(exercise, submission, device):
            runs[name] = run  # to be ended even if the next one cannot be made
        for run in runs.values():
            refuse_what_cannot_run(run)
        curves, notes = _measured(_sweep(exercise, runs, replays))
    finally:
        for run in runs.values():
            run.end()
        replays.end()
    own = next(iter(runs.values())).submission.path == exercise.learner_file
    _show(exercise, curves, notes, path, keep_them=own)


def _refuse_path(path: Path) -> None:
    """Raises click.ClickException for a picture that could not be written, before anything is measured."""
    if path.suffix.lower() != ".png":
        raise click.ClickException(f"--out {path}: a name that ends in .png was expected.")
    if not path.resolve().parent.is_dir():
        raise click.ClickException(f"--out {path}: there is no folder {path.resolve().parent}.")


def _gpu(folder: Folder) -> Device:
    from grader.gpu.device import NO_GPU, device_here
    from grader.show.terminal import shown

    device = device_here()
    if device == NO_GPU:
        raise click.ClickException(
            "course plot measures on a GPU, and there is none here. "
            f"Next: pytest {shown(folder.path)} judges all but speed without one."
        )
    if isinstance(device, str):
        raise click.ClickException(
            f"course plot measures on a GPU, and the one here cannot be used: {device}. Next: course doctor"
        )
    return device


def _runs(folder: Folder, submission: str | None, device: Device) -> Iterator[tuple[str, Run]]:
    """Makes the runs to time, and yields their names: the submission, then the solution unless it is the submission."""
    from grader.judging.run import Run
    from grader.show.curves import SOLUTION, YOURS

    path = folder.submission_file(submission)
    if path == folder.solution_file:
        yield SOLUTION, Run(folder, "solutions", model=device.model)
        return
    yield YOURS if path == folder.learner_file else path.name, Run(folder, submission, model=device.model)
    yield SOLUTION, Run(folder, str(folder.solution_file), model=device.model)


def _sweep(folder: Folder, runs: dict[str, Run], replays) -> Sweep:
    from grader.course.folder import load_test_file
    from grader.judging.uses import ThroughputUse, uses_asked
    from grader.learn.sweep import Sweep

    module = load_test_file(folder)
    timed = uses_asked(module, ThroughputUse)
    if not timed:
        raise click.ClickException(f"No test of {folder.id} measures throughput.")
    return Sweep(runs, module.exercise, timed[0], replays)


def _measured(sweep: Sweep) -> tuple[Curves, list[str]]:
    """Returns the curves, and sentences that say why points are missing."""
    from rich.progress import Progress

    from grader.show.terminal import console

    notes: list[str] = []
    out = console()
    with Progress(console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("Measuring", total=sweep.samples)
        return sweep.measure(lambda: bar.advance(task), notes.append), notes


def _show(folder: Folder, curves: Curves, notes: list[str], path: Path, keep_them: bool) -> None:
    from grader.learn.curve_table import curve_table
    from grader.show.terminal import console

    out = console()
    out.print(f"{folder.id}: throughput in {curves.unit} on {curves.gpu}", style="bold", markup=False)
    out.print(curve_table(curves, out.width))
    out.print()
    for line in (*notes, curves.medals_told, curves.caption):
        if line:
            out.print(line, markup=False)
    _write_picture(folder, curves, path)
    out.print(f"Picture: {path}", markup=False, soft_wrap=True)
    if keep_them:
        _keep(folder, curves)
    follows = "course report shows it with your progress" if keep_them else f"course plot {folder.number} plots yours"
    out.print(f"Next: {follows}", markup=False, soft_wrap=True)


def _write_picture(folder: Folder, curves: Curves, path: Path) -> None:
    from grader.learn.matplotlib_cache import keep_caches_in

    keep_caches_in(folder.root)
    from grader.show.throughput_svg import curves_png

    try:
        path.write_bytes(curves_png(curves))
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None


def _keep(folder: Folder, curves: Curves) -> None:
    from grader.progress import kept_curves

    try:
        kept_curves.keep(folder, curves)
    except OSError as error:
        raise click.ClickException(f"The report will lack it: {error.filename}: {error.strerror}.") from None
