"""`course mend`: the change of a line that makes the wrong calls of the last run right, once all hints are open.

A run keeps what its search found, and this command shows it: it searches for nothing, and tells what belongs to the
report that was read.
"""

from __future__ import annotations

import click

from grader.course.by_name import EXERCISE
from grader.course.folder import Folder
from grader.explain.verdict import FAIL
from grader.progress.hints import LAST
from grader.progress.last_result import last_result
from grader.progress.standing import read_progress


@click.command(short_help="after the last hint: the change that makes the wrong calls of the last run right")
@click.argument("exercise", type=EXERCISE, metavar="NN")
def mend(exercise: Folder) -> None:
    """Tells the change of a line with which the wrong calls of your last run come out right, where a run found one. A
    report tells the line alone. This opens after the last hint.

    \b
    Example:  course mend 03
    """
    from grader.show.terminal import shown

    number, judge = exercise.number, f"pytest {shown(exercise.path)}"
    result = last_result(exercise)
    if result is None or result.get("outcome") != FAIL:
        ran = "was not run here yet" if result is None else "passed when it was run last: there is nothing to mend"
        raise click.ClickException(f"{exercise.id} {ran}. Next: {judge if result is None else 'course status'}")
    if read_progress(exercise.root).of(exercise.id).hints < LAST:
        raise click.ClickException(
            f"What to change in {exercise.id} is told after its last hint, hint {LAST}. Next: course hint {number}"
        )
    if not (edits := result.get("edits")):
        raise click.ClickException(
            f"The last run of {exercise.id} knows no single change that makes its wrong calls right. Next: course why "
            f"{number} tells the failure again, and looks three times as long where no cause is named"
        )
    click.echo("\n".join(map(str, edits)))
    click.echo(f"Next: edit {shown(exercise.learner_file)} and run {judge}")
