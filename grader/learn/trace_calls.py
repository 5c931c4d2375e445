"""Which call `course trace` looks into: the one that the last run stopped at, else the exercise's small example."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

import click

from grader.course.folder import Folder
from grader.explain.verdict import FAIL
from grader.judge.uses import Check, Drawn, Traffic, Use, asked
from grader.learn.runnable import WHY_IT_STOPPED, judge_it
from grader.learn.trace_begin import Element, element_of, launch_of, stop_of
from grader.progress.last_result import last_result

if TYPE_CHECKING:
    from grader.course.exercise import Exercise
    from grader.course.trial import Trial
    from grader.explain.verdict import Verdict
    from grader.judge.run import Run
    from grader.learn.trace_stops import Stop
    from grader.sentences import Said, Value
    from grader.wire.reply import Reply
    from grader.wire.watched_program import WatchedProgram

SEED = 0


@dataclass
class Call:
    """A call to look into, and where in it to begin."""

    exercise: Exercise
    run: Run
    trial: Trial
    why: str  # it is this one
    failed: bool = False
    program: tuple[int, ...] = ()
    line: int = 0
    element: Element | None = None  # the first one that is wrong, where a program has written it and no line is known
    wrong: str = ""  # what that element is, and what was expected
    programs: dict[tuple[int, ...], Reply] = field(default_factory=dict)  # looked into so far

    def launch(self, reply: Reply) -> int:
        """Returns the number of the launch to begin with."""
        return launch_of(reply, self.run.submission.tree, self.line, self.element)

    def stop(self, stops: list[Stop]) -> int:
        """Returns the number of the stop to begin at."""
        return stop_of(stops, self.line, self.element)

    @property
    def label(self) -> str:
        return self.trial.label(self.run.recorder.constants)

    def watched(self, program: tuple[int, ...]) -> Reply:
        """Raises click.ClickException."""
        from grader.processes.faults import ChildEnded

        if program not in self.programs:
            try:
                reply = self.run.call(
                    self.exercise, self.trial, self.run.inputs(self.trial), watch=[min(at, 1 << 40) for at in program]
                )
            except ChildEnded:
                said = f"{self.exercise.entry} did not come to its end. Next: {judge_it(self.run)}"
                raise click.ClickException(said) from None
            self._refuse(reply)
            self.programs[program] = reply
        return self.programs[program]

    def _refuse(self, reply: Reply) -> None:
        failure = self.run.recorder.load_failure or reply.error
        if reply.watched:
            return
        if failure is None and not reply.refusals:
            raise click.ClickException(f"{self.exercise.entry} launched no kernel. Next: {judge_it(self.run)}")
        said = " ".join(failure.message.split())[:300] if failure else "torch does work that belongs into the kernel"
        where = f" in line {failure.line}" if failure and failure.line else ""
        what = "It does not compile" if failure and failure.kind == "compile" else "It ends before a kernel runs"
        raise click.ClickException(f"{what}{where}: {said.rstrip('.')}. Next: {judge_it(self.run)}")


def stopped(reply: Reply) -> str:
    """What ended the call before its end, in one sentence, or "" """
    error = reply.error
    if error is None:
        return ""
    what = WHY_IT_STOPPED.get(error.kind, error.message)
    return f"It stopped in line {error.line}: {' '.join(what.split()).rstrip('.')}."


def other_programs(program: WatchedProgram, step: int) -> tuple[int, ...]:
    """The program so many after this one in the grid, the first axis counting fastest."""
    number, size = 0, 1
    for at, count in zip(program.program, program.grid):
        number, size = number + at * size, size * max(count, 1)
    number, found = (number + step) % size, []
    for count in program.grid:
        number, at = divmod(number, max(count, 1))
        found.append(at)
    return tuple(found)


# ---- the failing call ----------------------------------------------------------------------------------------------


def failing_call(folder: Folder, module: ModuleType) -> Call | None:
    """The call that the last run told about, judged again; None where it told of none, or it is right now."""
    result = last_result(folder)
    test = _failed_test(result) if result is not None else None
    uses = [use for use in _with_values(module) if test is not None and use.test == test.get("name")]
    if not uses or not isinstance(result.get("seed"), int):
        return None
    from grader.judge.judge import Judge
    from grader.judge.run import Run

    run = Run(folder, None, result["seed"])
    verdict = uses[0].verdict(Judge(module.exercise, run))
    trial = run.history.trial_of(verdict) if verdict is not None else None
    if verdict is None or verdict.outcome != FAIL or trial is None:
        run.end()
        return None
    return _of(module.exercise, run, trial, verdict, uses[0].test)


def _failed_test(result: dict) -> dict | None:
    """The one whose failure was explained."""
    failed = [test for test in result["tests"] if isinstance(test, dict) and test.get("outcome") == FAIL]
    told = [test for test in failed if test.get("id") == result.get("cause") and not test.get("hidden")]
    return next((test for test in told if test.get("message") == result.get("message")), (told or [None])[0])


def _with_values(module: ModuleType) -> list[Use]:
    return asked(module, Check, Drawn, Traffic)


def _of(exercise: Exercise, run: Run, trial: Trial, verdict: Verdict, test: str) -> Call:
    why = f"the call that failed in {test.removeprefix('test_').replace('_', ' ')!r}"
    program, line, element, wrong = tuple(_found(verdict, "program") or ()), _line(verdict), None, ""
    if not line and (unwritten := _unwritten(verdict)):
        why += f", where no program has written {unwritten}"
    elif not line and (said := _first_wrong(verdict)) is not None:
        program, element = said.evidence["program"], element_of(said.evidence["element"])
        wrong = said.text.partition(": ")[2]
    return Call(exercise, run, trial, why, True, program, line, element, wrong)


def _unwritten(verdict: Verdict) -> str:
    """The first element that nobody wrote, where that is what is wrong; else "" """
    from grader.explain.unwritten import Unwritten

    counted = next((one.evidence for one in verdict.said if one.sentence is Unwritten.COUNT), None)
    if counted is not None:
        return f"{counted['name']}{list(counted['index'])}"
    said = _first_wrong(verdict)
    return said.evidence["element"] if said is not None and "program" not in said.evidence else ""


def _first_wrong(verdict: Verdict) -> Said | None:
    """The sentence about the first wrong element, if there is one."""
    from grader.explain.values import Values

    return next((one for one in verdict.said if isinstance(one.sentence, Values) and "element" in one.evidence), None)


def _line(verdict: Verdict) -> int:
    """0: not known."""
    said = _found(verdict, "line")
    return verdict.line or (said if isinstance(said, int) else 0)


def _found(verdict: Verdict, name: str) -> Value | None:
    """Evidence of this name, of the first sentence that has it."""
    return next((one.evidence[name] for one in verdict.said if name in one.evidence), None)


def failed_without_values(folder: Folder, module: ModuleType) -> bool:
    """Whether the last run failed in a test that has no values to show: of a refusal, of machine code, of speed."""
    result = last_result(folder)
    test = _failed_test(result) if result is not None else None
    with_values = {use.test for use in _with_values(module)}
    return test is not None and bool(test.get("name")) and test["name"] not in with_values


def example_call(exercise: Exercise, run: Run, why: str = "a small example") -> Call:
    from grader.course.trial import Trial
    from grader.wire.reply import DTYPES

    example = exercise.example
    if example is None:
        raise click.ClickException(f"{run.folder.id} has no small example.")
    trial = Trial(
        "example", example.data, DTYPES[exercise.dtypes[0]], exercise.bound, example.constants,
        arguments=exercise.arguments, small_dots=True,
    )  # fmt: skip
    return Call(exercise, run, trial, why)
