"""Runs a launch: the programs of its grid, side by side in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grader.interpreter.batch import Batch
from grader.interpreter.frame import BlockTracer
from grader.interpreter.program import ReadyKernel

ELEMENTS = 1 << 18  # of a kernel's largest tensor, over all programs of a batch: as many as the caches hold
MOST_PROGRAMS = 1 << 16  # of a batch


def run_launch(
    kernel: ReadyKernel, batch: Batch, arguments: list[Any], programs: Sequence[int] | np.ndarray,
    tracer: BlockTracer | None = None,
) -> None:  # fmt: skip
    """Runs these programs of the launch, in this order. Raises TooLong, KernelFault, Unsupported.

    tracer: of the program, if there is only one.
    """
    size = 1 if kernel.waits else max(1, min(ELEMENTS // max(kernel.largest, 1), MOST_PROGRAMS))
    with np.errstate(all="ignore"):
        for start in range(0, len(programs), size):
            batch.programs, batch.asked = _numbers(programs[start : start + size]), 0
            batch.memory.begin_batch(batch.programs)
            kernel.entry.call(batch, arguments, None, batch.count, tracer)
            batch.done += batch.count


def _numbers(programs: Sequence[int] | np.ndarray) -> np.ndarray:
    """Returns the program numbers as a contiguous int32 array.

    numpy keeps a reversed order in all results computed from it, and rounds exp2 differently there.
    """
    if isinstance(programs, range):
        return np.arange(programs.start, programs.stop, programs.step, dtype=np.int32)
    return np.ascontiguousarray(programs, np.int32)
