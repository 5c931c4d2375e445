"""Tells what the refusal of a kernel rests on: the line of the promise, or of the shapes, without which it would not
be refused. An exercise states these things in its lesson; here the user does, and may take them back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from grader.course.trial import Trial
from grader.explain.causes import Cause
from grader.explain.verdict import Verdict
from grader.explain.wrong_results import WrongResults
from grader.numerics.data_sets import Data
from grader.own.promise_file import OwnPromise
from grader.sentences import Said, Sentence


class RestsOn(Sentence):
    STRIDES = (
        "It rests on results being contiguous: where callers may get it so, strided_results = true in a file for "
        "--promise takes this back."
    )
    EXPECTED = "What is expected is what the reference returns, in this call."
    CHANGED = (
        "It rests on no argument changing: where the kernel is meant to change one, in_place names it in a file for "
        '--promise, as in_place = ["{name}"]; out = ["{name}"] if it only fills it.'
    )
    ONLY_KERNELS = "It rests on only_kernels = true in the promise: without that line, the kernel is not judged."
    DIGITS = (
        "It rests on losing no more digits than a multiple of what torch loses: where these may be lost, "
        "approximates = {share:.0e} in a file for --promise allows errors of this share of the largest value, which "
        "is twice what was seen."
    )
    ANY_STRIDES = (
        "It rests on any_strides in the promise: each call that failed has a tensor that is not contiguous. Without "
        "that line all are."
    )
    NAN = (
        "It rests on nan = true in the promise: each call that failed holds NaN or infinities. Without that line none "
        "does."
    )
    EMPTY = (
        "It rests on tensors being empty: each call that failed has an empty one. With sizes from 1 on in the line of "
        "shapes, none is."
    )


def rests_on(verdict: Verdict, promise: OwnPromise, failed: Sequence[Trial], lost: float) -> list[Said]:
    """Returns what the verdict on a wrong kernel rests on; often nothing. `failed`: the calls that failed. `lost`: the
    largest error of theirs, as a share of the largest value."""
    sentences = [one.sentence for one in verdict.said]
    if verdict.kind == "refused":
        return [RestsOn.ONLY_KERNELS()]
    if WrongResults.STRIDES in sentences:
        return [RestsOn.STRIDES()]
    if name := _changed(verdict, failed):
        return [RestsOn.CHANGED(name=name)]
    if verdict.id == Cause.WRONG_RESULT_TYPE:
        return [RestsOn.EXPECTED()]
    told = [RestsOn.DIGITS(share=2 * lost)] if verdict.id == Cause.LOW_PRECISION else []
    if promise.any_strides and _all(failed, is_strided):
        told.append(RestsOn.ANY_STRIDES())
    if promise.nan and _all(failed, _is_unusual):
        told.append(RestsOn.NAN())
    if _all(failed, _is_empty):
        told.append(RestsOn.EMPTY())
    return told


def _changed(verdict: Verdict, failed: Sequence[Trial]) -> str:
    """Returns the argument that changes where none was promised to, or the first where nothing is returned; else ""."""
    for said in verdict.said:
        if said.sentence is WrongResults.SHARED:
            return str(said.evidence["other"])
        nothing = said.sentence in (WrongResults.NO_TENSOR, WrongResults.NO_TUPLE) and "None" in str(
            said.evidence["returned"]
        )
        if (nothing or verdict.id == Cause.INPUT_CHANGED) and failed:
            names = [name for name, one in zip(failed[0].arguments, failed[0].data) if isinstance(one, Data)]
            return next((name for name in names if name in said.text.split()), names[0])
    return ""


def _all(failed: Sequence[Trial], holds: Callable[[Data, torch.dtype], bool]) -> bool:
    """Returns whether it holds for some tensor of each of these calls."""
    return bool(failed) and all(
        any(isinstance(one, Data) and holds(one, trial.dtype) for one in trial.data) for trial in failed
    )


def is_strided(one: Data, dtype: torch.dtype) -> bool:
    """Returns whether a tensor is not contiguous. `dtype`: of the run."""
    return not one.shape_on("meta", dtype).is_contiguous()


def _is_unusual(one: Data, dtype: torch.dtype) -> bool:
    numbers = (number for _, *rest in one.steps for number in rest)
    return not all(math.isfinite(number) for number in numbers if isinstance(number, float))


def _is_empty(one: Data, dtype: torch.dtype) -> bool:
    return one.elements == 0
