"""Does a call fit into the GPU's memory, and if it does not: is that the submission's doing?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from grader.exercise import Exercise
from grader.explain import on_gpu
from grader.gpu.replayer import Recording
from grader.protocol import DTYPE_BYTES
from grader.run import Trial
from grader.verdict import Verdict

BYTES_PER_ELEMENT = 80  # of the result, when it is compared: float64 and what a comparison keeps
SHARE_OF_MEMORY = 0.8
SHARE_BESIDE_OTHERS = 0.1  # as many judges may check side by side as a class has on one GPU
SHARE_FOR_SCRATCH = 1 / 16  # what a kernel may want beside its arguments and its result, however small these are


def bytes_needed(recording: Recording) -> int:
    """At the peak: while the call is repeated three sets of buffers and copies of arguments; later, with one set left,
    the arguments in float64 and what the comparison takes."""
    plan = recording.plan
    return _needed_with(sum(buffer.bytes for buffer in plan.buffers), recording, plan.result.shape)


def _needed_with(buffers: int, recording: Recording, shape: Sequence[int]) -> int:
    """With so many bytes of buffers, and a result of this shape."""
    arguments = sum(8 * spec.size // DTYPE_BYTES[spec.dtype] for spec in recording.arguments)
    return max(4 * buffers, buffers + arguments + BYTES_PER_ELEMENT * math.prod(shape))


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
    if _needed_with(least, recording, expected) > SHARE_OF_MEMORY * memory_bytes:
        return None
    excess = sum(buffer.bytes for buffer in buffers) - least
    if excess > max(arguments + own, SHARE_FOR_SCRATCH * memory_bytes):
        return on_gpu.too_much_memory(exercise.entry, excess)
    return None
