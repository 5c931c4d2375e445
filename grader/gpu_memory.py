"""Does a call fit into the GPU's memory, and if it does not: is that the submission's doing?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from grader.comparison import BYTES_PER_ELEMENT, MOST_ELEMENTS
from grader.exercise import Exercise
from grader.explain import on_gpu
from grader.gpu.replayer import Recording
from grader.protocol import DTYPE_BYTES
from grader.run import Trial
from grader.verdict import Verdict

BYTES_PER_DRAWN = 12  # of an argument, while its values are drawn: float64, and rounded
SHARE_OF_MEMORY = 0.8
SHARE_BESIDE_OTHERS = 0.1  # as many judges may check side by side as a class has on one GPU
SHARE_FOR_SCRATCH = 1 / 16  # what a kernel may want beside its arguments and its result, however small these are


def bytes_needed(recording: Recording) -> int:
    """At the peak, the result of the first repetition being kept all the while: in the next one all buffers with a copy
    of the arguments; later, arguments and reference in float64, compared part by part."""
    plan = recording.plan
    buffers, kept = sum(buffer.bytes for buffer in plan.buffers), plan.buffers[plan.result.buffer].bytes
    return _needed_with(buffers, kept, recording, plan.result.shape)


def _needed_with(buffers: int, kept: int, recording: Recording, shape: Sequence[int]) -> int:
    """With so many bytes of buffers, so many in that of the result, and a result of this shape."""
    plan = recording.plan
    filled = plan.buffers[plan.result.buffer].name
    sizes = [spec.size // DTYPE_BYTES[spec.dtype] for spec in recording.arguments if spec.name != filled]
    arguments = sum(buffer.bytes for buffer in plan.buffers if buffer.argument)
    drawing = BYTES_PER_DRAWN * max(sizes, default=0)
    repeating = buffers + max(arguments, drawing)
    comparing = 8 * sum(sizes) + max(8 * math.prod(shape), drawing)
    return kept + max(repeating, comparing) + BYTES_PER_ELEMENT * min(MOST_ELEMENTS, math.prod(shape))


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
    if _needed_with(least, own, recording, expected) > SHARE_OF_MEMORY * memory_bytes:
        return None
    excess = sum(buffer.bytes for buffer in buffers) - least
    if excess > max(arguments + own, SHARE_FOR_SCRATCH * memory_bytes):
        return on_gpu.too_much_memory(exercise.entry, excess)
    return None
