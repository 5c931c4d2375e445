"""`course ...`: the commands beside pytest. Heavy imports happen inside the commands that need them."""

from __future__ import annotations

import difflib
import itertools
import os
from pathlib import Path

import click

from grader.exercise import Folder, all_folders


def course_root() -> Path:
    """The course that the current folder lies in; else the one this package belongs to."""
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parent.parent):
        if (folder / "exercises").is_dir() and (folder / "solutions").is_dir():
            return folder
    raise click.ClickException("There is no course here: a folder with exercises/ and solutions/ was expected.")


def chosen(numbers: tuple[str, ...]) -> list[Folder]:
    """The exercises named by number, name or prefix; all of them when nothing is named."""
    folders = all_folders(course_root())
    return [_one(text, folders) for text in numbers] if numbers else folders


def _one(text: str, folders: list[Folder]) -> Folder:
    wanted = text.zfill(2) if text.isdigit() else text
    exact = [f for f in folders if wanted in (f.number, f.name, f.id)]
    found = exact or [f for f in folders if f.id.startswith(wanted) or f.name.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    names = [f.id for f in found] or difflib.get_close_matches(
        text, [n for f in folders for n in (f.id, f.name)], 3, 0.4
    )
    near = f" Did you mean {' or '.join(names)}?" if names else f" There are {', '.join(f.number for f in folders)}."
    raise click.ClickException(f"No exercise is called {text!r}.{near}")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """A course in writing GPU kernels with Triton. Exercises are graded by pytest: pytest exercises/01_masked_add"""


@main.command(short_help="versions, what can be judged here, a self-test")
def doctor() -> None:
    """Versions, what can be judged here, and a kernel that runs to prove it.

    \b
    Example:  course doctor
    """
    from grader.doctor import examine

    raise SystemExit(0 if examine(click.echo) else 1)


@main.command(short_help="the author's proof that exercises are sound")
@click.argument("exercises", nargs=-1, metavar="[NN]...")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="submissions judged side by side")
def check(exercises: tuple[str, ...], jobs: int) -> None:
    """The author's proof: stubs, solutions, mutants, cheats, odd but right kernels, constants.

    \b
    Example:  course check 03
    """
    _needs_nbgrader()
    from grader.author.check import check as check_all

    complaints = check_all(chosen(exercises), jobs, click.echo)
    click.echo(f"{complaints or 'No'} complaint{'s' * (complaints != 1)}.")
    raise SystemExit(1 if complaints else 0)


@main.command(short_help="writes a stub anew from its solution")
@click.argument("exercises", nargs=-1, required=True, metavar="NN...")
def stub(exercises: tuple[str, ...]) -> None:
    """Writes an exercise's stub anew from its solution; the file that was there is kept beside it.

    \b
    Example:  course stub 03
    """
    _needs_nbgrader()
    from grader.author.stubs import derived_stub

    for folder in chosen(exercises):
        text, path = derived_stub(folder), folder.learner_file
        if path.exists() and path.read_text(encoding="utf-8") == text:
            click.echo(f"{path}: in step")
            continue
        if path.exists():
            kept = next(p for n in itertools.count(1) if not (p := path.with_suffix(f".py.kept{n}")).exists())
            path.replace(kept)
            click.echo(f"{path}: the old file is kept as {kept.name}")
        path.write_text(text, encoding="utf-8")
        click.echo(f"{path}: written")


def _needs_nbgrader() -> None:
    try:
        import nbgrader  # noqa: F401
    except ImportError:
        raise click.ClickException(
            'This command derives stubs with nbgrader, which is missing: python -m pip install -e ".[author]"'
        ) from None
