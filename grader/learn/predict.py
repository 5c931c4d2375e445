"""`course predict`: the questions of a lesson, asked before the kernel is written."""

from __future__ import annotations

import click

from grader.course.by_name import LESSON, LessonToRead, course_root
from grader.course.folder import Folder
from grader.course.questions import LETTERS, BadQuestion, LessonQuestion, NoAnswer, questions_of
from grader.progress import progress
from grader.progress.standing import PASSED, exercise_at_hand, next_line, none_left, read_progress, state

END = "q"


@click.command(short_help="a few questions before you write: what will the kernel do?")
@click.argument("exercise", type=LESSON, required=False, metavar="[NN]")
def predict(exercise: Folder | None) -> None:
    """Asks what the kernel will do, before you write it: how many programs, what each reads, what comes out.

    Without NN, of the exercise you work on. Nothing is judged: Enter shows the answer, without a guess, and q ends.
    How many your first try got right is noted in progress.txt.

    \b
    Example:  course predict 03
    """
    exercise = exercise or _current()
    questions = _questions(exercise)
    count = f"{len(questions)} question{'s' * (len(questions) != 1)}{' before you write' * exercise.is_exercise}"
    _say(f"{exercise.id}: {count}. Enter shows the answer without a guess, {END} ends; no points.", bold=True)
    right, answered, at_the_end = _ask_all(questions)
    _say(_result(exercise, right, answered, at_the_end))
    _say(_next(exercise))


def _current() -> Folder:
    """Returns the exercise that the learner works on, or goes on to once its core is passed.

    Raises click.ClickException if every exercise is passed.
    """
    root = course_root()
    exercise = exercise_at_hand(root, read_progress(root))
    if exercise is None:
        raise none_left("predict")
    return exercise


def _questions(folder: Folder) -> list[LessonQuestion]:
    try:
        questions = questions_of(folder)
    except BadQuestion as bad:
        raise click.ClickException(str(bad)) from None
    except OSError as error:
        raise click.ClickException(f"The questions of {folder.id} cannot be read: {error.strerror}.") from None
    if not questions and folder.is_lesson:
        raise LessonToRead(folder)
    if not questions:
        raise click.ClickException(f"{folder.id} has no questions. Next: course open {folder.number}")
    return questions


def _ask_all(questions: list[LessonQuestion]) -> tuple[int, int, bool]:
    """Returns how many were right, how many were answered, and True where no question was left."""
    right = answered = 0
    for number, question in enumerate(questions, 1):
        _say(f"\n{number} of {len(questions)}. {question.ask}")
        for letter, choice in zip(LETTERS, question.choices):
            _say(f"  {letter}) {choice}")
        reply = _answer(question)
        if reply is None:
            return right, answered, False
        if not reply:
            _say(f"  Skipped: {question.explained} {question.where_shown}")
            continue
        is_right = question.is_right(reply)
        right, answered = right + is_right, answered + 1
        of_choices = f" {question.why}" if question.choices else ""  # a right choice may have been a guess
        _say(f"  Right.{of_choices}" if is_right else f"  No: {question.explained} {question.where_shown}")
    return right, answered, True


def _answer(question: LessonQuestion) -> str | None:
    """Returns an answer as it is typed, "" to skip the question, None to end."""
    while True:
        try:
            typed = click.prompt(">", prompt_suffix=" ", default="", show_default=False).strip()
        except click.Abort:  # there is no terminal, or it has ended
            click.echo()
            return None
        if typed.lower() == END:
            return None
        try:
            if typed:
                question.is_right(typed)
            return typed
        except NoAnswer as why:
            _say(f"  {why} Enter skips, {END} ends.")


def _result(folder: Folder, right: int, answered: int, at_the_end: bool) -> str:
    """Returns the result in words, and notes the result of the first round that comes to its end."""
    if not answered:
        return f"\nNothing was answered. The questions stay: course predict {folder.number}"
    summary = f"\n{right} of {answered} right."
    if folder.is_lesson:  # progress knows exercises alone
        return summary
    if not at_the_end:
        return f"{summary} Not noted, as questions are left: course predict {folder.number}"
    try:
        with progress.changing(folder.root) as done:
            record = done.of(folder.id)
            known, record.predicted = record.predicted, record.predicted or f"{right}/{answered}"
    except OSError as error:
        return f"{summary} That could not be noted: {error.filename}: {error.strerror}."
    return f"{summary} The first try counts: {known.replace('/', ' of ')}." if known else summary


def _next(folder: Folder) -> str:
    from grader.show.terminal import shown

    done = read_progress(folder.root)
    if folder.is_lesson or state(done.of(folder.id)) == PASSED:
        return next_line(folder.root, done)
    return f"Next: edit {shown(folder.learner_file)} and run pytest {shown(folder.path)}"


def _say(text: str, bold: bool = False) -> None:
    from grader.show.terminal import console

    console().print(text, style="bold" if bold else None, markup=False)
