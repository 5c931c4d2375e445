"""The verdict on an operator of torch: on its values, and on what its fake tells of them.

torch.compile calls fakes in the place of operators. So a call is recorded a second time with fakes in the place of all
operators of the file: what it returns has to look like the results, and nothing may be launched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from grader.course.exercise import Exercise
from grader.course.trial import Trial
from grader.course.wanted_results import wanted_of
from grader.explain import wrong_operators
from grader.explain.verdict import PASS, Verdict
from grader.judging.early_failures import not_ended
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.numerics.arguments import Argument, exact
from grader.wire.messages import FAKE_OF


def operator_verdict(judge: Judge, trial: Trial, operator: str, gives: tuple[str, ...]) -> Verdict:
    """Returns the verdict on a call of the operator, which gives the exercise's results of these names; of all, and the
    gradients among them by its formula, where there are none. Raises ChildEnded, MachineFault."""
    run, own = judge.run, replace(trial, exercise=_exercise_of(trial.exercise, operator, gives))
    inputs = run.inputs(own)
    call = run.recorded_call(own, inputs).call
    if run.process.load_failure is None and (unregistered := wrong_operators.not_registered(call)):
        return unregistered
    verdict, _ = judge.values(own, blame=False)
    return verdict if verdict.outcome != PASS else _wrong_fake(run, own, operator, inputs) or verdict


def _wrong_fake(run: Run, own: Trial, operator: str, inputs: list[Argument]) -> Verdict | None:
    asked = replace(own, exercise=replace(own.exercise, entry=FAKE_OF + operator))
    call = run.recorded_call(asked, inputs).call
    if unregistered := wrong_operators.not_registered(call):
        return unregistered
    if call.refusals:
        return wrong_operators.computes(operator, call.refusals[0], run.submission)
    if (early := not_ended(run, asked.exercise, call)) is not None:
        return early
    if launched := next(call.launches(), None):
        return wrong_operators.launches(operator, launched.line, run.submission)
    shapes = [tuple(one.shape) for one in own.exercise.expected(exact(inputs))]
    return wrong_operators.wrong_fake(operator, call.returned, wanted_of(own), shapes, run.submission)


def _exercise_of(exercise: Exercise, operator: str, gives: tuple[str, ...]) -> Exercise:
    """Returns the exercise of which the operator is the entry."""
    if not gives:
        return replace(exercise, entry=operator)
    names = [one.name for one in exercise.results]
    places = [names.index(name) for name in gives]
    return replace(
        exercise,
        entry=operator,
        reference=_some_of(exercise.reference, places),
        returns=tuple(exercise.results[place] for place in places),
    )


def _some_of(reference: Callable, places: list[int]) -> Callable:
    @wraps(reference)  # with the names of its parameters
    def some(*arguments: object) -> tuple[object, ...]:
        results = reference(*arguments)
        return tuple(results[place] for place in places)

    return some
