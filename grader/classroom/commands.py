"""`course notebooks` and `course grade`: the instructor's commands."""

from __future__ import annotations

import os
from pathlib import Path

import click

from grader.choice import chosen
from grader.sandbox import AUTO, LEVELS


@click.command(short_help="a class's folder for nbgrader: notebooks, configuration")
@click.argument("exercises", nargs=-1, metavar="[NN]...")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="the class's folder")
@click.option("--assignment", metavar="NAME", help="put the exercises into one assignment of this name")
def notebooks(exercises: tuple[str, ...], out: Path, assignment: str | None) -> None:
    """Writes an nbgrader course: source notebooks from the exercises, a configuration, a README.

    \b
    Example:  course notebooks --out ~/triton-2027 01 03
              course notebooks --out ~/triton-2027 --assignment week1 01 02
    """
    _needs_nbgrader()
    from grader.classroom.course_folder import write
    from grader.classroom.rubric import RubricError

    if assignment is not None and (not assignment.strip() or set(assignment) & set("/\\+ ")):
        raise click.ClickException("--assignment: a name without blanks, slashes and plus signs was expected.")
    try:
        write(out.resolve(), chosen(exercises), assignment, click.echo)
    except RubricError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or out}: {error.strerror}") from None


@click.command(short_help="judges what a class handed in, and fills nbgrader's gradebook")
@click.argument("assignments", nargs=-1, metavar="[ASSIGNMENT]...")
@click.option("--from", "sources", multiple=True, type=click.Path(path_type=Path, exists=True), metavar="PATH",
              help="a zip or folder of a learning platform, taken into submitted/ first")  # fmt: skip
@click.option("--student", "students", multiple=True, metavar="ID", help="only this student (repeatable)")
@click.option("--regrade", is_flag=True, help="judge again, with new data, what has a result")
@click.option("--isolation", type=click.Choice(LEVELS), default=AUTO, show_default=True,
              help="process limits; bubblewrap where there is one; bubblewrap or nothing")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True,
              help="hand-ins judged side by side")  # fmt: skip
def grade(assignments, sources, students, regrade, isolation, jobs) -> None:
    """Judges the hand-ins of a class and puts the verdicts into nbgrader's gradebook. Run it in the class's folder.

    What has a result already is not judged again; a run that was stopped goes on where it was.

    \b
    Example:  course grade
              course grade 03_softmax --student ada
              course grade --from moodle.zip
    """
    _needs_nbgrader()
    from grader.classroom.grading import Choice, GradingError, grade_class

    if not Path("nbgrader_config.py").exists():
        raise click.ClickException(
            f"{Path.cwd()} has no nbgrader_config.py. Next: cd into the class's folder, the one that course notebooks "
            "made with --out."
        )
    choice = Choice(assignments, students, sources, regrade, isolation, jobs)
    try:
        raise SystemExit(grade_class(choice, click.echo))
    except GradingError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or 'a file'}: {error.strerror or error}. What was judged is kept. "
            "Mend this, then run the same command again."
        ) from None
    except KeyboardInterrupt:
        raise click.ClickException("Stopped. What was judged is kept; the same command goes on from there.") from None


def _needs_nbgrader() -> None:
    try:
        import nbgrader  # noqa: F401
        import pebble  # noqa: F401
    except ImportError as error:
        raise click.ClickException(
            f'{error.name} is missing: python -m pip install -e ".[classroom]" in the course\'s folder'
        ) from None
