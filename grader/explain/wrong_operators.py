"""Explains an operator of torch that is not registered as it should be, or whose fake tells what is not so."""

from __future__ import annotations

from collections.abc import Sequence

from grader.course.trial import short_dtype
from grader.course.wanted_results import Wanted
from grader.explain.causes import Cause
from grader.explain.evidence import in_line, source_line
from grader.explain.verdict import Verdict, failed
from grader.sentences import Said, Sentence
from grader.submission.text import Submission
from grader.wire.recorded_call import RecordedCall
from grader.wire.recorded_parts import Returned
from grader.wire.reply import Refusal

Shape = tuple[int, ...]


class WrongOperators(Sentence):
    """Sentences about an operator. {operator}: "course::swiglu"."""

    NO_OPERATOR = (
        "There is no operator {operator}: @triton_op or @custom_op with this name makes one of the function below it, "
        "and torch.ops finds it by this name."
    )
    NO_FORMULA = (
        "{operator} has no formula of autograd: a backward pass that comes to it ends in an error. Register one with "
        "register_autograd."
    )
    NO_FAKE = (
        "{operator} has no fake, and torch.compile stops at it: it asks the fake for shape, dtype and strides of the "
        "results. Register one with register_fake."
    )
    DECLARED_MUTATION = (
        "The operator says that it changes its arguments, those with an exclamation mark in {schema}: a call changes "
        "none, and mutates_args=() says so. Else torch.compile copies what is still needed of them."
    )
    LAUNCHES = (
        "With fakes in the place of operators {operator} still launches a kernel{in_line}. torch.compile hands it "
        "tensors without memory, and a launch fails on them. In a triton_op, launch wrap_triton(kernel)[grid](...); a "
        "fake launches nothing, and a backward formula calls an operator."
    )
    COMPUTES = (
        "With fakes in the place of operators {operator} still computes: {operation}{in_line}. A fake allocates what "
        "has the shape, the dtype and the strides of the result, as gate.new_empty(shape) does; nothing reads it."
    )
    WRONG_NUMBER = "By its fake {operator} returns {count:#result}; it returns {expected}: {names:,}."
    NO_TENSORS = "By its fake {operator} returns {type}; it returns {names:,}."
    ARGUMENT = "By its fake {operator} returns memory of {argument} for {name}, which has memory of its own."
    DIFFERS = "By the fake of {operator} {name} has {what} {fake}; it has {real}."
    STRIDES = (
        "By the fake of {operator} {name} has strides {fake}; it has {real}, as a contiguous tensor: an empty_like of "
        "a transposed view is transposed, too. Where torch.compile checks strides, the program stops; elsewhere it "
        "reads the wrong elements."
    )
    BELIEVED = (
        "torch.compile believes the fake and never asks the operator: what it makes of a model may read this result as "
        "the fake says, without an error."
    )


OF_CHILD = {
    "no-operator": (Cause.NO_OPERATOR, WrongOperators.NO_OPERATOR, "operator"),
    "no-formula": (Cause.NO_FORMULA, WrongOperators.NO_FORMULA, "operator"),
    "no-fake": (Cause.NO_FAKE, WrongOperators.NO_FAKE, "operator"),
    "declared-mutation": (Cause.DECLARED_MUTATION, WrongOperators.DECLARED_MUTATION, "schema"),
}


def not_registered(call: RecordedCall) -> Verdict | None:
    """Returns the verdict on an operator that lacks something that is registered for it; None if it has all."""
    if call.error is None or call.error.kind not in OF_CHILD:
        return None
    cause, sentence, field = OF_CHILD[call.error.kind]
    return failed(cause, sentence(**{field: call.error.message}), kind="operator")


def launches(operator: str, line: int, submission: Submission) -> Verdict:
    said = WrongOperators.LAUNCHES(operator=operator, in_line=in_line(line))
    return failed(Cause.FAKE_LAUNCHES, said, source_line(submission, line), kind="operator", line=line)


def computes(operator: str, refusal: Refusal, submission: Submission) -> Verdict:
    said = WrongOperators.COMPUTES(operator=operator, operation=refusal.operation, in_line=in_line(refusal.line))
    place = source_line(submission, refusal.line)
    return failed(Cause.WRONG_FAKE, said, place, kind="operator", line=refusal.line)


def wrong_fake(
    operator: str, returned: Returned, wanted: Sequence[Wanted], shapes: Sequence[Shape], submission: Submission
) -> Verdict | None:
    """Returns the verdict on the first result that a fake tells otherwise than it is: contiguous, of this shape and of
    the dtype that is wanted, on the GPU, in memory of its own. None if all is told as it is."""
    names = [one.name for one in wanted]
    items = [returned] if len(wanted) == 1 and returned.type == "Tensor" else returned.items
    if not items:
        return _wrong(WrongOperators.NO_TENSORS(operator=operator, type=_kind(returned), names=names))
    if len(items) != len(wanted):
        count = WrongOperators.WRONG_NUMBER(operator=operator, count=len(items), expected=len(wanted), names=names)
        return _wrong(count)
    for one, item, shape in zip(wanted, items, shapes, strict=True):
        if (said := _difference(operator, one, item, shape)) is not None:
            line = item.line
            believed = None if said.sentence is WrongOperators.STRIDES else WrongOperators.BELIEVED()
            return _wrong(said, believed, source_line(submission, line), line=line)
    return None


def _difference(operator: str, wanted: Wanted, told: Returned, shape: Shape) -> Said | None:
    name, dtype = wanted.name, str(wanted.dtype).removeprefix("torch.")
    if told.type != "Tensor":
        return WrongOperators.NO_TENSORS(operator=operator, type=_kind(told), names=[name])
    if told.shares_with:
        return WrongOperators.ARGUMENT(operator=operator, argument=told.shares_with, name=name)
    differs = dict(operator=operator, name=name)
    if told.device != "cuda" or told.view is None:
        return WrongOperators.DIFFERS(what="device", fake=told.device, real="that of the arguments", **differs)
    if told.dtype != dtype:
        return WrongOperators.DIFFERS(what="dtype", fake=told.dtype, real=short_dtype(wanted.dtype), **differs)
    view = told.view
    if tuple(view.shape) != shape:
        return WrongOperators.DIFFERS(what="shape", fake=tuple(view.shape), real=shape, **differs)
    strides = _contiguous(shape)
    if tuple(view.strides) != strides:
        return WrongOperators.STRIDES(fake=tuple(view.strides), real=strides, **differs)
    return None


def _contiguous(shape: Shape) -> Shape:
    """Returns the strides of a new contiguous tensor, as torch counts them: a size of 0 counts as 1."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def _kind(result: Returned) -> str:
    names = {"NoneType": "nothing (None)", "Tensor": "one tensor"}
    return names.get(result.type, f"an object of type {result.type}")


def _wrong(*said: Said | None, line: int = 0) -> Verdict:
    return failed(Cause.WRONG_FAKE, *said, kind="operator", line=line)
