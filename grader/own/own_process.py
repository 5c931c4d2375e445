"""Judges a request and says what is told of it, in the process that imports torch and judges."""

from __future__ import annotations

import ast
import secrets
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from grader.course.exercise import Exercise, in_words
from grader.course.trial import Trial
from grader.explain.causes import Cause
from grader.explain.failures import file_failure
from grader.explain.mend import MendedLine, is_mended
from grader.explain.verdict import PASS, SKIPPED, Verdict
from grader.gpu.models import DEFAULT_TARGET, MODELS
from grader.numerics.arguments import DataOrNumber
from grader.numerics.data_sets import Data, short_name
from grader.own.cannot_judge import CannotJudge, message_of
from grader.own.entry_of import entry_of
from grader.own.in_torch import in_torch
from grader.own.judgement import EXPLAIN, JUDGE, NOT_JUDGED, RIGHT, TRACE, WRONG, Judgement
from grader.own.looked_into import explained, traced
from grader.own.own_exercise import OwnExercise, drawn_words, own_exercises
from grader.own.own_judge import OwnVerdict, OwnWay, judged
from grader.own.own_reference import OwnReference, read_reference
from grader.own.own_speed import speed_of
from grader.own.promise_file import OwnPromise, promise_of, read_promise
from grader.own.rests_on import rests_on
from grader.own.stated_files import stated_files
from grader.own.stated_shapes import DTYPES
from grader.own.timed_call import timed_data
from grader.own.unjudged import unjudged
from grader.processes import bubblewrap
from grader.processes.faults import MachineFault
from grader.submission.text import Submission, kernels_of, read_submission
from grader.wire.messages import Failure
from grader.wire.printable import one_line

RUN_DTYPES = ("float32", "float16", "bfloat16")  # that a kernel is judged in
NO_TEXT = (Cause.MISSING, Cause.NO_FILE, Cause.UNREADABLE)
MOST_NOTES = 8
RANDOM = ("rand", "randn", "randint", "rand4x", "randn4x", "randint4x")


def judgement_of(request: dict) -> Judgement:
    """Returns the judgement that a request of `judgement.judge` asks for."""
    return Judgement(**answer_of(request))


def answer_of(request: dict) -> dict[str, Any]:
    """Returns the fields of the judgement that a request asks for; then those of its `tool`, where the kernel came so
    far that there is something to tell."""
    began, seed = time.monotonic(), request["seed"]
    seed = secrets.randbits(31) if seed is None else seed
    known = {"file": request["file"], "reference": request["reference"], "seed": seed}
    try:
        with tempfile.TemporaryDirectory() as scratch:
            found = _judged(request, seed, Path(scratch))
    except CannotJudge as why:
        found = {"outcome": NOT_JUDGED, "sentences": [why.said], "next": why.next} | why.more
    except MachineFault as fault:
        found = {"outcome": NOT_JUDGED, "sentences": [f"{fault}."], "next": "course doctor"}
    except Exception as error:  # a fault of the judge: the caller gets a sentence, and no traceback
        said = f"The judge itself failed: {message_of(error)}{_place_of(error)}."
        found = {"outcome": NOT_JUDGED, "sentences": [said], "next": "course doctor; this is no mistake of yours."}
    seconds = round(time.monotonic() - began, 2)
    found["sentences"] = [one_line(said) for said in found["sentences"]]
    more = found.pop("more", {})
    return Judgement(**(known | {"seconds": seconds} | found)).to_json() | more


def _place_of(error: BaseException) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return f" at {Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}" if frame is not None else ""


@dataclass(frozen=True)
class Asked:
    """A request whose files have been read, and whose parts fit together: it can be judged."""

    file: Path
    reference: OwnReference
    promise: OwnPromise
    entry: str
    exercises: list[OwnExercise]
    how: OwnWay


def asked(request: dict, seed: int) -> Asked:
    """Returns what a request asks for. Raises CannotJudge."""
    torch.set_num_threads(1)
    target = request["target"] or DEFAULT_TARGET
    if target not in MODELS:
        raise CannotJudge(
            f"--target {target} is no GPU that kernels are compiled for.", f"use one of {', '.join(MODELS)}."
        )
    sandboxed = _sandboxed(request.get("isolation", bubblewrap.LIMITS))
    how = OwnWay(seed, MODELS[target], request.get("thorough", False), sandboxed)
    files = stated_files(request)
    promise = _promise(files.promise)
    submission = read_submission(files.file)
    reference = read_reference(files.reference, promise.changed)
    if submission.failure is not None:
        raise _of_unreadable(files.file, submission, submission.failure, target)
    entry = entry_of(submission, request["entry"], reference.name, reference.arguments)
    dtypes = _dtypes(request["dtypes"])
    exercises = own_exercises(entry, reference, submission, request["shapes"], dtypes, promise, seed)
    if request.get("time"):
        timed_data(exercises[0], request["time"], seed)  # a line that states no call is told before all else
    return Asked(files.file, reference, promise, entry, exercises, how)


def _judged(request: dict, seed: int, scratch: Path) -> dict:
    one = asked(request, seed)
    with judged(one.file, scratch, one.exercises, one.reference, one.promise.approximates, one.how) as found:
        told = _told(found, one.file, one.promise)
        told["more"] = _more(found, request)
    drawn = {
        "calls": found.calls,
        "dtypes": [short_name(own.dtype) for own in one.exercises],
        "sizes": drawn_words(one.exercises[0]),
        "layouts": _layouts(one.promise),
    }
    named = {"file": str(one.file), "reference": str(one.reference.path), "entry": one.entry}
    if told["outcome"] == RIGHT and request.get("time"):
        told["speed"] = speed_of({**request, "seed": seed})
    return told | named | {"drawn": drawn, "target": request["target"] or DEFAULT_TARGET}


def _of_unreadable(file: Path, submission: Submission, failure: Failure, target: str) -> CannotJudge:
    """Returns what is told of a file that cannot be read as Python."""
    verdict = file_failure(failure, submission, Exercise("", lambda x: x, "exact", 0))
    told = [f"There is no file {file}."] if verdict.id in (Cause.MISSING, Cause.NO_FILE) else verdict.lines
    place = f"{file.name}:{verdict.line}" if verdict.line else file.name
    next = "name the file that holds the kernel." if verdict.id in NO_TEXT else f"edit {place}, and judge it again."
    return CannotJudge(told[0], next, sentences=told, cause=verdict.id, line=verdict.line, target=target)


def _sandboxed(level: str) -> bool:
    if level not in bubblewrap.LEVELS:
        raise CannotJudge(f"--isolation {level} is no level.", f"use one of {', '.join(bubblewrap.LEVELS)}.")
    if level == bubblewrap.STRICT and bubblewrap.missing():
        raise CannotJudge(f"--isolation strict: {bubblewrap.missing()}.", "install it, or use --isolation auto.")
    return bubblewrap.wanted(level)


def _promise(stated: dict | str | None) -> OwnPromise:
    if isinstance(stated, str):
        return read_promise(Path(stated))
    return promise_of(stated or {})


def _dtypes(stated: list[str]) -> list[str]:
    found = [DTYPES.get(name, name) for name in stated]
    if unknown := [name for name, one in zip(stated, found) if one not in RUN_DTYPES]:
        raise CannotJudge(f"--dtypes: {unknown[0]} is no dtype that kernels are judged in.", "use fp32, fp16 and bf16.")
    return list(dict.fromkeys(found))


def _more(found: OwnVerdict, request: dict) -> dict[str, Any]:
    """Returns what a request asks for besides the judgement."""
    tool = request.get("tool", JUDGE)
    if tool == EXPLAIN:
        return explained(found)
    return traced(found, request.get("program") or ()) if tool == TRACE else {}


# ---- what is told ----------------------------------------------------------------------------------------------------


def _told(found: OwnVerdict, file: Path, promise: OwnPromise) -> dict:
    grading = found.grading
    worst = grading.diagnosis
    notes = _notes(found)
    if worst is None:
        open_ones = [one.verdict for one in grading.results if one.verdict.outcome == SKIPPED]
        if open_ones:
            return {
                "outcome": NOT_JUDGED,
                "sentences": [f"A call cannot be judged here: {open_ones[0].note}."],
                "next": "state smaller shapes with --shapes.",
                "notes": notes,
            }
        return {"outcome": RIGHT, "sentences": ["Right."], "next": "", "notes": notes}
    verdict = worst.verdict
    trial = grading.run.history.trial_of(verdict)
    if (why := unjudged(verdict, found.judge, trial, promise)) is not None and why.said is not None:
        verdict.said[: why.instead_of] = [why.said]
    if why is None:
        failed = [one for one, _ in grading.run.history.failures]
        verdict.said += rests_on(verdict, promise, failed, found.judge.interpreted.lost)
    told = {
        "outcome": WRONG if why is None else NOT_JUDGED,
        "sentences": _sentences(verdict, grading.edits),
        "said": [one.to_json() for one in verdict.said], "cause": str(verdict.id), "line": verdict.line,
        "next": _next(verdict, file) if why is None else why.next, "notes": notes,
    }  # fmt: skip
    if trial is not None and verdict.kind != "file":
        told |= {"case": _case(verdict, trial), "call": _call(trial)}
    if why is None and trial is not None:
        told |= {"in_torch": in_torch(grading.run, trial, verdict, file), "edits": _edits(verdict, grading.edits)}
    return told


def _case(verdict: Verdict, trial: Trial) -> str:
    """Returns the failing call in words. A single argument has no name there, since learners know it."""
    return f"{trial.arguments[0]} {verdict.case}" if len(trial.data) == 1 else verdict.case


def _sentences(verdict: Verdict, edits: list[str]) -> list[str]:
    """Returns the sentences of a verdict, with the edit that mends its line, which a report for learners keeps back."""
    told = _edits(verdict, edits)[:1]
    kept = [one for one in verdict.said if not (told and isinstance(one.sentence, MendedLine))]
    return [one.text for one in kept] + told


def _edits(verdict: Verdict, told: list[str]) -> list[str]:
    """Returns the edits alone: the line as it stands is told with them."""
    return [one for one in told if one not in verdict.lines]


def _next(verdict: Verdict, file: Path) -> str:
    place = f"{file.name}:{verdict.line}" if verdict.line else file.name
    shows_there = verdict.line and verdict.kind in ("memory", "error") and not is_mended(verdict)
    where = "or what leads to it" if shows_there else "and judge it again"
    return f"edit {place}, {where}."


def _call(trial: Trial) -> list[dict]:
    """Returns the failing call, an object for each argument, from which it can be made again."""
    return [_argument(name, one, trial) for name, one in zip(trial.arguments, trial.data)]


def _argument(name: str, recipe: DataOrNumber, trial: Trial) -> dict:
    if not isinstance(recipe, Data):
        return {"name": name, "number": recipe}
    on_meta = recipe.shape_on("meta", trial.dtype)
    dtype = str(on_meta.dtype).removeprefix("torch.")
    return {
        "name": name,
        "shape": list(on_meta.shape),
        "strides": list(on_meta.stride()),
        "dtype": dtype,
        "values": recipe.about or " ".join(" ".join(map(str, step)) for step in recipe.steps),
    }


def _notes(found: OwnVerdict) -> list[str]:
    """Returns what is worth knowing besides the verdict."""
    notes = [f"Machine code: {said}" for said in found.spills]
    without = list(dict.fromkeys(said.text for said in found.judge.interpreted.without_exact))
    notes += [f"Rounding alone judged some calls: there is no exact run, since {text}" for text in without[:1]]
    if (never := found.grading.run.lines.said) is not None and found.grading.outcome == PASS:
        notes.append(never.text)
    if found.grading.diagnosis is not None and (name := _draws_with(found)):
        notes.append(
            f"tl.{name} draws other numbers than torch from the same seed: let the kernel take them as an argument."
        )
    if found.grading.run.printed.strip():
        notes.append("The file printed something; nothing of it is shown.")
    return notes[:MOST_NOTES]


def _draws_with(found: OwnVerdict) -> str:
    """Returns the function of tl by which a kernel draws random numbers; "" without any."""
    tree = found.grading.run.submission.tree
    names = (one.attr for kernel in kernels_of(tree) for one in ast.walk(kernel) if isinstance(one, ast.Attribute))
    return next((name for name in names if name in RANDOM), "")


def _layouts(promise: OwnPromise) -> str:
    if promise.any_strides is True:
        return "any strides"
    return (
        f"contiguous; {in_words(list(promise.any_strides))} with any strides" if promise.any_strides else "contiguous"
    )
