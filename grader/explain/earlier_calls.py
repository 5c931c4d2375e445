"""Explains a call that does something else than as the first of its process: it keeps something from earlier calls."""

from __future__ import annotations

from dataclasses import dataclass, replace

from grader.course.exercise import Exercise
from grader.explain.causes import Cause
from grader.explain.evidence import source_line
from grader.explain.verdict import Verdict
from grader.sentences import Fields, Said, Sentence
from grader.submission.text import Submission
from grader.wire.recorded_call import Recipe, RecordedCall, RecordedKernel
from grader.wire.recorded_parts import PlannedLaunch, steps_with

SPEAKS_FOR_ITSELF = ("error", "result", "refused")  # kinds of verdicts that name a mistake, and not only where it shows
DIFFERS = "{entry} does not do the same in every call: "


class EarlierCalls(Sentence):
    """Sentences about what a call does here, and does not do as the first call of a process."""

    FAILS_HERE = DIFFERS + "it fails here, and does not as the first call of a process."
    FAILS_ALONE = DIFFERS + "it fails only as the first call of a process."
    LAUNCHES = DIFFERS + "it launches {here:#kernel} here, and {alone} as the first call of a process."
    GRID = DIFFERS + "its launch in line {line} has the grid {here} here, and {alone} as the first call of a process."
    KERNEL = DIFFERS + (
        "its launch in line {line} has another kernel or other constants here than as the first call of a process."
    )
    ARGUMENTS = DIFFERS + ("its launch in line {line} passes other arguments here than as the first call of a process.")
    MEMORY = DIFFERS + "it allocates or returns something else here than as the first call of a process."
    NOTHING_KEPT = "What a call does may depend on its arguments alone: nothing may be kept from one call to the next."


@dataclass(frozen=True)
class Told:
    said: Said
    line: int = 0


def depends_on_earlier_calls(here: RecordedCall, alone: RecordedCall, exercise: Exercise) -> Told | None:
    """Returns the first difference between a call as it was recorded twice; None if there is none.

    here: the call after other calls. alone: the call as the first of a process.
    """
    entry = exercise.entry
    if _how_it_failed(here) != _how_it_failed(alone):
        differs = EarlierCalls.FAILS_HERE if here.error or here.refusals else EarlierCalls.FAILS_ALONE
        return Told(differs(entry=entry), _line_of_failure(here))
    if here.error or here.refusals:
        return None
    ours, theirs = _launches(here), _launches(alone)
    if len(ours) != len(theirs):
        said = EarlierCalls.LAUNCHES(entry=entry, here=len(ours), alone=len(theirs))
        return Told(said, ours[0].line if ours else 0)
    for one, other in zip(ours, theirs):
        launch: Fields = dict(entry=entry, line=one.line)
        if one.grid != other.grid:
            return Told(EarlierCalls.GRID(**launch, here=_grid(one), alone=_grid(other)), one.line)
        if _made_of(here.kernels[one.kernel]) != _made_of(alone.kernels[other.kernel]):
            return Told(EarlierCalls.KERNEL(**launch), one.line)
        if one.parameters != other.parameters:
            return Told(EarlierCalls.ARGUMENTS(**launch), one.line)
    if (here.buffers, here.returned) != (alone.buffers, alone.returned):
        return Told(EarlierCalls.MEMORY(entry=entry))
    return None


def add_to(verdict: Verdict, told: Told, submission: Submission, exercise: Exercise) -> None:
    """Adds the difference behind the sentences of an error; otherwise replaces the verdict's sentences by it.

    A verdict that an entry with several results is stateful keeps its first sentence, which names the result.
    """
    why = EarlierCalls.NOTHING_KEPT()
    if verdict.kind in SPEAKS_FOR_ITSELF:
        verdict.said += [told.said, why]
        return
    place = source_line(submission, told.line)
    named = verdict.said[:1] if verdict.id == Cause.STATEFUL and len(exercise.results) > 1 else []
    verdict.said[:] = [told.said, *named, why, *([place] if place else [])]
    verdict.id, verdict.kind, verdict.line = "stateful", "cause", told.line


def _how_it_failed(call: RecordedCall) -> tuple:
    """Returns the error and the refusals of a call without their messages, which may name places in memory."""
    error = call.error and (call.error.kind, call.error.type, call.error.line)
    return error, [(refusal.operation, refusal.line) for refusal in call.refusals]


def _line_of_failure(call: RecordedCall) -> int:
    if call.error is not None:
        return call.error.line
    return call.refusals[0].line if call.refusals else 0


def _launches(call: RecordedCall) -> list[PlannedLaunch]:
    return [step for step in steps_with(call.steps, 0) if isinstance(step, PlannedLaunch)]


def _made_of(kernel: RecordedKernel) -> Recipe:
    """Returns a kernel's recipe without the module's constants: a kernel is compiled once, and later calls may set
    other constants."""
    return replace(kernel.recipe, scopes=[])


def _grid(launch: PlannedLaunch) -> tuple[int, ...]:
    return tuple(launch.grid[: launch.dimensions])
