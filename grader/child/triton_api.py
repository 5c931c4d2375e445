"""Triton's private names with which launches are recorded and machine code is made: imported, read, called or replaced.

What makes a kernel's text stands in front_end/triton_text_api.py, which this room shares, and in
front_end/triton_visitor_api.py; the rules of a launch stand in wire/launch_abi.py. A port to a new Triton begins with
these four. Each name holds for Triton 3.6 to 3.9, unless its comment says otherwise. Nothing here needs torch: the
compiler process, which uses this file, has none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import triton
from triton.language import constexpr, dtype

from grader.front_end.triton_text_api import (
    ASTSource,
    CUDABackend,
    GPUTarget,
    JITCallable,
    JITFunction,
    check_members,
    ir,
    of_a_known_release,
    target_here,
)
from grader.wire.cubin import BadCubin, Cubin, read_cubin
from grader.wire.launch_abi import WARP_SIZE
from grader.wire.messages import GpuModel

with of_a_known_release("child/triton_api.py"):
    from triton import compiler
    from triton.backends.compiler import Language
    from triton.backends.driver import DriverBase
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime import _allocation, cache, driver
    from triton.runtime.autotuner import Autotuner, Config
    from triton.runtime.errors import OutOfResources, PTXASError
    from triton.runtime.jit import TensorWrapper

__all__ = [  # what is imported from here
    "Autotuner", "Config",  # of triton.autotune
    "BENCHMARKS", "LazyKernel", "PretendedDriver", "Utils", "allocator", "autotuned_by", "compile_lazily", "described",
    "with_its_number", "without_a_hash_of_triton",
    "Language",  # TRITON, or Gluon's
    "OutOfResources",  # (required, limit, what)
    "PTXASError",  # of the assembler
]  # fmt: skip

BENCHMARKS = ("do_bench", "do_bench_cudagraph")  # of triton.testing; replaced
MEMBERS: dict[Any, tuple[str, ...]] = {
    triton: ("compile", "MockTensor", "testing"),  # compile is replaced; an argument of warmup
    triton.testing: BENCHMARKS,
    compiler: ("compile",),  # (source, target=, options=, ...) -> CompiledKernel; replaced
    type(driver): ("set_active", "active"),
    cache: ("triton_key",),  # () -> a hash of all of Triton; replaced
    _allocation: ("_allocator",),  # a variable of contextvars: what triton.set_allocator was given
    CompiledKernel: ("metadata",),
    JITCallable: ("get_capture_scope",),  # () -> the names that a function sees
    JITFunction: (
        "run",  # (*args, grid=, warmup=, **kwargs); replaced
        "warmup",  # (*args, grid=) -> what compile returns
        "arg_names",
        "repr", "_repr",  # the kernel's symbol, from an object with .constants and .signature; what the file gave
    ),
    TensorWrapper: ("base",),  # the tensor that was given to triton.reinterpret
    constexpr: ("value", "type"),  # and no other
    dtype: ("name",),
    Config: ("all_kwargs", "pre_hook"),
    Autotuner: (
        "run",  # (*args, **kwargs); replaced
        "fn", "arg_names", "configs", "keys",
        "nargs",  # the arguments of this call, by name; set
        "best_config",  # set
        "prune_configs",  # (kwargs) -> the configurations that are tried
        "pre_hook",  # (named arguments, reset_only=)
        "post_hook",  # (named arguments, exception=)
        "user_defined_pre_hook", "user_defined_post_hook",  # whether the file gave them
        "reset_to_zero", "restore_value",  # names of arguments. If the file sets a pre_hook, nothing is restored
    ),
    CUDABackend: ("add_stages",),  # (dict to be filled: stage -> (module, metadata) -> module, options, language)
    ir: ("parse_mlir_module",),  # (path, context)
}  # fmt: skip
check_members(MEMBERS, "child/triton_api.py")

_compile_in_full = compiler.compile


# ---- launching ------------------------------------------------------------------------------------------------------


class LazyKernel:
    """Replaces Triton's CompiledKernel: a launch is handed over, and nothing is compiled until someone asks for it.

    `on_launch(kernel, grid, dimensions, arguments)` is called for each launch: with three numbers of programs, how many
    of them the learner wrote, and the arguments in the order of the signature, constexpr arguments included.
    """

    function, packed_metadata = None, ()  # Triton hands these from a compiled kernel to its launcher

    def __init__(self, source: ASTSource, target: GPUTarget, options: dict[str, Any], on_launch: Callable[..., None]):
        self.src, self._target, self._given, self._on_launch = source, target, options, on_launch

    @cached_property
    def compiled(self) -> CompiledKernel:
        return _compile_in_full(self.src, target=self._target, options=self._given)

    def __getattr__(self, name: str) -> Any:
        if name == "result":  # Triton 3.6 asks whether the kernel is still being compiled
            raise AttributeError(name)
        return getattr(self.compiled, name)

    def launch_metadata(self, grid: tuple[Any, ...], stream: int, *arguments: Any) -> tuple[Any, ...]:
        """Returns the grid as it was written; Triton hands it to `run`."""
        return grid

    def run(
        self, x: int, y: int, z: int, stream: int, function: None, packed: tuple[()], written: tuple[Any, ...],
        enter: object, exit: object, *arguments: Any,
    ) -> None:  # fmt: skip
        self._on_launch(self, (x, y, z), len(written), arguments)

    def __getitem__(self, grid: tuple[Any, ...]) -> Callable[..., None]:
        written = whole(grid)
        padded = (*written, 1, 1)[:3]
        return lambda *arguments, stream=None: self._on_launch(self, padded, len(written), arguments)


def whole(grid: Any) -> tuple[int, ...]:
    if not isinstance(grid, (tuple, list)):
        raise TypeError("the grid must be a tuple, such as (n,): (n) without the comma is n")
    if not 1 <= len(grid) <= 3:
        raise TypeError("the grid must have 1 to 3 numbers")
    if not all(hasattr(size, "__index__") for size in grid):
        raise TypeError("the grid must hold whole numbers: triton.cdiv rounds up")
    return tuple(int(size) for size in grid)


def compile_lazily(kernel_of: Callable[[ASTSource, GPUTarget, dict[str, Any]], LazyKernel]) -> None:
    """Makes Triton turn JIT functions into the kernels that `kernel_of` returns, for the rest of this process."""

    def kernel_or_compiled(
        src: Any, target: GPUTarget | None = None, options: dict[str, Any] | None = None, **rest: Any
    ) -> Any:
        if not isinstance(src, ASTSource):  # a text in a file
            return _compile_in_full(src, target=target, options=options, **rest)
        return kernel_of(src, target or target_here(), options or {})

    run = JITFunction.run

    def run_on_a_whole_grid(function: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        checked = grid
        if not warmup:
            checked = (lambda meta: whole(grid(meta))) if callable(grid) else whole(grid)
        return run(function, *args, grid=checked, warmup=warmup, **kwargs)

    compiler.compile = triton.compile = kernel_or_compiled
    JITFunction.run = run_on_a_whole_grid


def allocator() -> Callable[[int, int, int], Any]:
    """Returns what triton.set_allocator was given: (size, alignment, stream) -> memory. Without one, a call raises."""
    function: Callable[[int, int, int], Any] = _allocation._allocator.get()
    return function


def described(descriptor: Any) -> dict[str, Any]:
    """Returns what a TensorDescriptor of the host says of blocks, besides its tensor, which is its `base`."""
    return {
        "shape": [int(n) for n in descriptor.shape], "strides": [int(n) for n in descriptor.strides],
        "block": [int(n) for n in descriptor.block_shape], "padding": descriptor.padding,
        "tf32": bool(getattr(descriptor, "round_f32_to_tf32", False)),  # since Triton 3.9
    }  # fmt: skip


@contextlib.contextmanager
def autotuned_by(run: Callable[[Autotuner, tuple[Any, ...], dict[str, Any]], None]) -> Iterator[None]:
    """Lets `run` take the launches of autotuned kernels while the context is open."""
    original = Autotuner.run
    Autotuner.run = lambda autotuner, *args, **kwargs: run(autotuner, args, kwargs)
    try:
        yield
    finally:
        Autotuner.run = original


def without_a_hash_of_triton() -> None:
    """Keeps Triton from hashing all of itself, half a gigabyte, as a key of its cache.

    A child's cache is its own and begins empty, so any word does.
    """
    cache.triton_key = lambda: triton.__version__


# ---- the driver -----------------------------------------------------------------------------------------------------


class Utils:
    """Replaces the C code of Triton's own driver."""

    def __init__(self, model: GpuModel):
        self.model = model

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return {
            "max_shared_mem": self.model.shared_per_block,
            "max_num_regs": 65536,
            "multiprocessor_count": self.model.multiprocessors,
            "warpSize": WARP_SIZE,
            "sm_clock_rate": 1_980_000,
            "mem_clock_rate": 3_201_000,
            "mem_bus_width": 6144,
        }

    def load_binary(self, name: str, cubin: bytes, shared: int, device: int) -> tuple[Any, ...]:
        try:
            binary = read_cubin(cubin)
        except BadCubin:  # no fault of the launch; the parent reads it, too, and reports it
            binary = Cubin()
        # (module and function: none, so nothing to unload, registers, spilled words, most threads per block)
        return None, None, binary.registers, binary.stack_bytes // 4, 1024

    def unload_module(self, module: object) -> None:
        pass

    def set_printf_fifo_size(self, size: int) -> None:
        pass


class Launcher:
    """Stands for the launcher that Triton makes of a kernel with machine code; launches go through LazyKernel."""

    def __init__(self, source: object, metadata: object) -> None:
        pass


class PretendedDriver(DriverBase):  # type: ignore[misc]  # Triton has no types
    """Answers all that Triton asks of its active driver, for kernels of a GPU model. `torch_cuda`: the module."""

    launcher_cls = Launcher

    def __init__(self, model: GpuModel, torch_device: Any, torch_cuda: Any):
        self.model, self.utils = model, Utils(model)
        self._torch_device, self._torch_cuda = torch_device, torch_cuda

    def activate(self) -> None:
        driver.set_active(self)

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.model.arch, WARP_SIZE)

    def get_active_torch_device(self) -> Any:
        return self._torch_device

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_device_capability(self, *device: int) -> tuple[int, int]:
        return divmod(self.model.arch, 10)

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_device_interface(self) -> object:
        return self._torch_cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        return lambda call, **_: [0.0, 0.0, 0.0]


# ---- errors ---------------------------------------------------------------------------------------------------------

OF_WARPS = "num_warps must be a power of 2"


def with_its_number(error: BaseException, message: str) -> str:
    """Returns the message about num_warps with its value, which Triton leaves out; any other message as it is.

    The value is in the frame that raised it: there, `self` is the object of the backend's options.
    """
    trace = error.__traceback__
    while message == OF_WARPS and trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        warps = getattr(frame.f_locals.get("self"), "num_warps", None)
        if frame.f_globals.get("__name__") == CUDABackend.__module__ and warps is not None:
            return f"{message}: {warps}"
    return message
