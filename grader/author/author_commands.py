"""`course new`, `course check`, `course stub` and `course gate`: the author's commands."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.course.by_name import NO_COURSE, chosen, course_here, course_root
from grader.course.folder import LAID_DOWN
from grader.files import keep_aside, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from grader.author.check import Checked
    from grader.course.folder import Folder

MOST_SEED = (1 << 63) - 1


@click.command(short_help="a small new exercise that works, for its author to change")
@click.argument("name", metavar="NN_name")
def new(name: str) -> None:
    """Makes a new exercise, z = x * s, that works at once: lesson, tests, solution, stub, hints, mutants, accepted.

    Change it step by step; course check says what it still lacks.

    \b
    Example:  course new 37_bias_residual
    """
    root = course_here()
    if root is None:
        raise click.UsageError(NO_COURSE)
    _needs_clone(root)
    _needs_nbgrader()
    from grader.author.skeleton import CannotMake, make

    try:
        files = make(root, name)
    except CannotMake as why:
        raise click.UsageError(str(why)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}. Nothing was written.") from None
    for path in files:
        click.echo(path.relative_to(root))
    click.echo(f"Next: change {files[0].relative_to(root)}, then course stub {name[:2]} and course check {name[:2]}")


@click.command(short_help="the author's proof that exercises are sound")
@click.argument("exercises", nargs=-1, metavar="[NN]...")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True,
              help="submissions judged side by side")  # fmt: skip
@click.option("--whole", is_flag=True, help="run each to its end: whatever comes later must not hide the mistake")
@click.option("--seed", type=click.IntRange(0, MOST_SEED), metavar="N",
              help="of all runs; without, each draws its own")  # fmt: skip
@click.option("--first-tests", is_flag=True,
              help="ask each mutant all tests, and keep which reject it: later checks ask these first")  # fmt: skip
@click.option("--findings", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="keep what each proof found, a line each, with one seed for all: to compare")  # fmt: skip
@click.option("--transplant", is_flag=True,
              help="instead: how is each mistake explained in the accepted kernels that can have it?")  # fmt: skip
@click.option("--unforeseen", type=click.IntRange(0, MOST_SEED), metavar="SEED",
              help="instead: how are random edits of right kernels explained?")  # fmt: skip
def check(
    exercises: tuple[str, ...],
    jobs: int,
    whole: bool,
    seed: int | None,
    first_tests: bool,
    findings: Path | None,
    transplant: bool,
    unforeseen: int | None,
) -> None:
    """The author's proof: stubs, solutions, mutants, cheats, odd but right kernels, constants.

    A run of a mutant ends as soon as it is rejected with its sentence, unless --whole is given. Where no exercise is
    named, a part of each one's mutants is proven, and accepted kernels are asked half of the tests. --transplant and
    --unforeseen prove nothing: they count how many wrong kernels are named as expected, falsely or not at all, and
    with the right line, a wrong one or none. With --findings FILE each is kept, as JSON.

    \b
    Example:  course check 03
              course check --findings before.txt
              course check 07 --unforeseen 1 --findings edits.json
    """
    if findings and not findings.resolve().parent.is_dir():
        raise click.UsageError(f"--findings {findings}: there is no folder {findings.resolve().parent}.")
    _needs_clone(course_root())
    folders = chosen(exercises)
    _needs_nbgrader()
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from grader.author.check import check as check_all
    from grader.author.choice import ProofChoice
    from grader.author.kept_findings import SEED

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())

    with Progress(*columns, transient=True, disable=not sys.stdout.isatty()) as progress:

        def begin(total: int):
            task = progress.add_task("submissions", total=total)
            return lambda: progress.advance(task)

        def say(text: str) -> None:
            progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

        if transplant or unforeseen is not None:
            _measure(folders, jobs, say, begin, findings, SEED if seed is None else seed, unforeseen)
            return
        of_each = not (exercises or whole or first_tests or findings)
        seed = SEED if seed is None and findings else seed
        choice = ProofChoice(whole, seed, of_each, first_tests, findings is not None)
        done = check_all(folders, jobs, say, begin, choice)
    try:
        _keep(done, findings, first_tests)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}. It was not written.") from None
    click.echo(f"{done.complaints or 'No'} complaint{'s' * (done.complaints != 1)}.")
    raise SystemExit(1 if done.complaints else 0)


def _measure(
    folders: list[Folder],
    jobs: int,
    say: Callable[[str], None],
    begin: Callable[[int], Callable[[], None]],
    findings: Path | None,
    seed: int,
    unforeseen: int | None,
) -> None:
    """Says how wrong kernels are explained, a line for each exercise and one for all; unforeseen: the seed of edits."""
    from grader.author import explanations, wrong_kernels

    of = wrong_kernels.transplants if unforeseen is None else partial(wrong_kernels.unforeseen, seed=unforeseen)
    results = explanations.measure([one for folder in folders for one in of(folder)], jobs, seed, begin)
    for folder in folders:
        say(f"{folder.id}: {explanations.summary([one for one in results if one.kernel.exercise == folder.path])}")
    say(f"All: {explanations.summary(results)}")
    if findings:
        write_whole(findings, explanations.as_json(results))


def _keep(done: Checked, findings: Path | None, keeps_first_tests: bool) -> None:
    """Writes the findings to a file, and the first tests of mutants, by their options. Raises OSError."""
    from grader.author import first_tests, kept_findings

    if findings:
        write_whole(findings, kept_findings.as_text(done.outcomes))
    if keeps_first_tests:
        first_tests.write(course_root(), done.outcomes)
        click.echo(f"Kept in {first_tests.FILE}.")


@click.command(short_help="writes a stub anew from its solution")
@click.argument("exercises", nargs=-1, required=True, metavar="NN...")
def stub(exercises: tuple[str, ...]) -> None:
    """Writes an exercise's stub anew from its solution; the file that was there is kept beside it.

    \b
    Example:  course stub 03
    """
    _needs_clone(course_root())
    _needs_nbgrader()
    from grader.author.stubs import derived_stub

    for folder in chosen(exercises):
        text, path = derived_stub(folder), folder.learner_file
        if path.exists() and path.read_text(encoding="utf-8") == text:
            click.echo(f"{path}: in step")
            continue
        if path.exists():
            click.echo(f"{path}: the old file is kept as {keep_aside(path).name}")
        path.write_text(text, encoding="utf-8")
        click.echo(f"{path}: written")


@click.command(short_help="measures on a GPU where an exercise's gates of speed stand")
@click.argument("exercises", nargs=-1, metavar="[NN]...")
def gate(exercises: tuple[str, ...]) -> None:
    """Measures the solution and the unwanted version of an exercise, and says where the rule puts its gates.

    \b
    Example:  course gate 03
    """
    from grader.course.gate_figures import keep_figures
    from grader.gpu.device import Device, device_here
    from grader.gpu.pool.replays import shared_replays
    from grader.judging.gate_measurement import NotMeasured, measure

    _needs_clone(course_root())
    folders, device = chosen(exercises), device_here()
    if not isinstance(device, Device):
        raise click.ClickException(f"Gates are measured on a GPU: {device}.")
    for folder in folders:
        try:
            keep_figures(folder, measure(folder, device, shared_replays(device), click.echo))
        except NotMeasured as why:
            raise click.ClickException(f"{folder.id}: {why}") from None
    click.echo(
        "Kept in solutions/gate_figures.json. Next: write the gates into the tests (at_least=), then course check"
    )


def _needs_clone(root: Path) -> None:
    if (root / LAID_DOWN).exists():
        raise click.ClickException(
            f"This command is for authors, and course init laid {root} down for a learner. It works on a clone of the "
            "course, which has solutions and mutants. Next: use it there"
        )


def _needs_nbgrader() -> None:
    try:
        import nbgrader  # noqa: F401
    except ImportError:
        raise click.ClickException(
            'This command derives stubs with nbgrader, which is missing: python -m pip install -e ".[author]"'
        ) from None
