"""Failures that leave a kernel unjudged: they say what the judge, its limits or the line of shapes cannot do, and
nothing of what the kernel computes. A kernel that fails in another way is wrong."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from grader.course.trial import Trial
from grader.explain import foreign_kernels
from grader.explain.causes import Cause
from grader.explain.failures import Failures
from grader.explain.refused_by_compiler import OURS
from grader.explain.verdict import Verdict
from grader.judging.judge import Judge
from grader.numerics.arguments import without_values
from grader.numerics.data_sets import Data, short_name
from grader.own.promise_file import OwnPromise
from grader.own.rests_on import is_strided
from grader.processes.faults import ChildEnded
from grader.sentences import Fields, Said, Sentence
from grader.submission.nodes import covers
from grader.wire.messages import Failure
from grader.wire.reply import DTYPES

OF_THE_FILE = ("file", "refused")  # kinds of verdicts
OF_A_CALL = (Cause.PROCESS_EXIT, Cause.GARBLED, Cause.LEFT_BEHIND, Cause.CRASH, Cause.NOT_RECORDABLE)
OF_SIZE = (Cause.TIME_LIMIT, Cause.GRID, Cause.MEMORY)
OF_TORCH = 2  # sentences about an operation of torch in an exercise, where it is a mistake
WITHOUT_TORCH = "let the caller do what {place} does with torch, and hand its result over as an argument"
OR_CONTIGUOUS = "; or take any_strides out of the promise, since a contiguous tensor needs no copy."
FLOATS = ("float32", "float16", "bfloat16")  # dtypes that a refused one is exchanged for


class LeftUnjudged(Sentence):
    DTYPE = "{file}:{line}: the compiler refuses the kernel in {dtype}, and takes it in {other}."
    DTYPE_OF = "{file}:{line}: the compiler refuses the kernel where {name} is {dtype}, and takes it in {other}."
    TORCH = (
        "{file}:{line} computes with torch, and the judge carries out kernels alone: it runs {entry} where no tensor "
        "has a value."
    )
    REFUSES = "{file}:{line}: {entry} itself refuses this call."


@dataclass(frozen=True)
class Unjudged:
    """Why a kernel is not judged. `said` comes before the sentences of the failure, None where these say it all;
    `instead_of`: how many of these it replaces."""

    next: str
    said: Said | None = None
    instead_of: int = 0


def unjudged(verdict: Verdict, judge: Judge, trial: Trial | None, promise: OwnPromise) -> Unjudged | None:
    """Returns why this failure of a call leaves the kernel unjudged; None where it says that the kernel is wrong.
    `trial`: the call, None where none is known."""
    file = judge.run.submission.path.name
    place = f"{file}:{verdict.line}" if verdict.line else file
    if verdict.kind == "refused":
        said = LeftUnjudged.TORCH(file=file, line=verdict.line, entry=judge.exercise.entry)
        or_else = OR_CONTIGUOUS if trial is not None and promise.any_strides and _has_views(trial) else "."
        next = WITHOUT_TORCH.format(place=place) + or_else
        return None if promise.only_kernels else Unjudged(next, said, OF_TORCH)
    if verdict.id == Cause.NOT_KNOWN:
        return Unjudged(f"write {place} with functions of tl, or judge the rest of the kernel without it.")
    if verdict.id in OF_SIZE or any(said.sentence is Failures.ENDLESS for said in verdict.said):
        return Unjudged("state smaller shapes with --shapes, or look for a loop that does not end.")
    if verdict.kind in OF_THE_FILE or verdict.id in OF_A_CALL:
        return Unjudged(f"edit {place}, and judge it again.")
    error = _error(judge, trial) if trial is not None else None
    if trial is None or error is None:
        return None
    if error.kind in foreign_kernels.KINDS or error.type in OURS:
        return Unjudged(f"write {place} with functions of tl and of {file} alone, and judge it again.")
    if error.kind == "host" and _is_refusal(judge.run.submission.tree, error.line):
        said = LeftUnjudged.REFUSES(file=file, line=error.line, entry=trial.exercise.entry)
        takes = "state only what it takes, as --shapes with N=16..512/16 or --dtypes fp16, or mend the line."
        return Unjudged(takes, said)
    if verdict.id == Cause.DOES_NOT_COMPILE:
        return _of_dtype(verdict, judge, trial, file)
    return None


def _has_views(trial: Trial) -> bool:
    return any(isinstance(one, Data) and is_strided(one, trial.dtype) for one in trial.data)


def _error(judge: Judge, trial: Trial) -> Failure | None:
    try:
        return judge.run.recorded_call(trial, judge.run.inputs(trial)).call.error
    except ChildEnded:
        return None


def _is_refusal(tree: ast.Module, line: int) -> bool:
    """Returns whether the line belongs to a `raise` or an `assert` of the file."""
    return any(isinstance(node, ast.Raise | ast.Assert) and covers(node, line) for node in ast.walk(tree))


# ---- dtypes ----------------------------------------------------------------------------------------------------------


def _of_dtype(verdict: Verdict, judge: Judge, trial: Trial, file: str) -> Unjudged | None:
    """Returns that the compiler refuses a dtype; None where it refuses the kernel in all others too."""
    for dtype, name, other, changed in _in_other_dtypes(trial):
        if not _compiles(judge, changed):
            continue
        found: Fields = dict(file=file, line=verdict.line, dtype=short_name(dtype), other=short_name(other))
        place = f"{file}:{verdict.line}" if verdict.line else file
        if name:
            said = LeftUnjudged.DTYPE_OF(name=name, **found)
            return Unjudged(f"state another dtype for {name} in --shapes, or convert in {place}.", said)
        said = LeftUnjudged.DTYPE(**found)
        return Unjudged(f"name what it is for, as --dtypes {short_name(other)}, or convert in {place}.", said)
    return None


def _in_other_dtypes(trial: Trial) -> Iterator[tuple[str, str, str, Trial]]:
    """Yields the call with another dtype for the run, then for each argument with a dtype of its own: the old dtype,
    the argument's name ("" for the run's), the new dtype, and the changed call."""
    run = str(trial.dtype).removeprefix("torch.")
    if any(isinstance(one, Data) and not one.dtype for one in trial.data):
        for other in FLOATS:
            if other != run:
                yield run, "", other, replace(trial, dtype=DTYPES[other])
    for place, one in enumerate(trial.data):
        if isinstance(one, Data) and one.dtype:
            for other in FLOATS:
                if other != one.dtype:
                    data = (*trial.data[:place], one.of(other), *trial.data[place + 1 :])
                    yield one.dtype, trial.arguments[place], other, replace(trial, data=data)


def _compiles(judge: Judge, trial: Trial) -> bool:
    try:
        packed = judge.launch_plan(trial, inputs=without_values(trial.data, trial.dtype))
    except ChildEnded:
        return False
    return not isinstance(packed, Verdict)
