"""A call that the lesson does not promise: the entry has to say so, before it launches anything."""

from __future__ import annotations

from dataclasses import dataclass

from grader.course.exercise import Exercise
from grader.course.trial import Trial
from grader.explain import failures
from grader.explain.causes import Cause
from grader.explain.verdict import PASS, Verdict, failed
from grader.judge.run import Run
from grader.numerics.arguments import without_values

WORK = ("launch", "choose")  # steps of a recorded call; a call with an error is not read beyond that


@dataclass(frozen=True)
class Unpromised:
    """because: what is wrong with the call, for a sentence. error: what has to be raised, by its name in Python."""

    because: str
    error: str


def refused_call(run: Run, exercise: Exercise, trial: Trial, asked: Unpromised) -> Verdict:
    inputs = without_values(trial.data, trial.dtype)
    recorded = run.recorded(exercise, trial, inputs)
    call = recorded.call
    if run.recorder.load_failure is not None:
        return failures.file_failure(run.recorder.load_failure, run.submission, exercise)
    if call.refusals:
        return failures.refusal(call.refusals, run.submission, exercise)
    if call.error is None:
        return _not_refused(f"{exercise.entry} accepts what it cannot compute with", asked)
    if call.error.type != asked.error or call.error.kind != "host":
        verdict = failures.call_failure(call.error, run.submission, exercise)
        wrong = _not_refused(f"{exercise.entry} ends with another error than {asked.error}", asked)
        wrong.said += verdict.said
        wrong.line = verdict.line
        return wrong
    if any(isinstance(step, dict) and step.get("op") in WORK for step in recorded.header.get("steps") or ()):
        return _not_refused(f"{exercise.entry} raises {asked.error} when it has already begun its work", asked)
    return Verdict(PASS, note=f"{asked.error}: {failures.shortened(' '.join(call.error.message.split()))}")


def _not_refused(what: str, asked: Unpromised) -> Verdict:
    advice = f"It has to raise {asked.error} before it launches anything, so that its caller learns what is wrong."
    return failed(Cause.NOT_REFUSED, f"{what}: {asked.because}.", advice, kind="error")
