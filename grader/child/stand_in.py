"""A stand-in for the GPU: Triton makes text or machine code of each kernel for it, and launches are handed over.

Triton asks its active driver for all that it needs of a GPU: the target, the limits, loading a binary, the launcher.
With another driver a whole host function runs on a machine without a GPU, and each launch ends in `on_launch`. Tensors
are on torch's meta device: they have shapes, strides and, here, addresses, but no memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler.compiler import CompiledKernel
from triton.runtime import _allocation, driver

from grader.child.front_end import Kernel, install
from grader.child.pretence import CUDA, PretendCuda
from grader.cubin import BadCubin, Cubin, read_cubin
from grader.protocol import GpuModel

TEXTS = ("ttir", "ttgir", "llir", "ptx")  # what Triton makes of a kernel on the way to machine code


@dataclass
class Binary:
    """A compiled kernel: machine code, and the texts it was made from, by name (ttir, ttgir, llir, ptx)."""

    cubin: bytes
    texts: dict[str, str]


@dataclass
class Launch:
    """One launch, of a kernel's text."""

    source: object  # triton.compiler.ASTSource: the kernel, and its signature by argument name
    grid: tuple[int, int, int]
    arguments: tuple  # in the order of the signature, constexpr arguments included
    dimensions: int = 3  # how many numbers of the grid the learner wrote
    kernel: Kernel | None = None


@dataclass
class CompiledLaunch(Launch):
    """One launch of machine code, as Triton's launcher receives it."""

    metadata: object = None  # name, num_warps, num_ctas, shared, global_scratch_size ...
    binary: Binary | None = None
    global_scratch: torch.Tensor | None = None  # what the allocator of triton.set_allocator returned


class Utils:
    """What is C code in Triton's own driver."""

    def __init__(self, model: GpuModel):
        self.model = model
        self.cubins: list[bytes] = []

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
        self.cubins.append(cubin)
        try:
            said = read_cubin(cubin)
        except BadCubin:  # not the fault of whoever launches; the parent reads it too, and says what is wrong with it
            said = Cubin()
        # (module: none, so nothing to unload, function, registers, spilled words, most threads per block)
        return None, len(self.cubins) - 1, said.registers, said.stack_bytes // 4, 1024

    def unload_module(self, module: object) -> None:
        pass

    def set_printf_fifo_size(self, size: int) -> None:
        pass


class Launcher:
    """Made once per compiled kernel, called once per launch."""

    def __init__(self, source: object, metadata: object):
        self.source, self.metadata = source, metadata

    def __call__(
        self, grid_x, grid_y, grid_z, stream, function, packed, launch_metadata, enter_hook, exit_hook, *arguments
    ) -> None:
        stand_in, metadata = driver.active, self.metadata
        size = grid_x * grid_y * grid_z * metadata.num_ctas * metadata.global_scratch_size
        # As in the real launcher: with no allocator set this raises.
        scratch = _allocation._allocator.get()(size, metadata.global_scratch_align, stream) if size else None
        binary = stand_in.binaries[stand_in.utils.cubins[function]]
        grid = (grid_x, grid_y, grid_z)
        stand_in.on_launch(
            CompiledLaunch(self.source, grid, arguments, metadata=metadata, binary=binary, global_scratch=scratch)
        )


class StandIn(DriverBase):
    """The driver. One per process: compiled kernels keep the launcher they were made with.

    `stage`: what launches are handed over with, "source" text or machine code, "cubin".
    """

    launcher_cls = Launcher

    def __init__(self, model: GpuModel):
        self.model = model
        self.utils = Utils(model)
        self.binaries: dict[bytes, Binary] = {}  # by cubin
        self.pretence = PretendCuda()
        self.stage = "source"
        self.on_launch: Callable[[Launch], None] = lambda launch: None

    def compiled(self, kernel: Kernel) -> None:
        """A new specialization: what its launch will need is made, so that it fails here, where Triton's would."""
        _ = kernel.text if self.stage == "source" else kernel.compiled

    def launched(self, kernel: Kernel, grid: tuple[int, int, int], dimensions: int, arguments: tuple) -> None:
        if self.stage == "source":
            kernel.check_launch(math.prod(grid))
            self.on_launch(Launch(kernel.src, grid, arguments, dimensions, kernel))
        else:
            run, compiled = kernel.compiled.run, kernel.compiled
            run(*grid, 0, compiled.function, compiled.packed_metadata, None, None, None, *arguments)

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
    """The active driver of this process from now on, and the GPU that torch pretends to have."""
    stand_in = StandIn(model)
    driver.set_active(stand_in)
    stand_in.pretence.install(model)
    original = CompiledKernel._init_handles

    def init_handles(kernel: CompiledKernel) -> None:
        if kernel.module is None:
            cubin = kernel.asm["cubin"]
            stand_in.binaries[cubin] = Binary(cubin, {name: kernel.asm[name] for name in TEXTS if name in kernel.asm})
        original(kernel)

    CompiledKernel._init_handles = init_handles
    install(stand_in.launched, stand_in.compiled)
    return stand_in
