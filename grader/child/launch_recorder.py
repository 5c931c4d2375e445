"""Records what a host function would do on a GPU, as a launch plan: buffers, fills, and launches of kernels.

    buffers   arguments and what the function allocates: a role, a size in bytes, never an address
    kernels   the recipe of each: which function of the file, and what it is compiled for
    steps     fills and launches in their order; an autotuned launch is a choice between lists of steps

A launch binds each of the kernel's parameters to a number, or to a buffer and an offset in bytes. The plan knows no
values of tensors. Computing operations of torch are refused, by their name and line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from grader.child import autotuner_hooks
from grader.child.pretended_gpu import StandIn, TritonLaunch
from grader.child.tensors import dtype_name, has_no_memory
from grader.child.torch_refusals import NotRecordable, Refusals
from grader.child.triton_api import Autotuner, Config, autotuned_by, described
from grader.wire.frames import JsonObject
from grader.wire.launch_abi import described_element, is_constant, is_number, is_pointer, sizes_and_strides
from grader.wire.messages import VIEW_BYTES, Failure, TensorSpec

FIRST_ADDRESS = 1 << 44
ALIGNMENT = 512  # bytes; what CUDA's allocator promises
MOST_BUFFERS, MOST_LAUNCHES, MOST_CONFIGS, MOST_CONSTANTS = 64, 64, 64, 64

NEGATED = "a view that gives other numbers than its memory holds: torch negates them"
Filling = torch.Tensor | bool | int | float | complex  # what torch's fill_ takes


class LaunchRecorder:
    """`with recorder.on(): entry(...)` fills `buffers`, `kernels` and `steps`."""

    def __init__(self, stand_in: StandIn, refusals: Refusals):
        self.stand_in, self.refusals = stand_in, refusals
        refusals.allocated, refusals.filled = self._allocated, self._filled
        self.arguments: dict[str, torch.Tensor] = {}
        self.buffers: list[JsonObject] = []
        self.kernels: list[JsonObject] = []
        self.steps: list[JsonObject] = []
        self.refusal: Failure | None = None
        self._addresses: dict[int, tuple[int, int]] = {}  # storage -> (address, number of its buffer)
        self._noted: list[tuple[torch.Tensor, TensorState]] = []  # each buffer's first tensor, as torch told of it last
        self._alive: list[torch.Tensor] = []  # kept, so that no new storage takes an old one's address
        self._next_address = FIRST_ADDRESS
        self._numbers: dict[str, int] = {}  # a recipe, as text -> number of its kernel
        self._launches = 0
        self.certain: list[JsonObject] = []  # kernels of launches before any refusal, outside of configurations
        self._in_a_choice = False

    @contextmanager
    def on(self) -> Iterator[None]:
        """Watches torch's operations and records allocations and launches while the context is open."""
        stand_in, pretence = self.stand_in, self.stand_in.pretence
        stand_in.on_launch, stand_in.unrecorded = self._launched, self._unrecorded
        pretence.address_of, pretence.copied, pretence.refuse = self.address_of, self._copied, self._refuse
        try:
            with autotuned_by(self._autotuned), self.refusals.on():
                yield
        finally:
            pretence.forget()

    @contextmanager
    def _unrecorded(self) -> Iterator[None]:
        """Keeps allocations and fills out of the plan while the context is open."""
        refusals = self.refusals
        refusals.allocated, refusals.filled = (lambda *_: None), (lambda *_: None)
        try:
            yield
        finally:
            refusals.allocated, refusals.filled = self._allocated, self._filled

    def _refuse(self, message: str, kind: str = "not-recordable", line: int = 0) -> NoReturn:
        """Raises NotRecordable, and keeps the first refusal, so that no `except` can hide it."""
        self.refusal = self.refusal or Failure(kind, message=message, line=line or self.refusals.line())
        raise NotRecordable(message)

    # ---- buffers ----------------------------------------------------------------------------------------

    def argument(
        self, spec: TensorSpec, begins_as: str = "", behind: int = 0, known: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Returns a tensor without memory for an argument, and adds its buffer.

        begins_as: name of an argument before it, at whose address it begins, or `behind` bytes further on. known: the
        same argument's tensor in the call before, which is used again unless a host function has changed its view.
        """
        tensor = known if known is not None and _is_as(known, spec) else _tensor(spec)
        self.arguments[spec.name] = tensor
        self._add_buffer(tensor, {"name": spec.name, "argument": True, "bytes": spec.size, "line": 0})
        if begins_as:
            memory, first = tensor.untyped_storage()._cdata, self.address_of(self.arguments[begins_as])
            self._addresses[memory] = (first + behind - _bytes_before(tensor), self._addresses[memory][1])
        return tensor

    def is_whole(self, spec: TensorSpec, name: str) -> bool:
        """Returns whether an argument is the whole of the argument with this name, at whose address it begins."""
        return _is_as(self.arguments[name], spec)

    def _add_buffer(self, tensor: torch.Tensor, buffer: JsonObject) -> None:
        if len(self.buffers) == MOST_BUFFERS:
            self._refuse(f"more than {MOST_BUFFERS} tensors are allocated in one call")
        self._addresses[tensor.untyped_storage()._cdata] = (self._next_address, len(self.buffers))
        self._next_address += (buffer["bytes"] // ALIGNMENT + 2) * ALIGNMENT  # the gap belongs to nobody
        self._alive.append(tensor)
        self._noted.append((tensor, TensorState.of(tensor)))
        self.buffers.append(buffer)

    def _allocated(self, tensor: torch.Tensor, value: Filling | None) -> None:
        """Adds a buffer for an allocation. `value` is what fills the memory, None if nothing in particular."""
        if not has_no_memory(tensor):
            return
        size = tensor.untyped_storage().nbytes()
        name = f"allocation{len(self.buffers)}"
        self._add_buffer(tensor, {"name": name, "argument": False, "bytes": size, "line": self.refusals.line()})
        if value is not None:
            self._filled(tensor, value)

    def _filled(self, tensor: torch.Tensor, value: Filling) -> None:
        if not has_no_memory(tensor):
            return
        value = value.item() if isinstance(value, torch.Tensor) else value
        if tensor.is_complex():
            parts = torch.view_as_real(tensor)
            self._filled(parts[..., 0], complex(value).real)
            self._filled(parts[..., 1], complex(value).imag)
            return
        if isinstance(value, complex):
            raise TypeError(f"a complex number cannot fill a tensor of the dtype {tensor.dtype}")
        number = float(value) if isinstance(value, float) and tensor.is_floating_point() else int(value)
        number = int(bool(value)) if tensor.dtype == torch.bool else number
        step = {"op": "fill", "view": self.view(tensor), "value": repr(number), "line": self.refusals.line()}
        self.steps.append(step)

    def _copied(self, tensor: torch.Tensor, data: bytes) -> None:
        """Adds a step for a few numbers made in Python, as elements of a new tensor."""
        if data:
            step = {"op": "data", "view": self.view(tensor), "bytes": data.hex(), "line": self.refusals.line()}
            self.steps.append(step)

    def check_end(self) -> None:
        """Raises NotRecordable where torch tells another thing of a tensor than the plan has: memory that was given
        back, a view that was turned."""
        with torch._C.DisableTorchFunction():
            for number, (tensor, noted) in enumerate(self._noted):
                if (what := noted.other_in(TensorState.of(tensor))) and not self.refusal:
                    buffer = self.buffers[number]
                    name = f"the argument {buffer['name']}" if buffer["argument"] else "memory that it allocated"
                    self._refuse(f"the host function changes {name} in a way that cannot be recorded: {what}")

    def address_of(self, tensor: torch.Tensor) -> int:
        """Returns a made-up address, aligned as the real address would be; 0 without elements or without a buffer."""
        address, _ = self._addresses.get(tensor.untyped_storage()._cdata, (0, 0))
        return address + _bytes_before(tensor) if address and tensor.numel() else 0

    def _place(self, tensor: torch.Tensor, name: str = "") -> JsonObject:
        """Returns the buffer a tensor lies in and its offset there, in bytes. name: the launch's argument, or "".

        An argument without memory in any buffer, and of 0 bytes, gets the null pointer: buffer -1. Raises
        NotRecordable.
        """
        what = f"the argument {name}" if name else "the result"
        if tensor.is_neg() or tensor.is_conj():
            self._refuse(f"{what} is {NEGATED}")
        if not has_no_memory(tensor):
            self._refuse(f"{what} lies in the CPU's memory, where a GPU's kernel cannot reach it: allocate it "
                                "on the input's device, with device=x.device")  # fmt: skip
        place = self._addresses.get(tensor.untyped_storage()._cdata)
        if place is not None:
            memory = tensor.untyped_storage().nbytes()  # torch lets a view without elements begin behind it
            return {"buffer": place[1], "offset": min(_bytes_before(tensor), memory)}
        if not name:
            self._refuse(f"{what} is memory that this call neither got nor allocated")
        if not tensor.untyped_storage().nbytes():
            return {"buffer": -1, "offset": 0}
        self._refuse(name.removesuffix("_ptr"), kind="foreign-memory")

    def view(self, tensor: torch.Tensor, name: str = "") -> JsonObject:
        if dtype_name(tensor) not in VIEW_BYTES:
            self._refuse(f"a tensor has the dtype {tensor.dtype}, which is not known here")
        return {
            **self._place(tensor, name),
            "dtype": dtype_name(tensor),
            "shape": list(tensor.shape),
            "strides": list(tensor.stride()),
        }

    def view_of(self, tensor: torch.Tensor) -> JsonObject | None:
        """Returns the view of a result; None if it lies in none of the call's buffers, or its dtype is not known."""
        if tensor.is_neg() or tensor.is_conj():
            self.refusal = self.refusal or Failure("not-recordable", message=f"the result is {NEGATED}")
            return None
        is_here = has_no_memory(tensor) and tensor.untyped_storage()._cdata in self._addresses
        return self.view(tensor) if is_here and dtype_name(tensor) in VIEW_BYTES else None

    # ---- launches ---------------------------------------------------------------------------------------

    def _launched(self, launch: TritonLaunch) -> None:
        written = launch.grid[: launch.dimensions]
        if min(written) < 0:
            self._refuse(f"the grid {written} has a size below 0: how many programs are there to be?")
        if launch.grid[0] >= 1 << 31 or max(launch.grid[1:]) >= 1 << 16:
            self._refuse(
                f"the grid {written} is too large: a GPU takes at most 2147483647 x 65535 x 65535 programs. What there "
                "may be most of belongs on axis 0"
            )
        function = launch.source.fn
        path, name = function.fn.__code__.co_filename, function.fn.__name__
        if path != self.refusals.learner_file:
            self._refuse(f"the kernel {name} is launched, which does not stand in the submission")
        self._launches += 1
        if self._launches > MOST_LAUNCHES:
            self._refuse(f"more than {MOST_LAUNCHES} launches in one call")
        step = {"op": "launch", "grid": list(launch.grid), "dimensions": launch.dimensions}
        step |= {"constants": _constants(launch), "line": self.refusals.line(), "no_scratch": launch.no_scratch}
        if not self._in_a_choice:
            launch.kernel.check_threads()
        self.steps.append(step | self._bound(launch))

    def _bound(self, launch: TritonLaunch) -> JsonObject:
        """Returns the kernel's number, and a parameter for each argument of the function in its text."""
        kernel = launch.kernel
        parameters: list[JsonObject] = []
        if kernel.key not in self._numbers:
            self._numbers[kernel.key] = len(self.kernels)
            self.kernels.append({"name": kernel.name, "recipe": kernel.recipe})
        if not self._in_a_choice and not self.refusals.records:
            self.certain.append(self.kernels[self._numbers[kernel.key]])
        for (name, kind), value in zip(launch.source.signature.items(), launch.arguments):
            self._bind(parameters, name, kind, value)
        return {"kernel": self._numbers[kernel.key], "parameters": parameters}

    def _bind(self, parameters: list[JsonObject], name: str, kind: str | tuple[Any, ...], value: Any) -> None:
        """Appends the parameters that one Python argument becomes in the kernel's list: none, one, or several."""
        if is_constant(kind):
            return
        if isinstance(kind, tuple):
            for place, (inner, part) in enumerate(zip(kind, value)):
                self._bind(parameters, f"{name}.{place}", inner, part)
        elif is_pointer(kind):
            pointer = {"buffer": -1, "offset": 0} if value is None else self._pointer(value, name)
            parameters.append({"name": name, "type": "pointer", **pointer})
        elif element := described_element(kind):
            self._describe(parameters, name, element, value)
        elif is_number(kind):
            is_address = isinstance(value, int) and FIRST_ADDRESS <= value < self._next_address
            if is_address:
                self._refuse(f"the argument {name} is a tensor's address, passed as a number: pass the tensor")
            number: float = float(value) if "f" in kind else int(value)
            parameters.append({"name": name, "type": kind, "value": repr(number)})
        else:
            self._refuse(f"the argument {name} has a type that is not known here: {kind}")

    def _pointer(self, value: object, name: str) -> JsonObject:
        value = value.base if hasattr(value, "base") and isinstance(value.base, torch.Tensor) else value  # reinterpret
        if not isinstance(value, torch.Tensor):
            self._refuse(f"the argument {name} is an address, passed as a {type(value).__name__}: pass the tensor")
        place = self._place(value, name)
        if place["buffer"] == -1:
            return place
        return place | {"view": self.view(value, name)}

    def _describe(self, parameters: list[JsonObject], name: str, element: str, descriptor: Any) -> None:
        """Appends a tensor descriptor made by the host, and its sizes and strides: all are arguments in the text."""
        parameter = {"element": element, **described(descriptor)}
        place = self._pointer(descriptor.base, name)
        parameters.append({"name": name, "type": "descriptor", **place, "descriptor": parameter})
        following = sizes_and_strides(name, parameter["shape"], parameter["strides"])
        parameters.extend({"name": name, "type": kind, "value": value} for name, kind, value in following)

    # ---- autotuning -------------------------------------------------------------------------------------

    def _autotuned(self, autotuner: Autotuner, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Records every configuration, as an alternative; the fastest is found where there is a GPU."""
        autotuner.nargs = dict(zip(autotuner.arg_names, args))
        tries = len(autotuner.configs) > 1
        configs = autotuner.prune_configs(kwargs) if tries else autotuner.configs
        left_over = autotuner_hooks.admitted_before(autotuner, kwargs, configs) if tries else []
        if len(configs) + len(left_over) > MOST_CONFIGS:
            self._refuse(f"more than {MOST_CONFIGS} configurations to choose from")
        line = self.refusals.line()
        alternatives = [self._alternative(autotuner, config, args, kwargs) for config in configs]
        alternatives += [
            self._alternative(autotuner, config, args, kwargs) | {"left_over": True} for config in left_over
        ]
        tried = autotuner_hooks.described(autotuner, configs[0], kwargs, self._steps_of) if tries else None
        self.steps.append({"op": "choose", "alternatives": alternatives, "line": line, "tuning": tried})
        autotuner.best_config = configs[0]
        autotuner.nargs = None

    def _alternative(
        self, autotuner: Autotuner, config: Config, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> JsonObject:
        named = {**autotuner.nargs, **kwargs, **config.all_kwargs()}

        def launch() -> None:
            if config.pre_hook is not None:
                config.pre_hook(named)
            autotuner.fn.run(*args, **kwargs, **config.all_kwargs())

        outer, self._in_a_choice = self._in_a_choice, True
        try:
            return {"config": str(config), "steps": self._steps_of(launch)}
        finally:
            self._in_a_choice = outer

    def _steps_of(self, work: Callable[[], None]) -> list[JsonObject]:
        outer, self.steps = self.steps, []
        try:
            work()
            return self.steps
        finally:
            self.steps = outer


@dataclass(frozen=True)
class TensorState:
    """What torch tells of a tensor that no step of a plan may change."""

    memory: int
    bytes: int
    view: tuple[Any, ...]

    @staticmethod
    def of(tensor: torch.Tensor) -> TensorState:
        storage = tensor.untyped_storage()
        view = tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), tensor.dtype, tensor.is_neg()
        return TensorState(storage._cdata, storage.nbytes(), view)

    def other_in(self, now: TensorState) -> str:
        """Returns what differs, as the end of a sentence; "" if nothing does."""
        if now.bytes != self.bytes:
            return f"its memory has {now.bytes} bytes, and had {self.bytes}"
        return "" if now == self else "it shows other memory, or in another order"


def _constants(launch: TritonLaunch) -> list[list[str]]:
    """Returns [name, value] of constants compiled into the kernel: block sizes, arguments that are 1 or None."""
    named = zip(launch.source.signature.items(), launch.arguments)
    return [[name, repr(value)[:100]] for (name, kind), value in named if is_constant(kind)][:MOST_CONSTANTS]


def _bytes_before(tensor: torch.Tensor) -> int:
    """Returns how many bytes of its storage lie before a tensor."""
    return int(tensor.storage_offset()) * tensor.element_size()  # torch may give a symbol, here it is a number


def _is_as(tensor: torch.Tensor, spec: TensorSpec) -> bool:
    """Returns whether the tensor still has the view and the memory of its spec: False where a host function has turned,
    cut, negated or freed it."""
    seen = tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), tensor.untyped_storage().nbytes()
    return seen == (tuple(spec.shape), tuple(spec.strides), spec.offset, max(spec.size, 1)) and not tensor.is_neg()


def _tensor(spec: TensorSpec) -> torch.Tensor:
    storage = torch.empty(max(spec.size, 1), dtype=torch.uint8, device="cuda")
    tensor = torch.empty(0, dtype=getattr(torch, spec.dtype), device="cuda")
    return tensor.set_(storage.untyped_storage(), spec.offset, spec.shape, spec.strides)
