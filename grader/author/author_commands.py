"""`course new`, `course check`, `course stub` and `course gate`: the author's commands."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.course.by_name import NO_COURSE, chosen, course_here, course_root
from grader.course.folder import LAID_DOWN, Folder
from grader.files import keep_aside, write_whole

if TYPE_CHECKING:
    from grader.author.check import Checked


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
@click.option("--changed", metavar="REF", help="those that a change since this revision of git can touch")
@click.option(
    "--since-record",
    is_flag=True,
    help="those that a change since tests/proven.json was written can touch; all, if it does not hold here",
)
@click.option("--drawn", type=click.FloatRange(0, 1), default=0.0, metavar="SHARE",
              help="with these two: prove this share of what a change cannot touch as well")  # fmt: skip
@click.option("--record", is_flag=True, help="prove all, and keep that this commit is proven in tests/proven.json")
@click.option("--seed", metavar="N|tree|recorded",
              help="one for all runs; tree: made from the committed files; recorded: that of tests/proven.json; "
                   "without, each draws its own")  # fmt: skip
@click.option("--findings", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="keep what each proof found, a line each, with one seed for all: to compare")  # fmt: skip
def check(
    exercises: tuple[str, ...], jobs: int, whole: bool, changed: str | None, since_record: bool, drawn: float,
    record: bool, seed: str | None, findings: Path | None,
) -> None:  # fmt: skip
    """The author's proof: stubs, solutions, mutants, cheats, odd but right kernels, constants.

    A run of a mutant ends as soon as it is rejected with its sentence, unless --whole is given.

    \b
    Example:  course check 03
              course check --changed main
              course check --findings before.txt
    """
    if findings and not findings.resolve().parent.is_dir():
        raise click.UsageError(f"--findings {findings}: there is no folder {findings.resolve().parent}.")
    _needs_clone(course_root())
    if drawn and changed is None and not since_record:
        raise click.UsageError("--drawn: it needs --changed or --since-record, which say what a change cannot touch.")
    if record:
        _may_record(exercises, changed, since_record)
    number = _seed(seed or ("tree" if record else None), findings is not None)
    folders, touched = _chosen(exercises, changed, since_record)
    _needs_nbgrader()
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from grader.author.check import check as check_all
    from grader.author.choice import ProofChoice
    from grader.author.git import NoRevision

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())

    with Progress(*columns, transient=True, disable=not sys.stdout.isatty()) as progress:

        def begin(total: int):
            task = progress.add_task("submissions", total=total)
            return lambda: progress.advance(task)

        def say(text: str) -> None:
            progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

        untouched = frozenset(folder.id for folder in folders if folder not in touched)
        choice = ProofChoice(whole, number, untouched, drawn, record, findings is not None)
        done = check_all(folders if drawn else touched, jobs, say, begin, choice)
    try:
        _keep(done, findings, number if record else None)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}. It was not written.") from None
    except NoRevision as why:
        raise click.ClickException(f"The proof was not recorded: {why}") from None
    click.echo(f"{done.complaints or 'No'} complaint{'s' * (done.complaints != 1)}.")
    raise SystemExit(1 if done.complaints else 0)


def _may_record(exercises: tuple[str, ...], changed: str | None, since_record: bool) -> None:
    from grader.author import record

    if exercises or changed is not None or since_record:
        raise click.UsageError("--record: it keeps that all exercises are proven. Name none, and no change.")
    try:
        record.needs_clean_checkout(course_root())
    except record.CannotRecord as why:
        raise click.UsageError(f"--record: {why}") from None


def _keep(done: Checked, findings: Path | None, recorded: int | None) -> None:
    """Writes the findings to a file, and the record of a proof without complaints, by their options.

    Raises OSError, and NoRevision where git fails.
    """
    from grader.author import first_tests, kept_findings, record

    if findings:
        write_whole(findings, kept_findings.as_text(done.outcomes))
    if recorded is not None and not done.complaints:
        root = course_root()
        record.write(root, recorded)
        first_tests.write(root, done.outcomes)
        click.echo(f"Kept in {record.FILE} and {first_tests.FILE}. Next: commit both, and nothing else.")


def _seed(text: str | None, to_compare: bool) -> int | None:
    """Returns the seed of all runs; None where each draws its own. Prints a seed that no option states as a number."""
    from grader.author import kept_findings
    from grader.author.record import NoRecord, record_of
    from grader.author.seed import NoSeed, seed_of, seed_of_tree

    if text is None:
        return kept_findings.SEED if to_compare else None
    if text == "recorded":
        try:
            return record_of(course_root()).seed
        except NoRecord:
            text = "tree"
    if text == "tree":
        seed, told = seed_of_tree(course_root())
        click.echo(told)
        return seed
    try:
        return seed_of(text)
    except NoSeed as why:
        raise click.UsageError(str(why)) from None


def _chosen(exercises: tuple[str, ...], changed: str | None, since_record: bool) -> tuple[list[Folder], list[Folder]]:
    """Returns the exercises that are asked for, and the exercises that the change can touch; without a change, all."""
    from grader.author.git import NoRevision
    from grader.author.record import NoRecord, record_of
    from grader.author.touched import touched_since

    if changed is None and not since_record:
        return (folders := chosen(exercises)), folders
    if changed is not None and since_record:
        raise click.UsageError("--changed and --since-record each name a commit: give one of them.")
    if exercises:
        option = "--since-record" if since_record else "--changed"
        raise click.UsageError(f"{option} chooses the exercises itself: name none with it.")
    every = chosen(())
    try:
        revision = changed if changed is not None else record_of(course_root()).commit
        touched, told = touched_since(course_root(), revision)
    except NoRecord as why:
        click.echo(f"Proves all {len(every)} exercises: {why}")
        return every, every
    except NoRevision as error:
        raise click.UsageError(str(error)) from None
    click.echo(told)
    return every, touched


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
    from grader.judge.gate_measurement import NotMeasured, measure

    _needs_clone(course_root())
    folders, device = chosen(exercises), device_here()
    if not isinstance(device, Device):
        raise click.ClickException(f"Gates are measured on a GPU: {device}.")
    for folder in folders:
        try:
            keep_figures(folder, measure(folder, device, shared_replays(device), click.echo))
        except NotMeasured as why:
            raise click.ClickException(f"{folder.id}: {why}") from None
    click.echo("Kept in tests/gates/figures.json. Next: write the gates into the tests (at_least=), then course check")


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
