"""`course notebooks` and `course grade`: the instructor's commands."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from grader.course.by_name import chosen
from grader.gpu.nvml import gpu_here
from grader.places import command_for
from grader.processes.bubblewrap import AUTO, LEVELS

EVERYONE = "*"  # the value of --regrade without a name


@click.command(short_help="notebooks: a class's folder for nbgrader, or to study alone")
@click.argument("exercises", nargs=-1, metavar="[NN]...")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="the folder to write")
@click.option("--self-study", is_flag=True, help="notebooks for somebody who studies alone; no class")
@click.option("--from", "origin", default="", metavar="URL", help="with --self-study: where a notebook gets the course "
              "from, a repository's address or what else pip takes")  # fmt: skip
@click.option("--assignment", metavar="NAME", help="put the exercises into one assignment of this name")
@click.option("--db", default="", metavar="URL", help="nbgrader's gradebook, postgresql://... (default: a file in DIR)")
@click.option("--speed/--no-speed", default=None, help="whether what only a GPU can show counts (default: as the "
              "class has it; a new one, if there is a GPU here)")  # fmt: skip
def notebooks(exercises, out: Path, self_study: bool, origin: str, assignment: str | None, db: str, speed) -> None:
    """Writes an nbgrader course: source notebooks from the exercises, a configuration, a README.
    With --self-study: a notebook per exercise for somebody who studies alone, hosted or here.

    \b
    Example:  course notebooks --out ~/triton-2027 01 03
              course notebooks --out ~/triton-2027 --assignment week1 01 02
              course notebooks --self-study --out notebooks
    """
    if self_study:
        _refuse_of_a_class({"--assignment": assignment, "--db": db, "--speed or --no-speed": speed is not None})
        _write_for_self_study(exercises, out, origin)
    elif origin:
        raise click.UsageError("--from belongs to --self-study; a class's students have the course installed.")
    else:
        _write_class(exercises, out, assignment, db, speed)


def _write_for_self_study(exercises: tuple[str, ...], out: Path, origin: str) -> None:
    _needs("nbformat")
    from grader.learn.notebooks.self_study import Origin, write_notebooks
    from grader.show.terminal import say

    if set(origin) & set('"\\\n'):
        raise click.ClickException("--from: an address, or a file's name, without quotes and backslashes was expected.")
    try:
        write_notebooks(out, chosen(exercises), Origin(origin) if origin else Origin(), say)
    except OSError as error:
        raise click.ClickException(f"{error.filename or out}: {error.strerror}") from None


def _write_class(exercises: tuple[str, ...], out: Path, assignment: str | None, db: str, speed: bool | None) -> None:
    _needs("distributed", "nbgrader")
    from grader.classroom.nbgrader.class_folder import Class, counts_speed, write
    from grader.classroom.nbgrader.gradebook_url import check_url
    from grader.show.terminal import say

    if assignment is not None and (not assignment.strip() or set(assignment) & set("/\\+ ")):
        raise click.ClickException("--assignment: a name without blanks, slashes and plus signs was expected.")
    folders = chosen(exercises)
    try:
        check_url(db)
        if speed is None:
            speed = counts_speed(out)
        if speed is None:
            speed = gpu_here()
            if not speed:
                say("No GPU here: what only a GPU can show is left out of the points. --speed keeps it in.")
        write(out.resolve(), folders, Class(assignment, speed, db), say)
    except OSError as error:
        raise click.ClickException(f"{error.filename or out}: {error.strerror}") from None


@click.command(short_help="judges what a class handed in; fills nbgrader's gradebook, or a folder of results")
@click.argument("what", nargs=-1, metavar="[ASSIGNMENT]... | SUBMISSIONS")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="RESULTS",
              help="judge a folder of submissions without nbgrader; results, tables and a report go here")  # fmt: skip
@click.option("--only", "only", multiple=True, metavar="NN", help="with --out: only this exercise (repeatable)")
@click.option("--roster", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="CSV",
              help="with --out: the class's students, in nbgrader's columns; each has a row then")  # fmt: skip
@click.option("--from", "sources", multiple=True, type=click.Path(path_type=Path, exists=True), metavar="PATH",
              help="a zip or folder of a learning platform, taken into submitted/ first")  # fmt: skip
@click.option("--student", "students", multiple=True, metavar="ID", help="only this student (repeatable)")
@click.option("--regrade", is_flag=False, flag_value=EVERYONE, multiple=True, metavar="[STUDENT]",
              help="judge again, with new data, what has a result: this student's, or all that is chosen")  # fmt: skip
@click.option("--isolation", type=click.Choice(LEVELS), default=AUTO, show_default=True,
              help="process limits; bubblewrap where there is one; bubblewrap or nothing")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), help="hand-ins judged side by side on this machine, spread "
              "over its GPUs (default: one per core, at most 12 per GPU)")  # fmt: skip
@click.option("--scheduler", default="", metavar="ADDRESS", help="judge on the workers of this Dask scheduler instead")
@click.option("--no-speed", is_flag=True, help="with --out: what only a GPU can show does not count")
@click.option("--mend", is_flag=True, help="let feedback tell the line in which one change makes wrong calls right; "
              "what has a result keeps its feedback")  # fmt: skip
@click.option("--db", default="", metavar="URL", help="nbgrader's gradebook, if not that of nbgrader_config.py")
def grade(what, out, only, roster, sources, students, regrade, isolation, jobs, scheduler, no_speed, mend, db) -> None:
    """Judges the hand-ins of a class and puts the verdicts into nbgrader's gradebook. Run it in the class's folder.
    With --out: judges a folder of submissions, STUDENT/softmax.py or the like, and writes the results there.

    What has a result already is not judged again; a run that was stopped goes on where it was.

    \b
    Example:  course grade
              course grade 03_softmax --student ada
              course grade --from moodle.zip
              course grade submissions/ --out results/ --only 03
    """
    _needs("distributed", *(["nbgrader"] if out is None else []))
    from grader.classroom.judge_missing import How, Students

    again = Students(tuple(name for name in regrade if name != EVERYONE), everyone=EVERYONE in regrade)
    how = How(isolation, jobs, scheduler, mend)
    try:
        if out is not None:
            _refuse_with_out({"--from": sources, "--student": students, "--db": db})
            raise SystemExit(_grade_folder(what, out, only, roster, again, how, no_speed))
        if roster:
            raise click.UsageError("--roster belongs to --out; here, nbgrader has the list: nbgrader db student import")
        if only:
            raise click.UsageError("--only belongs to --out; here, name the assignments: course grade 03_softmax")
        if no_speed:
            raise click.UsageError("--no-speed belongs to --out; here, the notebooks say what counts: course notebooks")
        raise SystemExit(_grade_class(what, sources, students, again, how, db))
    except BrokenPipeError:
        raise  # the reader of the output has closed it; click ends quietly
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or 'a file'}: {error.strerror or error}. What was judged is kept. "
            "Mend this, then run the same command again."
        ) from None
    except KeyboardInterrupt:
        on = "with --regrade the same command begins anew" if regrade else "the same command goes on from there"
        raise click.ClickException(f"Stopped. What was judged is kept; {on}.") from None


def _grade_class(assignments, sources, students, again, how, db) -> int:
    from grader.classroom.nbgrader.grade_class import GradeArguments, grade_class
    from grader.show.terminal import say

    if not Path("nbgrader_config.py").exists():
        folder = next((name for name in assignments if Path(name).is_dir()), "")
        form = f" To judge {folder} as a folder of submissions, say where to: --out RESULTS." if folder else ""
        raise click.ClickException(
            f"{Path.cwd()} has no nbgrader_config.py. Next: cd into the class's folder, the one that course notebooks "
            f"made with --out.{form}"
        )
    return grade_class(GradeArguments(assignments, students, sources, again, how, db), say)


def _grade_folder(what, out, only, roster, again, how, no_speed) -> int:
    from grader.classroom.names import read_roster
    from grader.classroom.plain_folder.grade_folder import FolderChoice, grade_folder
    from grader.show.terminal import say

    if len(what) != 1:
        taken = next((name for name in again.names if Path(name).is_dir()), "")
        why = f" --regrade took {taken} for a student: put it at the end." if taken else ""
        if only and len(what) > 1:
            why = (
                f" Each further exercise wants an --only of its own: {' '.join(f'--only {name}' for name in what[1:])}."
            )
        raise click.UsageError(f"--out wants one folder of submissions: course grade SUBMISSIONS --out RESULTS.{why}")
    source = Path(what[0])
    if not source.exists():
        raise click.ClickException(f"{source} is not there: a folder of submissions was expected, or a zip of one.")
    if out.resolve() == source.resolve():
        raise click.ClickException(f"--out {out}: results would lie among the hand-ins. Name another folder.")
    chosen_ones = tuple(chosen(only)) if only else ()
    people = tuple(read_roster(roster)) if roster else ()
    return grade_folder(
        FolderChoice(source, out, tuple(chosen(())), people, chosen_ones, again, how, not no_speed), say
    )


def _refuse_with_out(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value:
            other = " To judge one student anew: --regrade NAME." if option == "--student" else ""
            raise click.UsageError(
                f"{option} belongs to a class's folder for nbgrader; with --out it has no meaning.{other}"
            )


def _refuse_of_a_class(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value:
            raise click.UsageError(f"{option} belongs to a class; with --self-study it has no meaning.")


def _needs(*names: str) -> None:
    """Raises ClickException where one of these packages is not installed.

    The check imports nothing: nbgrader takes two seconds, and a folder of submissions is judged without it.
    """
    for name in names:
        if not find_spec(name):
            raise click.ClickException(f"{name} is missing: {command_for('classroom')}")


@click.command(short_help="autograder 03: a zip that lets Gradescope judge each upload")
@click.argument("exercise", metavar="NN")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="ZIP", help="the file")
def autograder(exercise: str, out: Path) -> None:
    """Writes Gradescope's autograder for an exercise: upload it as the assignment's. The container installs the course
    when it is built, and judges without a network and without a GPU.

    \b
    Example:  course autograder 03 --out softmax.zip
    """
    from grader.classroom.gradescope import write_zip
    from grader.classroom.rubric import SPEED, points_of
    from grader.show.terminal import say

    (folder,) = chosen((exercise,))
    points = {item: worth for item, worth in points_of([folder])[folder.id].items() if item != SPEED}
    try:
        write_zip(folder, out)
    except OSError as error:
        raise click.ClickException(f"{error.filename or out}: {error.strerror}") from None
    told = ", ".join(f"{item} {worth:g}" for item, worth in points.items())
    say(f"{out}: {out.stat().st_size / (1 << 20):.1f} MB, {sum(points.values()):g} points ({told}) without a GPU")
    say("Next: in Gradescope make a programming assignment of these points, and upload the zip as its autograder.")
