"""Why a call has no result, in one order for all that ask for calls; and a call that is right to have none.

Where a lesson does not promise a call, the entry has to raise an error before it launches anything.
"""

from __future__ import annotations

from collections.abc import Callable

from grader.course.exercise import Exercise
from grader.course.trial import Trial
from grader.explain import failures
from grader.explain.refused_by_compiler import BEFORE_ANY_LAUNCH, compiler_refusal, is_known
from grader.explain.unpromised_calls import Unpromised, accepted, another_error, too_late
from grader.explain.verdict import PASS, Verdict
from grader.gpu.plan import Plan
from grader.judging.run import Run
from grader.numerics.arguments import without_values
from grader.wire.recorded_call import RecordedCall
from grader.wire.reply import Reply

Call = Reply | RecordedCall | Plan  # as it was carried out, recorded, or compiled


def not_begun(run: Run, exercise: Exercise, call: Call) -> Verdict | None:
    """Returns the failure of a file that cannot be imported, or of a host that did what it may not; else None."""
    if run.process.load_failure is not None:
        return failures.file_failure(run.process.load_failure, run.submission, exercise)
    return failures.refusal(call.refusals, run.submission, exercise) if call.refusals else None


def not_ended(
    run: Run, exercise: Exercise, call: Call, explained: Callable[[], Verdict | None] = lambda: None
) -> Verdict | None:
    """Returns why a call did not come to its end; None if it did.

    explained: returns what explains an error better than its own words, if anything does. What the compiler refuses
    needs no such explanation.
    """
    if (early := not_begun(run, exercise, call)) is not None or call.error is None:
        return early
    if call.error.kind in BEFORE_ANY_LAUNCH or is_known(call.error):
        return compiler_refusal(call.error, run.submission, exercise, run.model)
    return explained() or failures.call_failure(call.error, run.submission, exercise)


def refused_call(run: Run, unpromised: Unpromised, trial: Trial) -> Verdict:
    inputs = without_values(trial.data, trial.dtype)
    call = run.recorded_call(trial, inputs).call
    if (early := not_begun(run, trial.exercise, call)) is not None:
        return early
    if call.error is None:
        return accepted(trial.exercise.entry, unpromised)
    if call.error.type != unpromised.error or call.error.kind != "host":
        return another_error(
            trial.exercise.entry, unpromised, failures.call_failure(call.error, run.submission, trial.exercise)
        )
    if call.begun:
        return too_late(trial.exercise.entry, unpromised)
    return Verdict(PASS, note=f"{unpromised.error}: {failures.shortened(' '.join(call.error.message.split()))}")
