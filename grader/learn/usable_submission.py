"""A submission that a command is to run or to compile, or the sentence that says why it cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from grader.course.exercise import Exercise
    from grader.course.folder import Folder
    from grader.course.trial import Trial
    from grader.gpu.plan import PackedPlan
    from grader.judging.run import Run
    from grader.wire.messages import Failure

# Words for kinds of failures that end a kernel, where the words say more than the failure's message.
WHY_IT_STOPPED = {"endless": "it does not come to an end", "assert": "the assertion does not hold"}


def judge_it(run: Run) -> str:
    """Returns the next action after something was wrong with a submission."""
    from grader.show.terminal import shown

    path = run.submission.path
    other = f" --submission {shown(path)}" if path != run.folder.learner_file else ""
    return f"pytest {shown(run.folder.path)}{other} says what is wrong"


def refuse_what_cannot_run(run: Run) -> None:
    """Raises click.ClickException if the text of a submission alone shows that there is nothing to run."""
    from grader.submission.kernel_names import all_refused

    name = run.submission.path.name
    if run.not_attempted:
        raise click.ClickException(
            f"The marked regions of {name} are empty: there is nothing to show. Next: course open {run.folder.number}"
        )
    if run.submission.failure is not None or all_refused(run.submission.tree):
        raise click.ClickException(f"{name} cannot be run. Next: {judge_it(run)}")


def refuse_without_kernels(folder: Folder, exercise: Exercise) -> None:
    """Raises click.ClickException for an exercise in which no kernel is written."""
    from grader.show.terminal import shown

    if not exercise.has_kernels:
        raise click.ClickException(
            f"{folder.id} has no kernel, so there is nothing to show. Next: pytest {shown(folder.path)}"
        )


def example_trial(folder: Folder, exercise: Exercise) -> Trial:
    """Returns the small example of an exercise as a trial. Raises click.ClickException if there is none."""
    from grader.course.trial import Trial
    from grader.wire.reply import DTYPES

    refuse_without_kernels(folder, exercise)
    example = exercise.example
    if example is None:
        raise click.ClickException(f"{folder.id} has no small example.")
    dtype = DTYPES[exercise.dtypes[0]]
    return Trial(exercise, "example", example.data, dtype, exercise.bound, example.constants, small_dots=True)


def launch_plan(run: Run, trial: Trial, texts: tuple[str, ...] = ()) -> PackedPlan:
    """Returns a call of the entry, compiled and not run, with its kernels at the levels of code that `texts` names.

    Raises click.ClickException if the call cannot be compiled.
    """
    from grader.gpu.plan import BadPlan
    from grader.processes.faults import ChildEnded

    try:
        packed = run.launch_plan(trial, texts)
    except (ChildEnded, BadPlan) as error:
        reason = str(error) if isinstance(error, BadPlan) else f"{trial.exercise.entry} did not come to its end"
        raise click.ClickException(f"{reason.rstrip('.')}. Next: {judge_it(run)}") from None
    failure = run.process.load_failure or packed.plan.error
    if failure is not None or packed.plan.refusals:
        raise refusal(run, "It does not compile", failure)
    return packed


def refusal(run: Run, what: str, failure: Failure | None) -> click.ClickException:
    """Returns the error that says what a call does not do, where, and why. `failure`: None for work done by torch."""
    reason = " ".join(failure.message.split())[:300] if failure else "torch does work that belongs into the kernel"
    where = f" in line {failure.line}" if failure and failure.line else ""
    return click.ClickException(f"{what}{where}: {reason.rstrip('.')}. Next: {judge_it(run)}")
