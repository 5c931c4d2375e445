"""A call that does something else than it does as the first of its process: something is kept from earlier calls."""

from __future__ import annotations

from dataclasses import dataclass, replace

from grader.course.exercise import Exercise
from grader.explain.causes import Cause
from grader.explain.verdict import Verdict
from grader.submission.text import Submission
from grader.wire.recorded_call import Kernel, Recipe, RecordedCall
from grader.wire.recorded_parts import PlannedLaunch, steps_with

SPEAKS_FOR_ITSELF = ("error", "result", "refused")  # kinds of verdicts that say more than where the mistake shows
WHY = "What a call does may depend on its arguments alone: nothing may be kept from one call to the next."


@dataclass(frozen=True)
class Told:
    sentence: str
    line: int = 0


def depends_on_earlier_calls(here: RecordedCall, alone: RecordedCall, exercise: Exercise) -> Told | None:
    """`here`: a recording among others. `alone`: one of the same call, before any other. None: they are the same."""
    found = _difference(here, alone)
    if found is None:
        return None
    what, line = found
    return Told(f"{exercise.entry} does not do the same in every call: {what} as the first call of a process.", line)


def add_to(verdict: Verdict, told: Told, submission: Submission, exercise: Exercise) -> None:
    """In front of what wrong values look like, behind what is an error by itself. Of several results one is named."""
    if verdict.kind in SPEAKS_FOR_ITSELF:
        verdict.said += [told.sentence, WHY]
        return
    code = submission.line(told.line)
    place = [f"Line {told.line}:  {code}"] if code else []
    named = verdict.said[:1] if verdict.id == Cause.STATEFUL and len(exercise.results) > 1 else []
    verdict.said[:] = [told.sentence, *named, WHY, *place]
    verdict.id, verdict.kind, verdict.line = "stateful", "cause", told.line


def _difference(here: RecordedCall, alone: RecordedCall) -> tuple[str, int] | None:
    """What differs, in words that are followed by "as the first call", and the line of it."""
    if _how_it_failed(here) != _how_it_failed(alone):
        fails = bool(here.error or here.refusals)
        return "it fails here, and does not" if fails else "it fails only", _line_of_failure(here)
    if here.error or here.refusals:
        return None
    ours, theirs = _launches(here), _launches(alone)
    if len(ours) != len(theirs):
        return f"it launches {_kernels(len(ours))} here, and {len(theirs)}", ours[0].line if ours else 0
    for one, other in zip(ours, theirs):
        if one.grid != other.grid:
            return f"its launch in line {one.line} has the grid {_grid(one)} here, and {_grid(other)}", one.line
        if _made_of(here.kernels[one.kernel]) != _made_of(alone.kernels[other.kernel]):
            return f"its launch in line {one.line} has another kernel or other constants here than", one.line
        if one.parameters != other.parameters:
            return f"its launch in line {one.line} passes other arguments here than", one.line
    if (here.buffers, here.returned) != (alone.buffers, alone.returned):
        return "it allocates or returns something else here than", 0
    return None


def _how_it_failed(call: RecordedCall) -> tuple:
    """Without messages, which may name places in memory."""
    error = call.error and (call.error.kind, call.error.type, call.error.line)
    return error, [(refusal.operation, refusal.line) for refusal in call.refusals]


def _line_of_failure(call: RecordedCall) -> int:
    if call.error is not None:
        return call.error.line
    return call.refusals[0].line if call.refusals else 0


def _launches(call: RecordedCall) -> list[PlannedLaunch]:
    return [step for step in steps_with(call.steps, 0) if isinstance(step, PlannedLaunch)]


def _made_of(kernel: Kernel) -> Recipe:
    """Without the module's constants: a kernel is compiled once, and other calls set others of them."""
    return replace(kernel.recipe, globals=[])


def _kernels(count: int) -> str:
    return "1 kernel" if count == 1 else f"{count} kernels"


def _grid(launch: PlannedLaunch) -> str:
    return str(tuple(launch.grid[: launch.dimensions]))
