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

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler.compiler import ASTSource
from triton.runtime import driver

from grader.child.kernel_recipes import Kernel, install
from grader.child.pretended_tensors import CUDA, PretendCuda
from grader.wire.cubin import BadCubin, Cubin, read_cubin
from grader.wire.messages import GpuModel


@dataclass
class TritonLaunch:
    """A launch of a kernel, as Triton makes it."""

    source: ASTSource  # the kernel, and its signature by argument name
    grid: tuple[int, int, int]
    arguments: tuple  # in the order of the signature, constexpr arguments included
    dimensions: int  # how many numbers of the grid the learner wrote
    kernel: Kernel
    no_scratch: str  # why there is no memory for descriptors that the kernel may make, "" if there is


class Utils:
    """Replaces the C code of Triton's own driver."""

    def __init__(self, model: GpuModel):
        self.model = model

    def get_device_properties(self, device: int) -> dict:
        return {
            "max_shared_mem": self.model.shared_per_block,
            "max_num_regs": 65536,
            "multiprocessor_count": self.model.multiprocessors,
            "warpSize": 32,
            "sm_clock_rate": 1_980_000,
            "mem_clock_rate": 3_201_000,
            "mem_bus_width": 6144,
        }

    def load_binary(self, name: str, cubin: bytes, shared: int, device: int) -> tuple:
        try:
            said = read_cubin(cubin)
        except BadCubin:  # no fault of the launch; the parent reads it, too, and reports it
            said = Cubin()
        # (module and function: none, so nothing to unload, registers, spilled words, most threads per block)
        return None, None, said.registers, said.stack_bytes // 4, 1024

    def unload_module(self, module: object) -> None:
        pass

    def set_printf_fifo_size(self, size: int) -> None:
        pass


class Launcher:
    """Stands for the launcher that Triton makes of a kernel with machine code; launches go through
    Kernel."""

    def __init__(self, source: object, metadata: object) -> None:
        pass


class StandIn(DriverBase):
    """Triton's driver in this process."""

    launcher_cls = Launcher

    def __init__(self, model: GpuModel):
        self.model = model
        self.utils = Utils(model)
        self.pretence = PretendCuda()
        self.on_launch: Callable[[TritonLaunch], None] = lambda launch: None
        self.unrecorded: Callable[[], AbstractContextManager] = nullcontext  # for memory that Triton asks for

    def is_told_as(self, multiprocessors: int, capability: int) -> None:
        """Sets what torch says of the GPU from now on; 0 stands for the model's own number.

        Kernels are made for the model in any case.
        """
        told = replace(self.model, multiprocessors=multiprocessors or self.model.multiprocessors)
        self.utils.model = told
        properties = self.pretence.properties
        properties.multi_processor_count = told.multiprocessors
        properties.major, properties.minor = divmod(capability or self.model.arch, 10)

    def launched(self, kernel: Kernel, grid: tuple[int, int, int], dimensions: int, arguments: tuple) -> None:
        with self.unrecorded():
            no_scratch = kernel.no_scratch(math.prod(grid))
        self.on_launch(TritonLaunch(kernel.src, grid, arguments, dimensions, kernel, no_scratch))

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.model.arch, 32)

    def get_active_torch_device(self) -> torch.device:
        return CUDA

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_device_capability(self, *device: int) -> tuple[int, int]:
        return divmod(self.model.arch, 10)

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_device_interface(self) -> object:
        return torch.cuda

    def get_benchmarker(self) -> Callable:
        return lambda call, **_: [0.0, 0.0, 0.0]


def stand_in_for(model: GpuModel) -> StandIn:
    """Returns a driver that is active in this process from now on, with the GPU that torch pretends to have."""
    stand_in = StandIn(model)
    driver.set_active(stand_in)
    stand_in.pretence.install(model)
    install(stand_in.launched)
    return stand_in
