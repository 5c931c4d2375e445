"""`course hint`: the next hint of an exercise, with the passages that fit the last failure marked."""

from __future__ import annotations

import click

from grader.course.by_name import EXERCISE, course_root
from grader.course.folder import Folder
from grader.explain.verdict import FAIL
from grader.progress import progress
from grader.progress.hints import Hint, Hints, read_hints
from grader.progress.last_result import last_result
from grader.progress.progress import Record
from grader.progress.standing import PASSED, current_exercise, none_left, read_progress, state

FITS = "> This speaks of your last run:"
NOTHING_FITS = (
    "No hint speaks of this: the sentence above is all there is to it. The hints are about the exercise's idea."
)


@click.command(short_help="the next hint; it knows your last failure")
@click.argument("exercise", type=EXERCISE, required=False, metavar="[NN]")
@click.option("--again", is_flag=True, help="show the hints that are open already")
@click.option("--all", "everything", is_flag=True, help="open all three; asks first")
def hint(exercise: Folder | None, again: bool, everything: bool) -> None:
    """Opens the next hint of an exercise; without NN, of the one you work on.

    There are three: where to look, the idea, nearly the line. What fits your last failure is marked. How many
    you opened is noted in progress.txt, and nowhere else.

    \b
    Example:  course hint 03
    """
    exercise = exercise or _current()
    show_hint(exercise, again, everything)


def _current() -> Folder:
    root = course_root()
    exercise = current_exercise(root, read_progress(root))
    if exercise is None:
        raise none_left("hint")
    return exercise


def show_hint(folder: Folder, again: bool = False, everything: bool = False) -> None:
    """Prints the next hint, or the open hints again, or everything after a question, and notes how far hints are open.

    Raises click.ClickException if there is no hint to print, and click.Abort if the learner declines.
    """
    hints, record = _hints_of(folder), read_progress(folder.root).of(folder.id)
    most = len(hints.levels)
    if state(record) == PASSED and not again and not everything:
        raise click.ClickException(
            f"{folder.id} is passed: its solution is open, course solution {folder.number}. "
            f"For its hints: course hint {folder.number} --all"
        )
    if not again and record.hints >= most:
        click.echo(f"All {most} hints of {folder.id} are open. Here they are again.\n")
        again = True
    if again and not record.hints:
        raise click.ClickException(f"No hint of {folder.id} is open yet. course hint {folder.number} opens the first.")
    if everything and not again:
        click.confirm(f"Open all hints of {folder.id}? The third is nearly the line", abort=True)
    first, last = (0, record.hints) if again else (record.hints, most if everything else record.hints + 1)
    _print(folder, record, hints, hints.levels[first:last])
    _note_opened(folder, last)


def _hints_of(folder: Folder) -> Hints:
    try:
        hints = read_hints(folder)
    except OSError as error:
        raise click.ClickException(f"The hints of {folder.id} cannot be read: {error.strerror}.") from None
    if not hints.levels:
        raise click.ClickException(f"{folder.hints_file} holds no hints.")
    return hints


def _print(folder: Folder, record: Record, hints: Hints, chosen: tuple[Hint, ...]) -> None:
    from grader.show.terminal import console

    out = console()
    cause = record.cause if record.outcome == FAIL else ""
    if cause:
        _print_failure(out, folder)
        if not any(cause in passage.causes for level in hints.levels for passage in level.passages):
            out.print(NOTHING_FITS, style="yellow", markup=False)
            out.print()
    for one in chosen:
        out.print(f"Hint {one.level} of {len(hints.levels)} for {folder.id}: {one.title}", style="bold", markup=False)
        for passage in one.passages:
            _print_passage(out, passage.text, cause in passage.causes)
        out.print()
    out.print(_next(folder, hints, chosen[-1].level, cause), markup=False, soft_wrap=True)


def _print_failure(out, folder: Folder) -> None:
    from rich.text import Text

    result = last_result(folder)
    sentence = str(result.get("message", "")).partition("\n")[0] if result else ""
    if sentence:
        out.print(Text.assemble(("Your last run: ", "bold"), sentence))
        out.print()


def _print_passage(out, text: str, fits: bool) -> None:
    from rich.markdown import Markdown
    from rich.padding import Padding

    if fits:
        out.print()
        out.print(FITS, style="yellow", markup=False)
    elif not text.startswith("- "):
        out.print()
    out.print(Padding(Markdown(text), (0, 0, 0, 2)))


def _next(folder: Folder, hints: Hints, level: int, cause: str) -> str:
    from grader.show.terminal import shown

    edit = f"Next: try again with pytest {shown(folder.path)}."
    if level < len(hints.levels):
        fitting = hints.level_for(cause, level) if cause else 0
        about = f", and hint {fitting} speaks of your last run" if fitting > level else ""
        return f"{edit} Still stuck? course hint {folder.number} opens hint {level + 1}{about}"
    knows = bool(cause) and bool((last_result(folder) or {}).get("edits"))
    mend = f" course mend {folder.number} tells the change that mends your last run;" if knows else ""
    return f"{edit} That was the last hint;{mend} course solution {folder.number} --give-up shows the solution"


def _note_opened(folder: Folder, level: int) -> None:
    try:
        with progress.changing(folder.root) as done:
            record = done.of(folder.id)
            record.hints = max(record.hints, level)
    except OSError as error:
        click.echo(f"Which hints are open could not be noted: {error.filename}: {error.strerror}.")
