"""One launch: the programs of its grid, side by side in batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from grader.interpreter.batch import Batch
from grader.interpreter.program import Kernel

ELEMENTS = 1 << 18  # of the largest tensor, over all programs of a batch: what the caches hold
MOST_PROGRAMS = 1 << 16  # of a batch


def run_launch(kernel: Kernel, batch: Batch, arguments: list[Any], programs: np.ndarray) -> None:
    """Runs these programs in this order. Raises TooLong, KernelFault, Unsupported."""
    size = 1 if kernel.waits else _batch_size(kernel)
    with np.errstate(all="ignore"):
        for start in range(0, len(programs), size):
            # Contiguous: numpy keeps a reversed order in all that follows, and rounds exp2 otherwise there.
            batch.programs = np.ascontiguousarray(programs[start : start + size], np.int32)
            batch.memory.begin_batch(batch.programs)
            kernel.entry.call(batch, arguments, None, batch.count)


def _batch_size(kernel: Kernel) -> int:
    shapes = (
        kind.shape
        for function in kernel.module.functions.values()
        for operation in function.walk()
        for kind in (*operation.operand_types, *operation.result_types)
    )
    largest = max((math.prod(shape) for shape in shapes), default=1)
    return max(1, min(ELEMENTS // max(largest, 1), MOST_PROGRAMS))
