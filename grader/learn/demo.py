"""`course demo`: a wrong softmax is judged, its mistake named, and the same kernel mended and passed.

It shows within seconds of an installation that this machine can judge, and what a verdict looks like. Nothing of the
learner's is read or written.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import textwrap
from pathlib import Path

import click

from grader.course.by_name import course_here
from grader.course.folder import Folder
from grader.course.regions import BEGIN, END
from grader.explain.verdict import FAIL, PASS
from grader.places import COURSE, missing
from grader.session.judging_process import JudgeEnded, JudgingProcess
from grader.show.terminal import console

EXERCISE = Folder(COURSE / "exercises" / "03_softmax")
MENDED, WRONG = 'other=-float("inf")', "other=0.0"
OPENING = (
    "Each program of this softmax loads one row. A row has 781 numbers and its block 1024 lanes: the lanes past the "
    "end of the row hold 0."
)
SEED = 20  # the sentence is the same with any seed; its numbers are those of the README's picture


@click.command(short_help="a wrong kernel, its mistake in one sentence, and the same kernel mended")
def demo() -> None:
    """Judges a softmax with a mistake, shows the sentence that names it, and judges the same kernel mended.

    \b
    Example:  course demo
    """
    if lack := missing():
        raise click.ClickException(lack)
    wrong = wrong_softmax()
    judge = JudgingProcess()
    try:
        _tell(OPENING)
        click.echo()
        _show_line_of(wrong, WRONG)
        _show_verdict(_judged(judge, wrong), FAIL)
        click.echo("The same kernel, but those lanes hold -inf:\n")
        mended = wrong.replace(WRONG, MENDED)
        _show_line_of(mended, MENDED)
        _show_verdict(_judged(judge, mended), PASS)
    finally:
        judge.end()
    folder = "" if course_here() else "course init my-course && cd my-course && "
    click.echo(f"Next: {folder}course watch 01")


def wrong_softmax() -> str:
    """Returns the text of a softmax that is the solution but for what it loads past the end of a row."""
    lines = EXERCISE.solution_file.read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join(line for line in lines if line.strip() not in (BEGIN, END))
    return text.replace(MENDED, WRONG)


def _show_line_of(text: str, part: str) -> None:
    number, line = next((n, line) for n, line in enumerate(text.splitlines(), 1) if part in line)
    _tell(f"{number}  {line.strip()}", "  ")
    click.echo()


def _judged(judge: JudgingProcess, text: str) -> dict:
    """Returns the result that pytest gives for a submission with this text, as --result writes it."""
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "wb") as silence:
        submission, result = Path(folder, f"{EXERCISE.name}.py"), Path(folder, "result.json")
        submission.write_text(text, encoding="utf-8")
        _say_for_now("judging ...")
        arguments = ["-p", "no:cacheprovider", EXERCISE.path, "--submission", submission, "--seed", SEED]
        arguments += ["--device", "cpu", "--result", result]
        try:
            judge.begin(list(map(str, arguments)), silence.fileno())
            status = judge.wait()
        except JudgeEnded as error:
            raise click.ClickException(f"{error}. Next: course doctor") from None
        finally:
            _say_for_now("")
        if not result.exists():
            raise click.ClickException(f"pytest ended with status {status} and gave no result. Next: course doctor")
        return json.loads(result.read_text(encoding="utf-8"))


def _say_for_now(text: str) -> None:
    """Shows a text on a terminal until the next one takes its place."""
    if sys.stdout.isatty():
        click.echo(f"\r\033[K{text}", nl=False)


def _show_verdict(result: dict, expected: str) -> None:
    """Raises ClickException where the verdict is another than that of a sound machine."""
    if result["fault"] or result["outcome"] != expected:
        outcome = result["fault"] or f"{result['outcome']}, and {expected} was expected: {result['message']}"
        raise click.ClickException(f"{outcome.rstrip('.')}. Next: course doctor")
    outcomes = [test["outcome"] for test in result["tests"]]
    if expected == PASS:
        click.echo(f"Passed: {outcomes.count(PASS)} tests found values, memory, traffic and machine code right.\n")
        return
    click.echo(f"{outcomes.count(FAIL)} tests fail, {outcomes.count(PASS)} pass. What is wrong, in one sentence:\n")
    for line in result["message"].splitlines():
        _tell(line, "  ")
    click.echo()


def _tell(text: str, indent: str = "") -> None:
    """Prints a text in lines that fit the terminal, broken between words."""
    further = f"{indent}  " if indent else ""
    click.echo(textwrap.fill(text, console().width, initial_indent=indent, subsequent_indent=further,
                             break_long_words=False, break_on_hyphens=False))  # fmt: skip
