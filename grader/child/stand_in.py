"""A stand-in for the GPU: Triton makes text or machine code of each kernel for it, and launches are handed over.

Triton asks its active driver for all that it needs of a GPU: the target, the limits, loading a binary, the launcher.
With another driver a whole host function runs on a machine without a GPU, and each launch ends in `on_launch`. Tensors
are on torch's meta device: they have shapes, strides and, here, addresses, but no memory.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch.overrides import TorchFunctionMode
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler.compiler import CompiledKernel
from triton.runtime import _allocation, driver

from grader.child.front_end import Kernel, install
from grader.cubin import BadCubin, Cubin, read_cubin
from grader.protocol import GpuModel

CUDA = torch.device("cuda", 0)
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

    def get_device_interface(self) -> None:
        return None

    def get_benchmarker(self) -> Callable:
        return lambda call, **_: [0.0, 0.0, 0.0]


class PretendCuda(TorchFunctionMode):
    """Inside, device="cuda" makes tensors without memory, and these say that they are on cuda:0."""

    def __init__(self, address_of: Callable[[torch.Tensor], int]):
        super().__init__()
        self.address_of = address_of

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        answer = self._pretended(function, args)
        if answer is not None:
            return answer
        if function is torch.device:
            return function(*args, **kwargs)
        if function == torch.Tensor.__setitem__ and args[0].is_meta and isinstance(args[2], (int, float)):
            args[0][args[1]].fill_(args[2])  # as on a GPU; without memory torch would copy a tensor of one element
            return None
        args = tuple(_on_meta(value) for value in args)
        kwargs = {key: _on_meta(value, key == "device") for key, value in kwargs.items() if key != "pin_memory"}
        return function(*args, **kwargs)

    def _pretended(self, function, args: tuple) -> object:
        """What a tensor without memory says of itself, None for all other functions."""
        name = getattr(function, "__name__", "")
        if not args or not isinstance(args[0], torch.Tensor) or not args[0].is_meta:
            return None
        if name == "data_ptr":
            return self.address_of(args[0])
        if name == "get_device":
            return 0
        if name == "cuda":
            return args[0]
        if function == torch.Tensor.device.__get__:
            return CUDA
        if function == torch.Tensor.is_cuda.__get__:
            return True
        return False if function == torch.Tensor.is_cpu.__get__ else None


def _on_meta(value: object, is_device: bool = False) -> object:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("meta")
    if isinstance(value, str) and re.fullmatch(r"cuda(:\d+)?", value):
        return torch.device("meta")
    return torch.device("meta") if is_device and type(value) is int else value


def pretend_in_torch_cuda(model: GpuModel) -> None:
    """Replaces the functions of torch.cuda that host functions ask about the GPU; for the rest of this process."""
    properties = SimpleNamespace(
        name=model.name,
        major=model.arch // 10,
        minor=model.arch % 10,
        multi_processor_count=model.multiprocessors,
        total_memory=model.memory_bytes,
        L2_cache_size=model.l2_bytes,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=model.shared_per_block,
        shared_memory_per_multiprocessor=model.shared_per_multiprocessor,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        warp_size=32,
    )
    answers = dict(
        is_available=lambda: True,
        device_count=lambda: 1,
        current_device=lambda: 0,
        set_device=lambda device: None,
        device=lambda device=None: contextlib.nullcontext(),
        get_device_name=lambda device=None: model.name,
        get_device_capability=lambda device=None: divmod(model.arch, 10),
        get_device_properties=lambda device=None: properties,
        synchronize=lambda device=None: None,
    )
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)


def stand_in_for(model: GpuModel) -> StandIn:
    """The active driver of this process from now on."""
    stand_in = StandIn(model)
    pretend_in_torch_cuda(model)
    driver.set_active(stand_in)
    original = CompiledKernel._init_handles

    def init_handles(kernel: CompiledKernel) -> None:
        if kernel.module is None:
            cubin = kernel.asm["cubin"]
            stand_in.binaries[cubin] = Binary(cubin, {name: kernel.asm[name] for name in TEXTS if name in kernel.asm})
        original(kernel)

    CompiledKernel._init_handles = init_handles
    install(stand_in.launched, stand_in.compiled)
    return stand_in
