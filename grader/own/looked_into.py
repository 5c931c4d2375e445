"""Tells `course serve` more of a judged kernel than its judgement says, as plain data: the explanations that were
weighed, and the values that a program held, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from grader.own.own_judge import OwnVerdict
from grader.processes.faults import ChildEnded
from grader.session.weighed import weighed
from grader.wire.traced_program import TracedProgram

MOST_CALLS = 20  # failed calls that are listed
MOST_STEPS = 400  # of a program
FIRST_PROGRAM = (0,)


def explained(found: OwnVerdict) -> dict[str, Any]:
    """Returns the explanations of wrong values that were weighed, that which is told first, and the calls by outcome.
    A failure that needs no explanation, as a missing mask, has one: what is told."""
    history = found.grading.run.history
    failed = [{"case": verdict.case, "cause": str(verdict.id)} for _, verdict in history.failures[:MOST_CALLS]]
    return {"explanations": [asdict(one) for one in weighed(found.grading)],
            "failed": failed, "right_calls": len(history.right_trials)}  # fmt: skip


def traced(found: OwnVerdict, program: Sequence[int]) -> dict[str, Any]:
    """Returns the values of a program in the call that failed, or else in the first that was judged; why there are
    none, where no kernel ran. `program`: its place in the grid, () for the one that the mistake names, or the first."""
    run, worst = found.grading.run, found.grading.diagnosis
    trial = run.history.trial_of(worst.verdict) if worst is not None else next(iter(run.history.right_trials), None)
    place = tuple(program) or _program_told(found) or FIRST_PROGRAM
    try:
        reply = run.call(trial, run.inputs(trial), traced=list(place)) if trial is not None else None
    except ChildEnded:
        reply = None
    if trial is None or reply is None or not reply.traced:
        return {"trace": None, "no_trace": f"No kernel came to its program ({', '.join(map(str, place))})."}
    case = trial.label(run.process.constants)
    return {"trace": {"case": case, "launches": [_launch(one) for one in reply.traced]}}


def _program_told(found: OwnVerdict) -> tuple[int, ...]:
    """Returns the program that the sentences name; () for none."""
    worst = found.grading.diagnosis
    for said in worst.verdict.said if worst is not None else ():
        named = said.evidence.get("program")
        if isinstance(named, tuple | list) and named and all(type(one) is int for one in named):
            return tuple(named)
    return ()


def _launch(traced: TracedProgram) -> dict[str, Any]:
    """Returns a launch with its program's steps; what is 0 or empty is left out of a step."""
    steps = [{name: value for name, value in asdict(one).items() if value} for one in traced.steps[:MOST_STEPS]]
    more = traced.left_out + max(0, len(traced.steps) - MOST_STEPS)
    return {"kernel": traced.kernel, "line": traced.line, "grid": traced.grid, "program": traced.program,
            "steps": steps, "left_out": more}  # fmt: skip
