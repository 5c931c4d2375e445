"""`course solution`: the worked solution and its explanation, after passing or after giving up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click

from grader.course.by_name import EXERCISE
from grader.course.folder import Folder
from grader.course.mistakes import tables
from grader.course.regions import BEGIN, END
from grader.files import keep_aside, write_whole
from grader.progress import progress
from grader.progress.hints import LAST, read_hints
from grader.progress.progress import Record
from grader.progress.standing import read_progress


@click.command(short_help="the worked solution, after passing or with --give-up")
@click.argument("exercise", type=EXERCISE, metavar="NN")
@click.option("--core", is_flag=True, help="show it when the core alone is passed")
@click.option("--give-up", is_flag=True, help="show it before passing; progress.txt notes that")
@click.option("--others", is_flag=True, help="once passed: other right ways, and wrong ones")
def solution(exercise: Folder, core: bool, give_up: bool, others: bool) -> None:
    """Shows the worked solution of an exercise and explains it.

    It opens when the exercise is passed, and with --core when its core is. With --give-up it opens before; that is
    noted in progress.txt, and the exercise can still be passed.

    \b
    Example:  course solution 03
              course solution 03 --others
    """
    record = read_progress(exercise.root).of(exercise.id)
    if others:
        if not record.passed:
            raise click.ClickException(
                f"{exercise.id} is not passed yet, and other ways are solutions too. "
                f"Next: course watch {exercise.number}"
            )
        _show_others(exercise)
        return
    if not (record.passed or record.gave_up or (core and record.core)):
        if not give_up:
            raise click.ClickException(_closed(exercise, record))
        _note_giving_up(exercise)
    _show(exercise, is_passed=record.passed is not None)


def _closed(folder: Folder, record: Record) -> str:
    how_far = f"is at {record.points.replace('/', ' of ')} points" if record.runs else "was not run yet"
    if record.core:
        return (
            f"{folder.id} {how_far}: its core is passed. The solution opens when all of it is, or now with: "
            f"course solution {folder.number} --core"
        )
    hint = f"For a hint: course hint {folder.number}. " if record.hints < LAST else ""
    return (
        f"{folder.id} {how_far}; its solution opens when it is passed. {hint}"
        f"To see the solution now, which is noted: course solution {folder.number} --give-up"
    )


def _note_giving_up(folder: Folder) -> None:
    try:
        with progress.changing(folder.root) as done:
            done.of(folder.id).gave_up = progress.now()
    except OSError as error:
        raise click.ClickException(
            f"Giving up could not be noted ({error.filename}: {error.strerror}), so the solution stays closed. "
            f"It lies in {folder.solution_file.parent}."
        ) from None


def _in_the_learners_course(folder: Folder) -> Path:
    """Returns the path of the solution that the learner reads; copies it first into a folder that was laid down."""
    path = folder.root / folder.solution_file.relative_to(folder.source)
    text = folder.solution_file.read_bytes()
    try:
        if not path.exists() or path.read_bytes() != text:
            if path.exists():
                keep_aside(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.decode("utf-8"))
    except OSError:
        return folder.solution_file
    return path


def _show(folder: Folder, is_passed: bool) -> None:
    from rich.markdown import Markdown
    from rich.syntax import Syntax

    from grader.show.terminal import console, shown

    try:
        code = folder.solution_file.read_text(encoding="utf-8")
        explanation = read_hints(folder).explanation
    except OSError as error:
        raise click.ClickException(f"{error.filename} cannot be read: {error.strerror}.") from None
    lines = [line for line in code.splitlines() if line.strip() not in (BEGIN, END)]
    out = console()
    # No line is cut, so that the code can be copied from a terminal that is narrower than the code.
    width = max((len(line) for line in lines), default=0) + 1
    listing = Syntax("\n".join(lines), "python", theme="ansi_dark", background_color="default", code_width=width)
    out.print(listing, soft_wrap=True)
    out.print()
    out.print(Markdown(explanation))
    out.print()
    out.print(f"Your file: {shown(folder.learner_file)}. The solution: {shown(_in_the_learners_course(folder))}",
              markup=False, soft_wrap=True)  # fmt: skip
    if is_passed:
        out.print(f"Other right ways, and wrong ones: course solution {folder.number} --others", markup=False)
    following = folder.next()
    after = f"Next: {following.id}: course open {following.number}" if following else "Next: course status"
    out.print(after, markup=False, soft_wrap=True)


def _show_others(folder: Folder) -> None:
    """Shows what each accepted kernel does otherwise, and what is wrong with each that is proven to be rejected."""
    from rich.table import Table
    from rich.text import Text

    from grader.show.terminal import console, shown

    out = console()
    for title, ways in (
        (f"Other right ways, in {shown(folder.accepted_folder)}:", _right_ways(folder)),
        (f"Wrong ways, as changes to the solution in {shown(folder.mistakes_file)}:", _wrong_ways(folder)),
    ):
        table = Table.grid("", "", padding=(0, 2), pad_edge=False)
        for name, sentence in ways:
            table.add_row(name, Text(sentence))
        out.print(title, markup=False, soft_wrap=True)
        out.print(table, markup=False)
        out.print()
    path = f"{shown(folder.accepted_folder)}/NAME.py"
    out.print(f"Next: judge one: pytest exercises/{folder.id} --submission {path}", markup=False, soft_wrap=True)


def _right_ways(folder: Folder) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.accepted_folder.glob("*.py")):
        first_paragraph = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
        yield path.stem, " ".join(first_paragraph.removeprefix("Right: ").split())


def _wrong_ways(folder: Folder) -> Iterator[tuple[str, str]]:
    for name, entry in tables(folder).items():
        yield name, entry["wrong"]
