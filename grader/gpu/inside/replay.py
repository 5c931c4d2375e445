"""A launch plan carried out on the GPU: its kernels, a set of buffers, and its steps in order on one stream."""

from __future__ import annotations

from collections.abc import Callable

import torch

from grader.gpu.inside.guarded_buffers import Buffers
from grader.gpu.inside.launcher import BoundLaunch, Functions
from grader.gpu.plan import Fill, Plan, PlannedLaunch, PythonNumbers, steps_with


class Replay:
    """A configuration of a plan, bound to a set of buffers."""

    def __init__(self, plan: Plan, functions: Functions, buffers: Buffers, config: int = 0):
        self.buffers = buffers
        self.steps: list[Callable[[int], object]] = []
        addresses, first = buffers.addresses, True
        for step in steps_with(plan.steps, config):
            if isinstance(step, Fill):
                self.steps.append(self._fill(step))
            elif isinstance(step, PythonNumbers):
                self.steps.append(self._copy(step))
            else:
                self.steps.append(self._launch(step, plan, functions, addresses, first))
                first = False

    def _fill(self, step: Fill) -> Callable[[int], object]:
        view = self.buffers.view(step.view)
        return lambda stream: view.fill_(step.value)

    def _copy(self, step: PythonNumbers) -> Callable[[int], object]:
        """Returns a call that copies a step's data to its view on a stream.

        It copies from memory of the GPU, so that nothing waits for the host and a CUDA graph can hold the copy.
        """
        view = self.buffers.view(step.view)
        values = torch.frombuffer(bytearray(step.bytes), dtype=view.dtype).to(view.device).view(view.shape)
        return lambda stream: view.copy_(values)

    def _launch(
        self, step: PlannedLaunch, plan: Plan, functions: Functions, addresses: list[int], first: bool
    ) -> Callable[[int], object]:
        kernel, function = plan.kernels[step.kernel], functions.functions[step.kernel]
        return BoundLaunch(step, kernel, function, addresses, first).enqueue

    def enqueue(self) -> None:
        """Enqueues all steps on torch's current stream, and does not wait for them."""
        stream = torch.cuda.current_stream().cuda_stream
        for step in self.steps:
            step(stream)
