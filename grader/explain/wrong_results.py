"""Compares the results of an entry with what it has to return: how many tensors, their shape, dtype and memory."""

from __future__ import annotations

import ast
import math
import re
from itertools import combinations

from grader.course.exercise import Exercise
from grader.course.trial import short_dtype
from grader.course.wanted_results import Wanted
from grader.explain.causes import Cause
from grader.explain.evidence import source_line
from grader.explain.verdict import Verdict, failed
from grader.sentences import Fields, Said, Sentence
from grader.submission.text import Submission
from grader.wire.messages import DTYPE_BYTES
from grader.wire.recorded_parts import PlannedView, Returned
from grader.wire.reply import Reply

Shape = tuple[int, ...]


class WrongResults(Sentence):
    """Sentences about a returned and an expected result. {returned}: "nothing (None)", or "an object of type int"."""

    WRONG_NUMBER = "{entry} returns {count:#result}; a tuple of {expected} was expected: ({names:,})."
    NO_TUPLE = "{entry} returns {returned}; a tuple of {expected} was expected: ({names:,})."
    NO_TENSOR = "{entry} returns {returned}, not a tensor of shape {shape} and dtype {dtype}."
    NO_TENSOR_FOR = "{entry} returns {returned} for {name}, not a tensor of shape {shape} and dtype {dtype}."
    NO_RETURN = "Does it end with `return`?"
    NOT_THE_GIVEN = "{entry} returns {returned}: it has to fill and return the {name} it was given."
    NOT_THE_GIVEN_FOR = "{entry} returns {returned} for {name}: it has to fill and return the {name} it was given."

    SHARED = "{name} shares its memory with {other}: it needs memory of its own, as from torch.empty."
    SHARED_BY_TWO = "{name} and {other} share their memory: each needs memory of its own, as from torch.empty."
    FOREIGN = "{name} is memory that this call neither got nor allocated: allocate it in each call."

    DEVICE = "{entry} returns {what} on {device}: use the input's device."
    DEVICE_AND_DTYPE = (
        "{entry} returns {what} of dtype {dtype}, where {expected} was expected, and on {device}: use the input's "
        "device."
    )
    DTYPE = "{name} has dtype {dtype}; {expected} was expected."
    NO_DTYPE = "Without a dtype, torch.empty makes fp32: dtype={x}.dtype asks for that of {x}."
    SHAPE = "{name} has shape {shape}; {expected} was expected."
    STRIDES = "{name} has strides {strides}; a contiguous tensor was expected."
    LAYOUT_OF_A_VIEW = (
        "torch.empty_like and its like keep the layout of a transposed tensor: torch.empty({x}.shape, dtype={x}.dtype, "
        "device={x}.device) is contiguous."
    )


def wrong_results(
    reply: Reply, wanted: list[Wanted], shapes: list[Shape], submission: Submission, exercise: Exercise
) -> Verdict | None:
    """Returns the verdict on the first result without exactly the stated shape, dtype, device and strides, or None."""
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
    """Returns the verdict on a result that is no tuple or list of the expected length; else None.

    An entry that only updates its arguments may return anything.
    """
    if not expected or result.type in ("tuple", "list") and len(result.items) == len(expected):
        return None
    found: Fields = dict(entry=exercise.entry, expected=len(expected), names=[one.name for one in exercise.returned])
    if result.type in ("tuple", "list"):
        return _wrong(WrongResults.WRONG_NUMBER(count=len(result.items), **found))
    no_return = WrongResults.NO_RETURN() if result.type == "NoneType" else None
    return _wrong(WrongResults.NO_TUPLE(returned=_kind(result), **found), no_return)


def _returned(said: Said, name: str, submission: Submission, exercise: Exercise) -> Verdict:
    """Returns the verdict on what the entry returns, with the line of its only `return`, or a question without any.

    `name`: the argument that this line has to return by its name; "" for anything.
    """
    entries = (one for one in submission.tree.body if isinstance(one, ast.FunctionDef) and one.name == exercise.entry)
    nodes = [node for entry in entries for node in ast.walk(entry)]
    returns = [node for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    if not returns and not name:
        return _wrong(said, WrongResults.NO_RETURN())
    line = returns[0].lineno if len(returns) == 1 else 0
    if line and name:
        named = {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        items = getattr(returns[0].value, "elts", [returns[0].value])
        line = line if name not in named and name in [getattr(one, "id", "") for one in items] else 0
    return failed(Cause.WRONG_RESULT_TYPE, said, source_line(submission, line), kind="result", line=line)


def _wrong_result(
    reply: Reply, result: Returned, wanted: Wanted, shape: Shape, submission: Submission, exercise: Exercise
) -> Verdict | None:
    out, name, entry = reply.outputs.get(wanted.name), wanted.name, exercise.entry
    alone, dtype = len(exercise.returned) == 1, short_dtype(wanted.dtype)
    other_dtype = result.dtype != str(wanted.dtype).removeprefix("torch.")
    if result.type != "Tensor":
        found = dict(entry=entry, returned=_kind(result), shape=shape, dtype=dtype)
        said = WrongResults.NO_TENSOR(**found) if alone else WrongResults.NO_TENSOR_FOR(name=name, **found)
        return _returned(said, "", submission, exercise)
    if result.shares_with and not wanted.is_argument:
        said = WrongResults.SHARED(name=name, other=result.shares_with)
        return _returned(said, result.shares_with, submission, exercise)
    if result.device != "cuda":
        device = f"the {result.device.upper()}" if result.device else "another device"
        found = dict(entry=entry, what="a tensor" if alone else name, device=device)
        if other_dtype:
            return _wrong(WrongResults.DEVICE_AND_DTYPE(dtype=result.dtype, expected=dtype, **found))
        return _wrong(WrongResults.DEVICE(**found))
    if out is None and other_dtype:
        said = WrongResults.DTYPE(name=name, dtype=result.dtype, expected=dtype)
        return _made(said, result.line, submission, exercise)
    if out is None:
        return _wrong(WrongResults.FOREIGN(name=name))
    if wanted.is_argument and result.same_as != name:
        view = f"a view of {result.shares_with}" if result.shares_with else "a new tensor"
        sentence = WrongResults.NOT_THE_GIVEN if alone else WrongResults.NOT_THE_GIVEN_FOR
        said = sentence(entry=entry, returned=result.same_as or view, name=name)
        return _returned(said, result.same_as, submission, exercise) if result.same_as else _wrong(said)
    if tuple(out.shape) != shape:
        said = WrongResults.SHAPE(name=name, shape=tuple(out.shape), expected=shape)
        return _made(said, result.line, submission, exercise)
    if out.dtype != wanted.dtype:
        said = WrongResults.DTYPE(name=name, dtype=short_dtype(out.dtype), expected=dtype)
        return _made(said, result.line, submission, exercise)
    fits = exercise.strided_results or out.is_contiguous()
    if not wanted.is_argument and out.numel() and not fits:
        return _not_contiguous(WrongResults.STRIDES(name=name, strides=out.stride()), result.line, submission, exercise)
    return None


def _not_contiguous(said: Said, line: int, submission: Submission, exercise: Exercise) -> Verdict:
    code = submission.line(line)
    advice = WrongResults.LAYOUT_OF_A_VIEW(x=_argument_in(code, exercise)) if "_like(" in code else None
    return failed(Cause.WRONG_RESULT_TYPE, said, advice, source_line(submission, line), kind="result", line=line)


def _argument_in(code: str, exercise: Exercise) -> str:
    """Returns the first argument of the entry that a line names, else the entry's first argument."""
    named = (word for word in re.findall(r"\w+", code) if word in exercise.arguments)
    return next(named, exercise.arguments[0])


def _made(said: Said, line: int, submission: Submission, exercise: Exercise) -> Verdict:
    """Returns the verdict on a tensor, with the line that made it, and advice if a dtype is missing there."""
    code = submission.line(line)
    without = said.sentence is WrongResults.DTYPE and "dtype" not in code and "torch.empty(" in code
    advice = WrongResults.NO_DTYPE(x=_argument_in(code, exercise)) if without else None
    return failed(Cause.WRONG_RESULT_TYPE, said, advice, source_line(submission, line), kind="result", line=line)


def _sharing(expected: list[tuple[Wanted, Shape]], given: list[Returned]) -> Verdict | None:
    """Returns the verdict on two results that overlap in an allocation, which they may share; else None.

    The first and last byte of each are compared: results are contiguous here, or arguments with memory of their own.
    """
    views = ((one.name, result.view) for (one, _), result in zip(expected, given))
    named = [(name, view) for name, view in views if view is not None and math.prod(view.shape) > 0]
    for (one, first), (other, second) in combinations(named, 2):
        if first.buffer == second.buffer and first.offset < _end(second) and second.offset < _end(first):
            return _wrong(WrongResults.SHARED_BY_TWO(name=one, other=other))
    return None


def _end(view: PlannedView) -> int:
    last = sum((size - 1) * stride for size, stride in zip(view.shape, view.strides))
    return view.offset + (last + 1) * DTYPE_BYTES[view.dtype]


def _kind(result: Returned) -> str:
    return "nothing (None)" if result.type == "NoneType" else f"an object of type {result.type}"


def _wrong(*said: Said | None) -> Verdict:
    return failed(Cause.WRONG_RESULT_TYPE, *said, kind="result")
