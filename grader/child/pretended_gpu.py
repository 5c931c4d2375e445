"""A stand-in for the GPU: Triton is made to believe in it, and launches are handed over.

Triton asks its active driver for all that it needs of a GPU: the target, the limits, what a binary takes. With another
driver a whole host function runs on a machine without a GPU, and each launch ends in `on_launch`. Tensors are on
torch's meta device: they have shapes, strides and, here, addresses, but no memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from grader.child.kernel_recipes import Kernel, install
from grader.child.pretended_tensors import CUDA, PretendCuda
from grader.child.triton_api import PretendedDriver
from grader.front_end.triton_text_api import ASTSource
from grader.wire.messages import GpuModel


@dataclass
class TritonLaunch:
    """A launch of a kernel, as Triton makes it."""

    source: ASTSource  # the kernel, and its signature by argument name
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]  # in the order of the signature, constexpr arguments included
    dimensions: int  # how many numbers of the grid the learner wrote
    kernel: Kernel
    no_scratch: str  # why there is no memory for descriptors that the kernel may make, "" if there is


class StandIn(PretendedDriver):
    """Triton's driver in this process."""

    def __init__(self, model: GpuModel):
        super().__init__(model, CUDA, torch.cuda)
        self.pretence = PretendCuda()
        self.on_launch: Callable[[TritonLaunch], None] = lambda launch: None
        self.unrecorded: Callable[[], AbstractContextManager[object]] = nullcontext  # for memory that Triton asks for

    def is_told_as(self, multiprocessors: int, capability: int) -> None:
        """Sets what torch says of the GPU from now on; 0 stands for the model's own number.

        Kernels are made for the model in any case.
        """
        told = replace(self.model, multiprocessors=multiprocessors or self.model.multiprocessors)
        self.utils.model = told
        properties = self.pretence.properties
        properties.multi_processor_count = told.multiprocessors
        properties.major, properties.minor = divmod(capability or self.model.arch, 10)

    def launched(self, kernel: Kernel, grid: tuple[int, int, int], dimensions: int, arguments: tuple[Any, ...]) -> None:
        with self.unrecorded():
            no_scratch = kernel.no_scratch(math.prod(grid))
        self.on_launch(TritonLaunch(kernel.src, grid, arguments, dimensions, kernel, no_scratch))


def stand_in_for(model: GpuModel) -> StandIn:
    """Returns a driver that is active in this process from now on, with the GPU that torch pretends to have."""
    stand_in = StandIn(model)
    stand_in.activate()
    stand_in.pretence.install(model)
    install(stand_in.launched)
    return stand_in
