"""Describes the values of a traced program, in numbers and words that fit on a screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from grader.interpreter.access_log import NO_OFFSET
from grader.interpreter.blocks import Descriptor
from grader.interpreter.buffers import SHIFT, base_of
from grader.interpreter.dtypes import is_float
from grader.interpreter.known_operations import entry_of
from grader.interpreter.tracing.operation_words import in_words
from grader.interpreter.tracing.tracer import TracedLoop, TracedPassage, TracedValue, Tracer
from grader.ttir.module import SourcePlace
from grader.wire.traced_program import MOST_NUMBERS, TracedStep

DTYPES_OF_LEARNERS = {
    "f64": "fp64",
    "f32": "fp32",
    "f16": "fp16",
    "i1": "bool",
    "f8E4M3FN": "fp8e4nv",
    "f8E5M2": "fp8e5",
}


@dataclass(slots=True)
class _Value:
    """A value of the program, and the loop around it."""

    noted: TracedValue
    loop: TracedLoop | None
    depth: int


@dataclass(slots=True)
class _Iteration:
    """The begin of an iteration of a loop; number 0 stands for the iterations that were not kept."""

    loop: TracedLoop
    depth: int
    number: int = 0


def described(tracer: Tracer, others: list[Tracer]) -> list[TracedStep]:
    """Returns the steps of a traced program.

    `others` have traced the same program with other values in all memory and lanes that hold no value.
    """
    runs = [_in_order(other.all) for other in others]
    steps = []
    for event in _in_order(tracer.all):
        twins = [(run, next(run, None)) for run in runs]
        # Runs that have gone another way from here on are compared no further.
        alike = [(run, twin) for run, twin in twins if twin is not None and _same(event, twin)]
        runs = [run for run, _ in alike]
        if isinstance(event, _Iteration):
            steps.append(_iteration(event))
        else:
            steps.append(_step(event, [twin.noted for _, twin in alike if isinstance(twin, _Value)], tracer))
    return _without_means(steps)


def _without_means(steps: list[TracedStep]) -> list[TracedStep]:
    """Returns the steps that do not merely change a shape or a type on the way to a value of the same variable."""
    return [
        step
        for step, following in zip_longest(steps, steps[1:])
        if step.kind != "value" or step.operation or following is None or not _goes_on(step, following)
    ]


def _goes_on(step: TracedStep, following: TracedStep) -> bool:
    where = following.line, following.variable, following.calls, following.depth
    return (step.line, step.variable, step.calls, step.depth) == where


def _in_order(passage: TracedPassage, loop: TracedLoop | None = None, depth: int = 0) -> Iterator[_Value | _Iteration]:
    for item in passage.items:
        if isinstance(item, TracedValue):
            yield _Value(item, loop, depth)
            continue
        before = 0
        for number, iteration in item.kept():
            if number > before + 1:
                yield _Iteration(item, depth + 1)
            yield _Iteration(item, depth + 1, number)
            yield from _in_order(iteration, item, depth + 1)
            before = number


def _same(one: _Value | _Iteration, other: _Value | _Iteration) -> bool:
    """Returns whether two runs of the program are at the same place."""
    if isinstance(one, _Iteration) and isinstance(other, _Iteration):
        return one.loop.operation is other.loop.operation and one.number == other.number
    if isinstance(one, _Value) and isinstance(other, _Value):
        return one.noted.operation is other.noted.operation and one.noted.place == other.noted.place
    return False


def _iteration(at: _Iteration) -> TracedStep:
    loop = at.loop
    lines = _lines(loop.operation.place, loop.callers)
    kept = len(loop.first)
    iteration, kind = (at.number, "iteration") if at.number else (kept + 1, "gap")
    left_out = loop.iterations - kept - len(loop.last)
    return TracedStep(
        kind, loop.operation.place.line, operation=loop.operation.name.removeprefix("scf."), calls=lines,
        depth=at.depth, iteration=iteration, iterations=loop.iterations if at.number else left_out,
    )  # fmt: skip


def _lines(place: SourcePlace, callers: tuple[SourcePlace, ...]) -> list[int]:
    """Returns the lines of the calls that led to a place, the outermost first."""
    return [*(caller.line for caller in callers), *place.via[::-1]]


def _step(at: _Value, twins: list[TracedValue], tracer: Tracer) -> TracedStep:
    noted, operation, words = at.noted, at.noted.operation, ""
    kind, place, line, variable = noted.kind, noted.place, noted.place.line, noted.place.variable
    if operation is not None:
        words = in_words(operation)
        if kind == "printed":
            variable = str(operation.attributes.get("prefix", "")).strip()
        else:
            kind = "constant" if operation.name == "arith.constant" else entry_of(operation.name).access or kind
    elif at.loop is not None:  # carried through its iterations
        line = at.loop.operation.place.line
    step = TracedStep(kind, line, variable, words, _lines(place, noted.callers), at.depth)
    step.shape = list(noted.type.shape)
    if isinstance(noted.value, np.ndarray):
        _tell(step, noted, twins, tracer)
    else:
        step.dtype = noted.type.kind
        if isinstance(noted.value, Descriptor):
            step.numbers = [str(int(number.flat[0])) for number in (*noted.value.shape, *noted.value.strides)]
            step.marks = "." * len(step.numbers)
    return step


# ---- lanes ---------------------------------------------------------------------------------------------------------


def _tell(step: TracedStep, noted: TracedValue, twins: list[TracedValue], tracer: Tracer) -> None:
    shape = noted.type.shape
    values = np.broadcast_to(noted.value[0], shape)
    empty = np.zeros(shape, bool)
    for twin in twins:
        empty = empty | _differing(values, np.broadcast_to(twin.value[0], shape))
    masked, outside = _untouched(step, noted)
    if noted.type.kind == "pointer":
        step.dtype = "pointer"
        led_to = _led_to(step, values, tracer)
        if led_to is None:
            return
        values = led_to
    else:
        element = noted.type.element
        integer = element[0] == "i" and element[1:].isdecimal()
        step.dtype = DTYPES_OF_LEARNERS.get(element) or (f"int{element[1:]}" if integer else element)
    step.masked, step.outside, step.empty = (int(np.count_nonzero(lanes)) for lanes in (masked, outside, empty))
    _range(step, values, empty | masked)
    if values.size <= MOST_NUMBERS:
        step.numbers = [number_text(value) for value in values.reshape(-1)]
        marks = np.where(empty, "?", np.where(masked, "m", "."))
        step.marks = "".join(marks.reshape(-1).tolist())


def _differing(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Returns where two arrays differ, as bools. Two NaN count as equal."""
    return (one != other) & ~((one != one) & (other != other))


def _untouched(step: TracedStep, noted: TracedValue) -> tuple[np.ndarray, np.ndarray]:
    """Returns two arrays of bools: lanes of an access that are masked off, and active lanes that lead nowhere.

    Writes into `step` what the other lanes touch.
    """
    shape, nothing, operation = noted.type.shape, np.zeros(noted.type.shape, bool), noted.operation
    if operation is None or step.kind not in ("load", "store", "atomic"):
        return nothing, nothing
    touching = np.zeros(shape, bool)
    for touched in noted.touched:
        if touched.offsets.size == touching.size:
            touching |= (touched.offsets != NO_OFFSET).reshape(shape)
    _tell_touched(step, noted)
    if noted.mask is not None:
        masked = ~np.broadcast_to(noted.mask[0], shape)
    elif operation.operand_types[0].kind == "pointer":
        masked = nothing
    else:  # a descriptor's or a block pointer's: lanes beyond the ends of the tensor
        masked = ~touching
    return masked, ~masked & ~touching


def _tell_touched(step: TracedStep, noted: TracedValue) -> None:
    for touched in noted.touched[:1]:
        indices = touched.buffer.view.indices(touched.offsets[touched.offsets != NO_OFFSET])
        step.argument = touched.buffer.label
        if indices.size:
            step.box = [int(end) for axis in indices.T for end in (axis.min(), axis.max())]
            step.elements = len(np.unique(indices, axis=0))


def _led_to(step: TracedStep, pointers: np.ndarray, tracer: Tracer) -> np.ndarray | None:
    """Returns pointers as numbers of elements, counted from the first of the argument that they were made from.

    None where they were made from several arguments, or from none.
    """
    numbers = np.unique(pointers >> SHIFT)
    number = int(numbers[0]) - 1 if numbers.size == 1 else -1
    argument = tracer.arguments[number] if 0 <= number < len(tracer.arguments) else None
    if argument is None:
        return None
    step.argument = argument.buffer.label
    return (pointers - base_of(number) - argument.buffer.view.offset) // argument.buffer.view.item


def _range(step: TracedStep, values: np.ndarray, without: np.ndarray) -> None:
    known = values[~without]
    if is_float(values.dtype):
        missing = known != known
        step.nans, known = int(np.count_nonzero(missing)), known[~missing]
    if values.dtype.kind == "b":
        step.elements = int(np.count_nonzero(known))
    elif known.size:
        step.low, step.high = number_text(known.min()), number_text(known.max())


def number_text(value: np.generic) -> str:
    if value.dtype.kind in "bi":
        return str(int(value))
    return f"{float(value):.4g}"
