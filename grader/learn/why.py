"""`course why`: the last failure of an exercise once more, with the explanations that were weighed."""

from __future__ import annotations

import click

from grader.course.by_name import EXERCISE
from grader.course.folder import Folder
from grader.explain.verdict import FAIL
from grader.progress.last_result import last_result
from grader.session.judging_process import JudgeEnded, JudgingProcess


@click.command(short_help="the last failure again, with the explanations that were weighed")
@click.argument("exercise", type=EXERCISE, metavar="NN")
def why(exercise: Folder) -> None:
    """Repeats the last run of an exercise, and says which explanations of its failure were weighed: which calls each
    fits, which contradict it, and why it was not told. It shows why a sentence misleads, and is no hint.

    \b
    Example:  course why 03
    """
    result = last_result(exercise)
    if result is None or result.get("outcome") != FAIL:
        raise click.ClickException(
            f"The last run of {exercise.id} did not fail. Next: pytest {exercise.path} --why judges the file now"
        )
    try:
        status = JudgingProcess().run([str(exercise.path), "--why", "--seed", str(result.get("seed"))])
    except JudgeEnded as error:
        raise click.ClickException(f"{error}. Next: course doctor") from None
    raise SystemExit(status)
