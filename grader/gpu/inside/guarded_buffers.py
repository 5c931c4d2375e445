"""The buffers of a call on the GPU: each lies between two guards, and holds poison until something writes to it."""

from __future__ import annotations

import itertools

import torch

from grader.gpu.answers import Overrun
from grader.gpu.plan import Plan, PlannedView
from grader.wire.messages import TensorSpec

GUARD = 4096  # bytes before and after each buffer
POISON = 0xFF  # every byte: NaN in all floating-point formats, -1 in integers


class Buffers:
    """A set of a plan's buffers.

    `shift`: bytes between an aligned address and an argument, a multiple of 16. Buffers that the submission allocated
    stay aligned, as torch allocates them: descriptors and scratch memory rely on it. `pattern`: the value of the
    guards' bytes; with POISON, floats read beyond a buffer are NaN.
    """

    def __init__(self, plan: Plan, shift: int = 0, pattern: int = POISON, device: str = "cuda"):
        self.plan, self.pattern = plan, pattern
        self.starts = [GUARD + shift * buffer.argument for buffer in plan.buffers]
        sizes = [start + buffer.bytes + GUARD for start, buffer in zip(self.starts, plan.buffers)]
        self.memory = [torch.full((size,), pattern, dtype=torch.uint8, device=device) for size in sizes]
        if pattern != POISON:
            self.poison()

    @property
    def addresses(self) -> list[int]:
        return [memory.data_ptr() + start for memory, start in zip(self.memory, self.starts)]

    def data(self, number: int) -> torch.Tensor:
        """Returns the bytes of a buffer without its guards: a view, uint8 [bytes]."""
        start = self.starts[number]
        return self.memory[number][start : start + self.plan.buffers[number].bytes]

    def poison(self) -> None:
        """Fills the buffers that the submission allocated with POISON."""
        for number, buffer in enumerate(self.plan.buffers):
            if not buffer.argument:
                self.data(number).fill_(POISON)

    def view(self, view: PlannedView) -> torch.Tensor:
        """Returns a view of the submission's buffers: its strides are in elements, its offset is in bytes."""
        return self._strided(view.buffer, view.dtype, view.shape, view.strides, view.offset)

    def argument(self, number: int, spec: TensorSpec) -> torch.Tensor:
        """Returns a view of an argument of the call: its strides and its offset are in elements."""
        size = getattr(torch, spec.dtype).itemsize
        return self._strided(number, spec.dtype, spec.shape, spec.strides, spec.offset * size)

    def _strided(self, number: int, dtype_name: str, shape, strides, offset_bytes: int) -> torch.Tensor:
        dtype = getattr(torch, dtype_name)
        data = self.data(number)
        whole = data[: data.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
        return whole.as_strided(shape, strides, whole.storage_offset() + offset_bytes // dtype.itemsize)

    def overruns(self) -> list[Overrun]:
        """Returns the overruns, at most one on each side of a buffer; waits until the enqueued kernels have ended."""
        if not self.touched_guards():
            return []
        overruns = []
        for buffer, start, guard in zip(self.plan.buffers, self.starts, self._guards()):
            before, after = ((side != self.pattern).nonzero() for side in guard)
            if len(before):
                overruns.append(Overrun(buffer.name, "before", start - int(before[-1]) - 1, len(before)))
            if len(after):
                overruns.append(Overrun(buffer.name, "after", int(after[0]), len(after)))
        return overruns

    def touched_guards(self) -> torch.Tensor:
        """Returns whether anything was written outside of the buffers: a bool tensor [] on their device.

        The host need not wait for it.
        """
        return (torch.cat([*itertools.chain(*self._guards())]) != self.pattern).any()

    def _guards(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Returns (bytes before, bytes after) of each buffer, as views."""
        return [
            (memory[:start], memory[start + buffer.bytes :])
            for memory, start, buffer in zip(self.memory, self.starts, self.plan.buffers)
        ]
