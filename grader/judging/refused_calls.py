"""A call that the lesson does not promise: the entry has to raise an error before it launches anything."""

from __future__ import annotations

from grader.course.trial import Trial
from grader.explain import failures
from grader.explain.unpromised_calls import Unpromised, accepted, another_error, too_late
from grader.explain.verdict import PASS, Verdict
from grader.judging.early_failures import not_begun
from grader.judging.run import Run
from grader.numerics.arguments import without_values


def refused_call(run: Run, asked: Unpromised, trial: Trial) -> Verdict:
    inputs = without_values(trial.data, trial.dtype)
    call = run.recorded_call(trial, inputs).call
    if (early := not_begun(run, trial.exercise, call)) is not None:
        return early
    if call.error is None:
        return accepted(trial.exercise.entry, asked)
    if call.error.type != asked.error or call.error.kind != "host":
        return another_error(
            trial.exercise.entry, asked, failures.call_failure(call.error, run.submission, trial.exercise)
        )
    if call.begun:
        return too_late(trial.exercise.entry, asked)
    return Verdict(PASS, note=f"{asked.error}: {failures.shortened(' '.join(call.error.message.split()))}")
