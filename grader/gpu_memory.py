"""Does a call fit into the GPU's memory, and if it does not: is that the submission's doing?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from grader.bounds import EXACT
from grader.comparison import BYTES_PER_ELEMENT, rows_at_once
from grader.exercise import Exercise
from grader.explain import on_gpu
from grader.gpu.plan import Recording
from grader.inputs import Data, drawing_precision
from grader.protocol import DTYPE_BYTES
from grader.run import Trial
from grader.verdict import Verdict

SHARE_OF_MEMORY = 0.8
SHARE_BESIDE_OTHERS = 0.1  # as many judges may check side by side as a class has on one GPU
SHARE_FOR_SCRATCH = 1 / 16  # what a kernel may want beside its arguments and its result, however small these are


def bytes_needed(trial: Trial, recording: Recording) -> int:
    """At the peak, the result of the first repeat being kept all the while: in the next one all buffers, with a copy of
    the arguments; later, arguments and reference in float64, or as they are for a copy, compared part by part."""
    buffers = sum(buffer.bytes for buffer in recording.plan.buffers)
    return _needed_with(buffers, trial, recording, recording.plan.result.shape)


def _needed_with(buffers: int, trial: Trial, recording: Recording, shape: Sequence[int]) -> int:
    """With so many bytes of buffers, and a result of this shape."""
    elements = math.prod(shape)
    kept = elements * DTYPE_BYTES[recording.plan.result.dtype]
    arguments = [buffer.bytes for buffer in recording.plan.buffers if buffer.argument]
    drawn = [_bytes_drawn(data, trial.dtype) for data in trial.data]
    exact = trial.dtype.itemsize if trial.bound == "bits" else 8
    repeating = buffers + max(sum(arguments) + max(arguments) // 2, *drawn)  # a flag for 2 bytes or more
    drawing = max(drawn_bytes - exact * data.elements for drawn_bytes, data in zip(drawn, trial.data))
    rounded = trial.dtype.itemsize * max(data.elements for data in trial.data)
    comparing = exact * sum(data.elements for data in trial.data)
    comparing += max(exact * elements + _bytes_of_bound(trial, shape), drawing + rounded)
    at_once = min(elements, rows_at_once(shape, trial.bound) * math.prod(shape[1:]))
    return kept + max(repeating, comparing) + BYTES_PER_ELEMENT * at_once


def _bytes_of_bound(trial: Trial, shape: Sequence[int]) -> int:
    """Copies of the inputs that a tolerance is computed from, in float64: rows of the first one, all of the others."""
    if trial.bound in EXACT:
        return 0
    first, *others = trial.data
    rows = min(rows_at_once(shape, trial.bound), max([1, *first.shape[:1]]))
    return 8 * (rows * math.prod(first.shape[1:]) + sum(data.elements for data in others))


def _bytes_drawn(data: Data, dtype: torch.dtype) -> int:
    """While the values of an argument are drawn, in another such tensor for a change, and rounded."""
    return drawing_precision(dtype).itemsize * (1 + min(len(data.steps), 2)) * data.elements


def blame(exercise: Exercise, trial: Trial, recording: Recording, memory_bytes: int) -> Verdict | None:
    """Of a call that found too little memory: what its submission did to bring that about; None if it did nothing, or
    if any other would have found too little as well.

    The reference is asked for its shape on torch's device without memory, which takes seconds at first.
    """
    result, buffers = recording.plan.result, recording.plan.buffers
    expected = exercise.reference(*(data.shape_on("meta", torch.float64) for data in trial.data)).shape
    if tuple(result.shape) != tuple(expected):
        return on_gpu.another_result(exercise.entry)
    arguments = sum(buffer.bytes for buffer in buffers if buffer.argument)
    own = math.prod(expected) * DTYPE_BYTES[result.dtype]
    least = arguments + (0 if exercise.fills_argument else own)
    if _needed_with(least, trial, recording, expected) > SHARE_OF_MEMORY * memory_bytes:
        return None
    excess = sum(buffer.bytes for buffer in buffers) - least
    if excess > max(arguments + own, SHARE_FOR_SCRATCH * memory_bytes):
        return on_gpu.too_much_memory(exercise.entry, excess)
    return None
