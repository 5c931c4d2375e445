"""What an entry returned, against what it has to return: how many tensors, of which shape, dtype and memory."""

from __future__ import annotations

import math
from itertools import combinations

from grader.course.exercise import Exercise
from grader.course.trial import short_dtype
from grader.course.wanted_results import Wanted
from grader.explain.causes import Cause
from grader.explain.verdict import Verdict, failed
from grader.sentences import count_text
from grader.submission.text import Submission
from grader.wire.messages import DTYPE_BYTES
from grader.wire.recorded_parts import Returned, View
from grader.wire.reply import Reply

Shape = tuple[int, ...]


def wrong_results(
    reply: Reply, wanted: list[Wanted], shapes: list[Shape], submission: Submission, exercise: Exercise
) -> Verdict | None:
    """Each result must be a plain tensor of exactly the stated shape, dtype, device and strides."""
    expected = [(one, shape) for one, shape in zip(wanted, shapes, strict=True) if one.place is not None]
    given = [reply.result]
    if len(expected) != 1:
        if (wrong := _wrong_number(reply.result, expected, exercise)) is not None:
            return wrong
        given = reply.result.items
    for (one, shape), returned in zip(expected, given):
        if (wrong := _wrong_result(reply, returned, one, shape, submission, exercise)) is not None:
            return wrong
    return _sharing(expected, given)


def _wrong_number(result: Returned, expected: list[tuple[Wanted, Shape]], exercise: Exercise) -> Verdict | None:
    """A tuple of so many, or a list; nothing is asked of what an entry returns that only updates its arguments."""
    names = f"({exercise.result_text.replace(' and ', ', ')})"
    if not expected or result.type in ("tuple", "list") and len(result.items) == len(expected):
        return None
    what = f"{count_text(len(result.items), 'result')}" if result.type in ("tuple", "list") else _kind(result)
    return _wrong(f"{exercise.entry} returns {what}; a tuple of {len(expected)} was expected: {names}.",
                  "Does it end with `return`?" if result.type == "NoneType" else "")  # fmt: skip


def _wrong_result(
    reply: Reply, result: Returned, wanted: Wanted, shape: Shape, submission: Submission, exercise: Exercise
) -> Verdict | None:
    out, name = reply.outputs.get(wanted.name), wanted.name
    alone = len(exercise.returned) == 1
    if result.type != "Tensor":
        expected = f"a tensor of shape {shape} and dtype {short_dtype(wanted.dtype)}"
        where = "" if alone else f" for {name}"
        return _wrong(f"{exercise.entry} returns {_kind(result)}{where}, not {expected}.", "Does it end with `return`?")
    if result.shares_with and not wanted.is_argument:
        return _wrong(
            f"{name} shares its memory with {result.shares_with}: it needs memory of its own, as from torch.empty."
        )
    if result.device != "cuda":
        what, dtype = "a tensor" if alone else name, str(wanted.dtype).removeprefix("torch.")
        if result.dtype != dtype:
            what += f" of dtype {result.dtype}, where {short_dtype(wanted.dtype)} was expected, and"
        device = result.device.upper() or "another device"
        return _wrong(f"{exercise.entry} returns {what} on the {device}: use the input's device.")
    if out is None and result.dtype != str(wanted.dtype).removeprefix("torch."):
        return _wrong(f"{name} has dtype {result.dtype}; {short_dtype(wanted.dtype)} was expected.")
    if out is None:
        return _wrong(f"{name} is memory that this call neither got nor allocated: allocate it in each call.")
    if wanted.is_argument and result.same_as != name:
        view = f"a view of {result.shares_with}" if result.shares_with else "a new tensor"
        what, where = result.same_as or view, "" if alone else f" for {name}"
        return _wrong(f"{exercise.entry} returns {what}{where}: it has to fill and return the {name} it was given.")
    if tuple(out.shape) != shape:
        return _wrong(f"{name} has shape {tuple(out.shape)}; {shape} was expected.")
    if out.dtype != wanted.dtype:
        return _wrong(f"{name} has dtype {short_dtype(out.dtype)}; {short_dtype(wanted.dtype)} was expected.")
    if not wanted.is_argument and out.numel() and not out.is_contiguous():
        return _not_contiguous(f"{name} has strides {out.stride()}", result.line, submission)
    return None


def _not_contiguous(found: str, line: int, submission: Submission) -> Verdict:
    code = submission.line(line)
    advice = ""
    if "_like(" in code:
        advice = (
            "torch.empty_like and its like keep the layout of a view: torch.empty(x.shape, dtype=x.dtype, "
            "device=x.device) is contiguous."
        )
    place = f"Line {line}:  {code}" if code else ""
    sentence = f"{found}; a contiguous tensor was expected."
    return failed(Cause.WRONG_RESULT_TYPE, sentence, advice, place, kind="result", line=line)


def _sharing(expected: list[tuple[Wanted, Shape]], given: list[Returned]) -> Verdict | None:
    """Several results may lie in one allocation, but not over each other."""
    named = [(one.name, result.view) for (one, _), result in zip(expected, given) if math.prod(result.view.shape)]
    for (one, first), (other, second) in combinations(named, 2):
        if first.buffer == second.buffer and first.offset < _end(second) and second.offset < _end(first):
            return _wrong(f"{one} and {other} share their memory: each needs memory of its own, as from torch.empty.")
    return None


def _end(view: View) -> int:
    last = sum((size - 1) * stride for size, stride in zip(view.shape, view.strides))
    return view.offset + (last + 1) * DTYPE_BYTES[view.dtype]


def _kind(result: Returned) -> str:
    return "nothing (None)" if result.type == "NoneType" else f"an object of type {result.type}"


def _wrong(*lines: str) -> Verdict:
    return failed(Cause.WRONG_RESULT_TYPE, *lines, kind="result")
