"""The GPU that a host function believes in: tensors that say they are on it, torch.cuda's answers, and Triton's driver.

Triton asks its active driver for all that it needs of a GPU: the target, the limits, what a binary takes. With another
driver a whole host function runs on a machine without a GPU, and each launch ends in `on_launch`. device="cuda" makes
tensors on torch's meta device: they have shapes, strides and, here, addresses, but no memory. All this is installed
before a submission is imported and never taken off, so that what a file asks at its top, or binds there to a name of
its own, is true in every call.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch
import triton
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from grader.child.kernel_recipes import Kernel, install
from grader.child.tensors import storage_bytes
from grader.child.torch_refusals import NotRecordable
from grader.child.triton_api import BENCHMARKS, PretendedDriver
from grader.front_end.triton_text_api import ASTSource
from grader.wire.messages import GpuModel

CUDA, META = torch.device("cuda", 0), torch.device("meta")
CUDA_NAME = re.compile(r"cuda(:\d+)?")
PROPERTIES = {"device": CUDA, "is_cuda": True, "is_cpu": False, "is_meta": False}  # of a tensor on the GPU
MOST_DATA_BYTES = 4096
NO_TIMES = "measures time, and here nothing runs: remove it from the host function"
NO_STREAMS = "is another stream: launch on the current one"
NO_DEVICE = "device='meta' makes tensors without memory: allocate on the input's device, as torch.empty_like(x) does"
REFUSED = {
    "Event": NO_TIMES, "Stream": NO_STREAMS, "ExternalStream": NO_STREAMS,
    "CUDAGraph": "replays launches: launch them in each call", "graph": "replays launches: launch them in each call",
}  # fmt: skip


def refuse(message: str) -> None:
    raise NotRecordable(message)


class PretendCuda(TorchFunctionMode):
    """Pretends that tensors on torch's meta device are on the GPU.

    A recorder sets three functions: `address_of` a tensor without memory; `copied`, called with a new tensor without
    memory and the bytes that it is to hold; `refuse`, which raises and remembers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.forget()
        self.properties = SimpleNamespace()  # of the GPU, as torch.cuda tells them
        self._answers: dict[Callable[..., Any], Callable[[torch.Tensor], Any]] = {
            **{getattr(torch.Tensor, name).__get__: _always(value) for name, value in PROPERTIES.items()},
            torch.Tensor.get_device: _always(0),
            torch.Tensor.cuda: lambda tensor: tensor,
            torch.Tensor.data_ptr: lambda tensor: self.address_of(tensor),
            torch.Tensor.record_stream: _always(None),
        }
        self._makers = {torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor}
        self._movers = {torch.Tensor.to, torch.Tensor.cuda}

    def forget(self) -> None:
        """Sets functions that record nothing."""
        self.address_of: Callable[[torch.Tensor], int] = lambda tensor: 0
        self.copied: Callable[[torch.Tensor, bytes], None] = lambda tensor, data: None
        self.refuse: Callable[[str], Any] = refuse

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if first is not None and first.is_meta:
            if (answer := self._answers.get(function)) is not None:
                return answer(first)
            if function == torch.Tensor.__setitem__ and isinstance(args[2], (int, float)):
                first[args[1]].fill_(args[2])  # as on a GPU; without memory torch would copy a tensor of one element
                return None
            if function == torch.Tensor.type and len(args) == 1 and not kwargs:
                return function(first).replace("torch.meta.", "torch.cuda.")
            if function == torch.Tensor.__repr__:
                shown: str = function(*args, **kwargs)  # type: ignore[no-untyped-call]  # torch's has no types
                return shown.replace("device='meta'", "device='cuda:0'")
        if function is torch.device:
            return function(*args, **kwargs)
        if _is_meta(kwargs.get("device")) or function in self._movers and any(_is_meta(value) for value in args):
            self.refuse(NO_DEVICE)
        args = tuple(_on_meta(value) for value in args)
        kwargs = {key: _on_meta(value, key == "device") for key, value in kwargs.items() if key != "pin_memory"}
        if function in self._makers:
            return self._tensor_of_numbers(function, args, kwargs)
        if function in self._movers and first is not None and first.device.type == "cpu":
            return self._moved(function, args, kwargs)
        return function(*args, **kwargs)

    def _tensor_of_numbers(
        self, function: Callable[..., torch.Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> torch.Tensor:
        """Makes a tensor of Python's numbers, as torch.tensor does, on the GPU if that is asked for."""
        is_method = function is torch.Tensor.new_tensor
        device = kwargs.get("device") or (args[0].device if is_method else _default_device())
        source = [*args[is_method:], kwargs.get("data"), kwargs.get("obj")][0]
        if torch.device(device) not in (META, CUDA) or isinstance(source, torch.Tensor) and source.is_meta:
            return function(*args, **kwargs)
        if _holds_tensor(source):
            self.refuse("a tensor is made of another one's elements: a kernel has to read their values")
        values = source if isinstance(source, torch.Tensor) else None
        if values is None:
            values = function(*args, **{**kwargs, "device": "cpu"})
        return self._copy_of(values, kwargs.get("dtype") or values.dtype)

    def _moved(
        self, function: Callable[..., torch.Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> torch.Tensor:
        """Carries out .to(device) and .cuda() of a tensor in the CPU's memory."""
        values = [*args[1:], *kwargs.values()]
        like = next((value for value in values if isinstance(value, torch.Tensor)), None)
        if (
            function != torch.Tensor.cuda
            and not any(value is META for value in values)
            and not (like is not None and like.is_meta)
        ):
            return function(*args, **kwargs)
        dtypes = [value for value in values if isinstance(value, torch.dtype)]
        dtype = dtypes[0] if dtypes else (args[0] if like is None else like).dtype
        return self._copy_of(args[0], dtype)

    def _copy_of(self, values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        size = values.numel() * dtype.itemsize
        if size > MOST_DATA_BYTES:
            self.refuse(f"{size} bytes of numbers are made in Python, and at most {MOST_DATA_BYTES} go to the GPU")
        with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
            data = storage_bytes(values.detach().to(dtype).clone(memory_format=torch.contiguous_format)).tobytes()
        copy = torch.empty(values.shape, dtype=dtype, device=META)
        self.copied(copy, data[:size])
        return copy

    # ---- torch.cuda -------------------------------------------------------------------------------------

    def install(self, model: GpuModel) -> None:
        """Turns this mode on for good, and makes torch.cuda and similar modules answer for the model."""
        vars(self.properties).update(_properties(model))
        _answer_in_torch_cuda(model, self.properties)
        for name, why in REFUSED.items():
            setattr(torch.cuda, name, self._refusing(f"torch.cuda.{name} {why}"))
        for name in BENCHMARKS:
            setattr(triton.testing, name, self._refusing(f"triton.testing.{name} {NO_TIMES}"))
        self.__enter__()  # type: ignore[no-untyped-call]  # torch's has no types

    def _refusing(self, message: str) -> type:
        pretence = self

        class Refused:
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                pretence.refuse(message)

        return Refused


def _is_meta(value: Any) -> bool:
    """Returns whether a file asks for torch's own meta device; the object META itself stands for the GPU here."""
    return value == "meta" if isinstance(value, str) else value is not META and value == META


def _on_meta(value: Any, is_device: bool = False) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return META
    if isinstance(value, str) and CUDA_NAME.fullmatch(value):
        return META
    return META if is_device and type(value) is int else value


def _holds_tensor(data: Any) -> bool:
    """Returns whether a list or tuple, or a list within it, holds a tensor."""
    if not isinstance(data, (list, tuple)):
        return False
    return any(isinstance(item, torch.Tensor) or _holds_tensor(item) for item in data)


class _OnDevice(contextlib.ContextDecorator):
    """Stands for torch.cuda.device(x.device): there is one GPU, and it is the current one."""

    def __init__(self, device: Any = None) -> None:
        self.idx, self.prev_idx = 0, 0

    def __enter__(self) -> None:
        return None

    def __exit__(self, *raised: Any) -> None:
        return None


class _CurrentStream:
    """The only stream, as torch.cuda.current_stream() gives it."""

    device, device_index, cuda_stream, stream_id, priority = CUDA, 0, 0, 0, 0

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def wait_stream(self, stream: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CurrentStream)

    def __hash__(self) -> int:
        return 0


def _properties(model: GpuModel) -> dict[str, Any]:
    return dict(
        name=model.name, major=model.arch // 10, minor=model.arch % 10, multi_processor_count=model.multiprocessors,
        total_memory=model.memory_bytes, L2_cache_size=model.l2_bytes, warp_size=32, is_integrated=0,
        shared_memory_per_block=49152, shared_memory_per_block_optin=model.shared_per_block,
        shared_memory_per_multiprocessor=model.shared_per_multiprocessor, regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048, max_threads_per_block=1024,
    )  # fmt: skip


def _answer_in_torch_cuda(model: GpuModel, properties: SimpleNamespace) -> None:
    """Replaces the functions that host functions ask about the GPU, for the rest of this process."""
    stream = _CurrentStream()

    def capability(*_: Any, **__: Any) -> tuple[int, int]:  # it may change
        return properties.major, properties.minor

    vars(torch.cuda).update(
        device=_OnDevice, device_of=_OnDevice, _DeviceGuard=_OnDevice, get_device_capability=capability
    )
    _answer(
        torch.cuda,
        init=None, is_initialized=True, is_available=True, device_count=1, current_device=0, set_device=None,
        get_device_name=model.name, get_device_properties=properties,
        get_arch_list=[model.target], is_bf16_supported=model.arch >= 80, can_device_access_peer=False,
        synchronize=None, current_stream=stream, default_stream=stream, set_stream=None, stream=_OnDevice(),
        is_current_stream_capturing=False, empty_cache=None, mem_get_info=(model.memory_bytes, model.memory_bytes),
        memory_allocated=0, max_memory_allocated=0, memory_reserved=0, reset_peak_memory_stats=None,
    )  # fmt: skip
    _answer(torch.cuda.nvtx, range_push=0, range_pop=0, mark=None, range=_OnDevice())
    if hasattr(torch, "accelerator"):
        _answer(
            torch.accelerator,
            is_available=True, device_count=1, current_accelerator=torch.device("cuda"), current_device_index=0,
            set_device_index=None, synchronize=None, current_stream=stream, set_stream=None,
        )  # fmt: skip
    _answer(torch._C, _cuda_getCurrentRawStream=0)
    _pretend_in_default_devices()


def _answer(module: Any, **answers: Any) -> None:
    """Sets functions of these names in the module; each returns its answer whatever its arguments are."""
    for name, answer in answers.items():
        setattr(module, name, _always(answer))


def _always(answer: Any) -> Callable[..., Any]:
    def answered(*args: Any, **kwargs: Any) -> Any:
        return answer

    return answered


def _pretend_in_default_devices() -> None:
    """Pretends in torch.set_default_device("cuda") and `with torch.device("cuda"):`, which work beneath every mode."""
    enter = DeviceContext.__init__

    def enter_on_meta(self: DeviceContext, device: Any) -> None:
        if _is_meta(device):
            refuse(NO_DEVICE)
        enter(self, _on_meta(device, is_device=True))
        self.device = META if self.device == META else self.device

    DeviceContext.__init__ = enter_on_meta  # type: ignore[method-assign]  # torch's own is replaced
    torch.get_default_device = _default_device


def _default_device() -> torch.device:
    contexts = [mode for mode in _get_current_function_mode_stack() if isinstance(mode, DeviceContext)]
    device = contexts[-1].device if contexts else torch.device("cpu")
    return CUDA if device == META else device


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
        model = replace(self.model, multiprocessors=multiprocessors or self.model.multiprocessors)
        self.utils.model = model
        properties = self.pretence.properties
        properties.multi_processor_count = model.multiprocessors
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
