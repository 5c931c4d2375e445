"""The buffers of one call on the GPU: each between two guards, and full of poison until something writes it."""

from __future__ import annotations

import itertools

import torch

from grader.gpu.answers import Overrun
from grader.gpu.plan import Plan, View
from grader.wire.messages import TensorSpec

GUARD = 4096  # bytes before and after each buffer
POISON = 0xFF  # every byte: NaN in all floating-point formats, -1 in integers


class Buffers:
    """One set of a plan's buffers. `shift`: bytes between an aligned address and an argument, a multiple of 16.

    What the submission allocated stays aligned, as it is when torch allocates it: descriptors and scratch rely on it.

    `pattern`: what the guards' bytes hold; POISON makes what is read beyond a buffer a NaN.
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
        """The bytes of a buffer, without its guards."""
        start = self.starts[number]
        return self.memory[number][start : start + self.plan.buffers[number].bytes]

    def poison(self) -> None:
        """Fills what the submission allocated."""
        for number, buffer in enumerate(self.plan.buffers):
            if not buffer.argument:
                self.data(number).fill_(POISON)

    def view(self, view: View) -> torch.Tensor:
        """A tensor of the submission's: strides in elements, the offset in bytes."""
        return self._strided(view.buffer, view.dtype, view.shape, view.strides, view.offset)

    def argument(self, number: int, spec: TensorSpec) -> torch.Tensor:
        """An argument of the call: strides and offset in elements."""
        size = getattr(torch, spec.dtype).itemsize
        return self._strided(number, spec.dtype, spec.shape, spec.strides, spec.offset * size)

    def _strided(self, number: int, dtype_name: str, shape, strides, offset_bytes: int) -> torch.Tensor:
        dtype = getattr(torch, dtype_name)
        data = self.data(number)
        whole = data[: data.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
        return whole.as_strided(shape, strides, whole.storage_offset() + offset_bytes // dtype.itemsize)

    def overruns(self) -> list[Overrun]:
        """What was written outside of the buffers; looked for once nothing runs any more."""
        if not self.touched_guards():
            return []
        found = []
        for buffer, start, guard in zip(self.plan.buffers, self.starts, self._guards()):
            before, after = ((side != self.pattern).nonzero() for side in guard)
            if len(before):
                found.append(Overrun(buffer.name, "before", start - int(before[-1]) - 1, len(before)))
            if len(after):
                found.append(Overrun(buffer.name, "after", int(after[0]), len(after)))
        return found

    def touched_guards(self) -> torch.Tensor:
        """Whether anything was written outside of the buffers; [], bool, on their device: the host need not wait."""
        return (torch.cat([*itertools.chain(*self._guards())]) != self.pattern).any()

    def _guards(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The bytes before and after each buffer."""
        return [
            (memory[:start], memory[start + buffer.bytes :])
            for memory, start, buffer in zip(self.memory, self.starts, self.plan.buffers)
        ]
