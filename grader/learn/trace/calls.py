"""The call that `course trace` looks into: the call that failed in the last run, or the exercise's small example.

A trace begins at the line that failed, or else at the store of the first wrong element. With `--exact` the values of
the exact run, in which nothing is rounded, stand beside those of the usual run.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING

import click

from grader.course.folder import Folder
from grader.explain.verdict import FAIL
from grader.judging.uses import CheckUse, DrawnUse, TrafficUse, Use, uses_asked
from grader.learn.trace.stops import Stop, first_of, stops_of
from grader.learn.usable_submission import WHY_IT_STOPPED, example_trial, judge_it, refusal
from grader.progress.last_result import last_result
from grader.wire.reply import Reply
from grader.wire.traced_program import TracedProgram, TracedStep

if TYPE_CHECKING:
    import ast

    from grader.course.exercise import Exercise
    from grader.course.trial import Trial
    from grader.explain.verdict import Verdict
    from grader.judging.run import Run
    from grader.numerics.arguments import Argument
    from grader.sentences import Said, Value

SEED = 0
ELEMENT = re.compile(r"(\w+)(?:\[([\d, ]*)\])?")  # as in a sentence: z[3, 4], or z for a result without dimensions
FLOATS = ("fp64", "fp32", "fp16", "bf16")


@dataclass
class StepWithExact(TracedStep):
    exactly: TracedStep | None = None  # the same step of the exact run, where its numbers are others


def with_exact(usual: Reply, exact: Reply) -> Reply:
    """Returns the usual run's reply, its steps with those of the exact run."""
    return replace(usual, traced=[_program(one, other) for one, other in zip(usual.traced, exact.traced, strict=True)])


def _program(usual: TracedProgram, exact: TracedProgram) -> TracedProgram:
    """Returns the program with the exact steps, up to where the two part ways: a condition may depend on rounding."""
    steps, together = [], True
    others = iter(exact.steps)
    for step in usual.steps:
        other = next(others, None)
        together = together and other is not None and _place(step) == _place(other)
        differs = together and other is not None and step.dtype in FLOATS and _numbers_of(step) != _numbers_of(other)
        steps.append(StepWithExact(**vars(step), exactly=other if differs else None))
    return replace(usual, steps=list(steps))


def _place(step: TracedStep) -> tuple:
    return step.kind, step.line, step.variable, step.operation, tuple(step.calls), step.iteration, step.iterations


def _numbers_of(step: TracedStep) -> tuple:
    return step.numbers, step.low, step.high, step.nans


@dataclass(frozen=True)
class Element:
    """An element of a result: the name of the result, and the index."""

    result: str
    index: tuple[int, ...]

    def is_written_by(self, step: TracedStep) -> bool:
        """Returns True for a store or an atomic whose box, the smallest around all its elements, holds this element."""
        spans = list(zip(step.box[::2], step.box[1::2]))
        there = len(spans) == len(self.index) and all(low <= at <= high for at, (low, high) in zip(self.index, spans))
        return step.kind in ("store", "atomic") and step.argument == self.result and there


def element_of(text: str) -> Element | None:
    """Returns the element that a text such as "z[3, 4]" names; None if it names none."""
    match = ELEMENT.fullmatch(text)
    return match and Element(match[1], tuple(int(at) for at in (match[2] or "").split(",") if at.strip()))


def stop_of(stops: Sequence[Stop], line: int, element: Element | None) -> int:
    """Returns the number of the stop to begin at: the first at the line, or the last that writes the element, or 0."""
    if line or element is None:
        return first_of(stops, line)
    return max((n for n, stop in enumerate(stops) if any(map(element.is_written_by, stop.steps))), default=0)


def launch_of(reply: Reply, tree: ast.Module, line: int, element: Element | None) -> int:
    """Returns the number of the launch to begin with: the first at the line, or the last that writes the element."""
    if line:
        stops = [stops_of(traced.steps, tree) for traced in reply.traced]
        return next((n for n, of_one in enumerate(stops) if any(stop.is_at(line) for stop in of_one)), 0)
    if element is None:
        return 0
    writes = (n for n, traced in enumerate(reply.traced) if any(map(element.is_written_by, traced.steps)))
    return max(writes, default=0)


@dataclass
class CallToTrace:
    """A call to look into, with the program, line or element to begin at."""

    run: Run
    trial: Trial
    why: str  # a description of the call: "a small example"
    failed: bool = False
    program: tuple[int, ...] = ()
    line: int = 0
    element: Element | None = None  # the first wrong element, if a program wrote it and no line is known
    wrong: str = ""  # the element's value and the expected value, in words
    exact: bool = False  # whether values of the exact run stand beside those of the usual run
    no_exact: str = ""  # why there are none, though they were asked for
    programs: dict[tuple[int, ...], Reply] = field(default_factory=dict)  # the replies so far

    def launch(self, reply: Reply) -> int:
        """Returns the number of the launch to begin with."""
        return launch_of(reply, self.run.submission.tree, self.line, self.element)

    def stop(self, stops: list[Stop]) -> int:
        """Returns the number of the stop to begin at."""
        return stop_of(stops, self.line, self.element)

    @property
    def label(self) -> str:
        return self.trial.label(self.run.process.constants)

    def traced(self, program: tuple[int, ...]) -> Reply:
        """Returns the reply that shows the steps of this program. Raises click.ClickException if no kernel ran."""
        from grader.processes.faults import ChildEnded

        if program not in self.programs:
            inputs, traced = self.run.inputs(self.trial), [min(at, 1 << 40) for at in program]
            try:
                reply = self.run.call(self.trial, inputs, traced=traced)
            except ChildEnded:
                sentence = f"{self.trial.exercise.entry} did not come to its end. Next: {judge_it(self.run)}"
                raise click.ClickException(sentence) from None
            self._refuse(reply)
            self.programs[program] = self._with_exact(reply, inputs, traced) if self.exact else reply
        return self.programs[program]

    def _with_exact(self, reply: Reply, inputs: list[Argument], traced: list[int]) -> Reply:
        from grader.explain.no_exact_run import why_no_exact_run
        from grader.ttir.exact_text import NoExactRun

        try:
            return with_exact(reply, self.run.exact(self.trial, inputs, traced=traced))
        except NoExactRun as why:
            self.no_exact = f"There is no exact run: {why_no_exact_run(why).text}"
            return reply

    def _refuse(self, reply: Reply) -> None:
        failure = self.run.process.load_failure or reply.error
        if reply.traced:
            return
        if failure is None and not reply.refusals:
            raise click.ClickException(f"{self.trial.exercise.entry} launched no kernel. Next: {judge_it(self.run)}")
        what = "It does not compile" if failure and failure.kind == "compile" else "It ends before a kernel runs"
        raise refusal(self.run, what, failure)


def stopped(reply: Reply) -> str:
    """Returns a sentence about the error that stopped the call; "" if there is none."""
    error = reply.error
    if error is None:
        return ""
    what = WHY_IT_STOPPED.get(error.kind, error.message)
    return f"It stopped in line {error.line}: {' '.join(what.split()).rstrip('.')}."


def other_programs(program: TracedProgram, step: int) -> tuple[int, ...]:
    """Returns the program `step` places after this program, in a grid whose first axis counts fastest; at its end it
    begins again."""
    number, size = 0, 1
    for at, count in zip(program.program, program.grid):
        number, size = number + at * size, size * max(count, 1)
    number, programs = (number + step) % size, []
    for count in program.grid:
        number, at = divmod(number, max(count, 1))
        programs.append(at)
    return tuple(programs)


# ---- the failing call ----------------------------------------------------------------------------------------------


def failing_call(folder: Folder, module: ModuleType) -> CallToTrace | None:
    """Returns the call that the last run explained, judged again; None if there is none, or if it is right now."""
    failure = _last_failure(folder)
    if failure is None or failure.seed is None:
        return None
    uses = [use for use in _with_values(module) if use.test == failure.test]
    if not uses:
        return None
    from grader.judging.judge import Judge
    from grader.judging.run import Run

    run = Run(folder, None, failure.seed)
    with contextlib.ExitStack() as ends:
        ends.callback(run.end)
        verdict = uses[0].verdict(Judge(module.exercise, run))
        trial = run.history.trial_of(verdict) if verdict is not None else None
        if verdict is None or verdict.outcome != FAIL or trial is None:
            return None
        call = _call_of_failure(run, trial, verdict, uses[0].test)
        ends.pop_all()  # the run is the call's from here on
        return call


@dataclass(frozen=True)
class _Failure:
    """A failure of the last run: the name of the test, and the seed of the run, None if it is not known."""

    test: str
    seed: int | None


def _last_failure(folder: Folder) -> _Failure | None:
    """Returns the failure that the last run explained; None if there is none."""
    result = last_result(folder)
    if result is None:
        return None
    failed = [test for test in result["tests"] if isinstance(test, dict) and test.get("outcome") == FAIL]
    same_cause = [test for test in failed if test.get("id") == result.get("cause") and not test.get("hidden")]
    explained = [test for test in same_cause if test.get("message") == result.get("message")] or same_cause
    name, seed = explained[0].get("name") if explained else None, result.get("seed")
    return _Failure(name, seed if isinstance(seed, int) else None) if name and isinstance(name, str) else None


def _with_values(module: ModuleType) -> list[Use]:
    return uses_asked(module, CheckUse, DrawnUse, TrafficUse)


def _call_of_failure(run: Run, trial: Trial, verdict: Verdict, test: str) -> CallToTrace:
    why = f"the call that failed in {test.removeprefix('test_').replace('_', ' ')!r}"
    program, line, element, wrong = _numbers(_evidence_named(verdict, "program")), _line(verdict), None, ""
    if unwritten := _unwritten(verdict):  # whatever line it names: a grid makes no values
        why += f", where no program has written {unwritten}"
    elif not line and (said := _first_wrong(verdict)) is not None:
        program, element = _numbers(said.evidence["program"]), element_of(str(said.evidence["element"]))
        wrong = said.text.partition(": ")[2]
    return CallToTrace(run, trial, why, True, program, line, element, wrong)


def _numbers(value: Value | None) -> tuple[int, ...]:
    """Returns evidence that is a list of whole numbers, such as an index; () for anything else."""
    return tuple(value) if isinstance(value, list | tuple) else ()


def _unwritten(verdict: Verdict) -> str:
    """Returns the first element that no program wrote, if this is the mistake, or else ""."""
    from grader.explain.unwritten import Unwritten

    counted = next((sentence.evidence for sentence in verdict.said if sentence.sentence is Unwritten.COUNT), None)
    if counted is not None:
        return f"{counted['name']}{list(_numbers(counted['index']))}"
    wrong = _first_wrong(verdict)
    return str(wrong.evidence["element"]) if wrong is not None and "program" not in wrong.evidence else ""


def _first_wrong(verdict: Verdict) -> Said | None:
    """Returns the sentence about the first wrong element; None if there is none."""
    from grader.explain.values import Values

    return next((one for one in verdict.said if isinstance(one.sentence, Values) and "element" in one.evidence), None)


def _line(verdict: Verdict) -> int:
    """Returns the line of the mistake; 0 if it is not known."""
    line = _evidence_named(verdict, "line")
    return verdict.line or (line if isinstance(line, int) else 0)


def _evidence_named(verdict: Verdict, name: str) -> Value | None:
    """Returns the evidence of this name in the first sentence that has it; None if there is none."""
    return next((sentence.evidence[name] for sentence in verdict.said if name in sentence.evidence), None)


def failed_without_values(folder: Folder, module: ModuleType) -> bool:
    """Returns True if the last run failed in a test without values to show: of a refusal, machine code or speed."""
    failure = _last_failure(folder)
    return failure is not None and failure.test not in {use.test for use in _with_values(module)}


def example_call(exercise: Exercise, run: Run, why: str) -> CallToTrace:
    return CallToTrace(run, example_trial(run.folder, exercise), why)
