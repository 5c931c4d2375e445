"""A launch plan: what a submission would do on a GPU, read from an untrusted child and accepted or refused.

The rules of a plan are few, and what breaks one is refused with a sentence: pointers are a buffer and an offset inside
it, never an address; numbers are numbers; a kernel's machine code is for the right GPU, takes the parameters that the
plan binds, fits the GPU's limits and keeps no memory of its own between launches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.cubin import BadCubin, Cubin, read_cubin
from grader.fields import build, checked, items
from grader.protocol import DTYPE_BYTES, Failure, GpuModel, ProtocolError, TensorSpec
from grader.reply import Refusal, failure_of

MOST_BUFFERS, MOST_LAUNCHES, MOST_CONFIGS, MOST_KERNELS = 64, 64, 64, 256
MOST_STEPS = 4096  # all alternatives together
MOST_BYTES = 1 << 38  # of all buffers together
MOST_PROGRAMS = ((1 << 31) - 1, (1 << 16) - 1, (1 << 16) - 1)
MOST_THREADS = 1024
NUMBER_BYTES = {
    "i1": 1, "u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "fp16": 2, "bf16": 2, "f32": 4, "fp32": 4, "fp64": 8,
}  # fmt: skip
TENSOR_MAP_BYTES = 128
TMA_TYPES, TMA_FP4, SWIZZLES = range(16), range(13, 16), range(4)  # as the CUDA driver numbers them
MOST_TMA_DIMENSIONS, MOST_TMA_BOX, MOST_TMA_SIZE, MOST_TMA_STRIDE = 5, 256, 1 << 32, 1 << 40
TEXTS = ("ttir", "ttgir", "llir", "ptx")


class BadPlan(Exception):
    """The plan is refused; the message is a sentence for the learner."""


@dataclass
class Buffer:
    name: str
    argument: bool
    bytes: int
    line: int = 0  # where it is allocated


@dataclass
class View:
    """A tensor: `offset` in bytes from the start of a buffer, strides in elements."""

    buffer: int
    offset: int
    dtype: str
    shape: list[int]
    strides: list[int]


@dataclass
class Parameter:
    """One parameter of a kernel: a number (`value`), or a place in a buffer (-1: a null pointer)."""

    name: str
    type: str  # "pointer", "tensormap" or one of NUMBER_BYTES
    value: str = ""
    buffer: int = -1
    offset: int = 0
    map: TensorMap | None = None

    @property
    def bytes(self) -> int:
        return {"pointer": 8, "tensormap": TENSOR_MAP_BYTES}.get(self.type) or NUMBER_BYTES[self.type]


@dataclass
class TensorMap:
    """What the driver makes a TMA descriptor of."""

    data_type: int
    element_bytes: int
    swizzle: int
    box: list[int]
    shape: list[int]
    strides: list[int]
    nan_padding: bool


@dataclass
class Kernel:
    """Machine code and what a launch of it needs."""

    name: str
    shared: int  # bytes of shared memory per block
    warps: int
    stages: int
    ctas: int  # blocks per cluster
    cooperative: bool
    dependent: bool  # may start before the launch before it has ended
    code: bytes = b""
    cubin: Cubin = field(default_factory=Cubin)
    texts: dict[str, str] = field(default_factory=dict)  # ttir, ttgir, llir, ptx, as far as asked for


@dataclass
class PlannedLaunch:
    kernel: int
    grid: list[int]
    parameters: list[Parameter]
    line: int = 0
    constants: dict[str, str] = field(default_factory=dict)  # compiled into the kernel, as Python writes them


@dataclass
class Fill:
    view: View
    value: float | int
    line: int = 0


@dataclass
class Alternative:
    """One configuration of an autotuned launch; `error` says why it cannot run."""

    config: str
    error: str
    steps: list[Step]


@dataclass
class Choice:
    alternatives: list[Alternative]
    line: int = 0


Step = PlannedLaunch | Fill | Choice


@dataclass
class Plan:
    """`error` and `refusals` say what kept the child from a whole plan."""

    buffers: list[Buffer] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    result: View | None = None
    error: Failure | None = None
    refusals: list[Refusal] = field(default_factory=list)

    def launches(self, config: int = 0) -> Iterator[PlannedLaunch]:
        """With the `config`-th alternative of each choice, modulo their number."""
        for step in steps_with(self.steps, config):
            if isinstance(step, PlannedLaunch):
                yield step

    @property
    def configs(self) -> int:
        """How many alternatives the largest choice has; 1 where nothing is to choose."""
        return max((len(step.alternatives) for step in self.steps if isinstance(step, Choice)), default=1)

    @property
    def usable_configs(self) -> list[int]:
        """The configurations that can run: Triton leaves out those that a GPU has no room for."""
        choices = [step for step in self.steps if isinstance(step, Choice)]
        return [
            config
            for config in range(self.configs)
            if not any(choice.alternatives[config % len(choice.alternatives)].error for choice in choices)
        ]


def steps_with(steps: list[Step], config: int) -> Iterator[PlannedLaunch | Fill]:
    for step in steps:
        if isinstance(step, Choice):
            yield from steps_with(step.alternatives[config % len(step.alternatives)].steps, config)
        else:
            yield step


# ---- reading ------------------------------------------------------------------------------------------------------


def read_plan(header: dict, blob: bytes, arguments: list[TensorSpec], model: GpuModel) -> Plan:
    """Raises ProtocolError for what a sound child would not have sent, BadPlan for what a submission must not do."""
    if header.get("kind") != "recorded":
        raise ProtocolError("an answer of the wrong kind")
    plan = Plan(error=failure_of(header.get("error")))
    plan.refusals = items(header, "refusals", lambda data: build(Refusal, data))
    if plan.error is not None or plan.refusals:
        return plan
    plan.buffers = items(header, "buffers", lambda data: build(Buffer, data))
    plan.kernels = items(header, "kernels", lambda data: _kernel(data, blob))
    plan.steps = _steps(header, "steps", iter(range(MOST_STEPS)))
    if header.get("result") is not None:
        plan.result = _view(header["result"])
    accept(plan, arguments, model)
    return plan


def _kernel(data: object, blob: bytes) -> Kernel:
    kernel = build(Kernel, data)
    parts = data.get("parts")
    if not isinstance(parts, dict):
        raise ProtocolError("a kernel without its parts")
    kernel.code = _part(parts.get("cubin"), blob)
    names = [name for name in TEXTS if name in parts]
    kernel.texts = {name: _part(parts[name], blob).decode("utf-8", "replace") for name in names}
    return kernel


def _part(place: object, blob: bytes) -> bytes:
    start, size = checked(place, "list[int]", "the place of a part") if _is_pair(place) else (-1, 0)
    if not 0 <= start <= start + size <= len(blob):
        raise ProtocolError("a kernel's part lies outside of the frame")
    return blob[start : start + size]


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2


def _steps(header: dict, key: str, left: Iterator[int], depth: int = 0) -> list[Step]:
    """`left` yields as often as there may be steps: reading a flood would take minutes."""
    if depth > 2:
        raise ProtocolError("choices inside of choices")
    return items(header, key, lambda data: _step(data, left, depth))


def _step(data: object, left: Iterator[int], depth: int) -> Step:
    if next(left, None) is None:
        raise BadPlan(f"more than {MOST_STEPS} launches and fills in all configurations together")
    if not isinstance(data, dict):
        raise ProtocolError("a step is not an object")
    line = checked(data.get("line", 0), "int", "line")
    if data.get("op") == "launch":
        kernel, grid = checked(data.get("kernel"), "int", "kernel"), checked(data.get("grid"), "list[int]", "grid")
        constants = dict(items(data, "constants", _constant))
        return PlannedLaunch(kernel, grid, items(data, "parameters", _parameter), line, constants)
    if data.get("op") == "fill":
        return Fill(_view(data.get("view")), _number(data.get("value")), line)
    if data.get("op") == "choose":
        return Choice(items(data, "alternatives", lambda item: _alternative(item, left, depth)), line)
    raise ProtocolError("a step of an unknown kind")


def _alternative(data: object, left: Iterator[int], depth: int) -> Alternative:
    if not isinstance(data, dict):
        raise ProtocolError("an alternative is not an object")
    config, error = (checked(data.get(key), "str", key) for key in ("config", "error"))
    return Alternative(config, error, _steps(data, "steps", left, depth + 1))


def _constant(data: object) -> tuple[str, str]:
    if not isinstance(data, list) or len(data) != 2:
        raise ProtocolError("a constant is a name and a value")
    return checked(data[0], "str", "name"), checked(data[1], "str", "value")


def _parameter(data: object) -> Parameter:
    parameter = build(Parameter, data)
    if parameter.type == "tensormap":
        parameter.map = build(TensorMap, data)
    elif parameter.type in NUMBER_BYTES:
        _accept_number(parameter.type, _number(parameter.value))
    elif parameter.type != "pointer":
        raise ProtocolError("a parameter of an unknown type")
    return parameter


def _view(data: object) -> View:
    view = build(View, data)
    if view.dtype not in DTYPE_BYTES or len(view.shape) != len(view.strides) or min(view.shape, default=0) < 0:
        raise ProtocolError("a view of an unknown dtype, or with a wrong shape")
    return view


def _number(text: object) -> float | int:
    """Numbers cross as Python writes them, so that inf and nan, which JSON lacks, are numbers like others."""
    if not isinstance(text, str) or len(text) > 40:
        raise ProtocolError("a number was expected")
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ProtocolError("a number was expected") from None


# ---- accepting ----------------------------------------------------------------------------------------------------


def accept(plan: Plan, arguments: list[TensorSpec], model: GpuModel) -> None:
    """Raises ProtocolError or BadPlan, and reads the kernels' machine code on the way."""
    _accept_buffers(plan, arguments)
    if len(plan.kernels) > MOST_KERNELS:
        raise BadPlan(f"more than {MOST_KERNELS} kernels are compiled for one call")
    for kernel in plan.kernels:
        _accept_kernel(kernel, model)
    _accept_steps(plan, plan.steps)
    if plan.result is not None:
        _accept_view(plan, plan.result)


def _accept_number(kind: str, value: float | int) -> None:
    """Only what fits crosses into a kernel's parameters: an integer is no fraction and has its bits."""
    if kind[0] not in "iu":
        return
    bits = 1 if kind[1:] == "1" else 8 * NUMBER_BYTES[kind]
    signed = kind[0] == "i" and bits > 1
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if not isinstance(value, int) or not low <= value < high:
        raise ProtocolError(f"a number does not fit its parameter's type {kind}")


def _accept_buffers(plan: Plan, arguments: list[TensorSpec]) -> None:
    given = [buffer for buffer in plan.buffers if buffer.argument]
    if [(buffer.name, buffer.bytes) for buffer in given] != [(spec.name, spec.size) for spec in arguments]:
        raise ProtocolError("the plan's arguments are not those of the request")
    if len(plan.buffers) > MOST_BUFFERS or any(buffer.bytes < 0 for buffer in plan.buffers):
        raise BadPlan(f"more than {MOST_BUFFERS} tensors are allocated in one call")
    if sum(buffer.bytes for buffer in plan.buffers) > MOST_BYTES:
        raise BadPlan(f"more than {MOST_BYTES >> 30} GiB are allocated in one call")


def _accept_kernel(kernel: Kernel, model: GpuModel) -> None:
    try:
        kernel.cubin = cubin = read_cubin(kernel.code)
    except BadCubin as error:
        raise BadPlan(f"the machine code of {kernel.name} cannot be read: {error}") from None
    if cubin.arch != model.arch or kernel.name not in cubin.kernels:
        raise BadPlan(f"the machine code does not hold {kernel.name} for {model.target}")
    if cubin.writable_globals or cubin.undefined:
        what = "keeps memory between launches" if cubin.writable_globals else f"calls {cubin.undefined[0]}"
        raise BadPlan(f"the machine code of {kernel.name} {what}, which Triton's never does")
    if not 1 <= kernel.warps <= MOST_THREADS // 32 or not 1 <= kernel.ctas <= 16:
        raise BadPlan(f"{kernel.name} asks for {kernel.warps} warps in clusters of {kernel.ctas}")
    if not 0 <= kernel.shared <= model.shared_per_block:
        raise BadPlan(
            f"{kernel.name} needs {kernel.shared} bytes of shared memory; a block of {model.name} has at most "
            f"{model.shared_per_block}"
        )


def _accept_steps(plan: Plan, steps: list[Step]) -> None:
    if len(steps) > MOST_LAUNCHES:
        raise BadPlan(f"more than {MOST_LAUNCHES} launches and fills in one call")
    for step in steps:
        if isinstance(step, Fill):
            _accept_view(plan, step.view)
        elif isinstance(step, PlannedLaunch):
            _accept_launch(plan, step)
        else:
            if not 1 <= len(step.alternatives) <= MOST_CONFIGS:
                raise BadPlan(f"an autotuned kernel has 1 to {MOST_CONFIGS} configurations")
            for alternative in step.alternatives:
                _accept_steps(plan, alternative.steps)


def _accept_view(plan: Plan, view: View) -> None:
    if not 0 <= view.buffer < len(plan.buffers) or view.offset < 0 or min(view.strides, default=0) < 0:
        raise ProtocolError("a view of no buffer")
    last = sum((size - 1) * stride for size, stride in zip(view.shape, view.strides))
    end = view.offset + (last + 1) * DTYPE_BYTES[view.dtype] if math.prod(view.shape) else view.offset
    if end > max(plan.buffers[view.buffer].bytes, 1):
        raise ProtocolError("a view reaches past its buffer")


def _accept_launch(plan: Plan, launch: PlannedLaunch) -> None:
    if not 0 <= launch.kernel < len(plan.kernels):
        raise ProtocolError("a launch of no kernel")
    kernel, grid = plan.kernels[launch.kernel], launch.grid
    if len(grid) != 3 or not all(1 <= size <= most for size, most in zip(grid, MOST_PROGRAMS)):
        raise BadPlan(f"the grid {tuple(grid)} of {kernel.name} is not possible")
    if [parameter.bytes for parameter in launch.parameters] != kernel.cubin.parameters:
        raise ProtocolError("a launch does not bind the parameters that its machine code takes")
    for parameter in launch.parameters:
        if parameter.type in ("pointer", "tensormap") and parameter.buffer != -1:
            inside = 0 <= parameter.buffer < len(plan.buffers)
            if not inside or not 0 <= parameter.offset <= plan.buffers[parameter.buffer].bytes:
                raise ProtocolError("a pointer outside of its buffer")
        if parameter.map is not None:
            _accept_map(plan, parameter, parameter.map)


def _accept_map(plan: Plan, parameter: Parameter, map: TensorMap) -> None:
    dimensions = len(map.shape)
    sizes = (
        1 <= dimensions <= MOST_TMA_DIMENSIONS
        and len(map.box) == len(map.strides) == dimensions
        and all(1 <= size <= MOST_TMA_SIZE for size in map.shape)
        and all(1 <= size <= MOST_TMA_BOX for size in map.box)
        and all(0 <= stride < MOST_TMA_STRIDE for stride in map.strides)
    )
    kinds = map.data_type in TMA_TYPES and map.swizzle in SWIZZLES and map.element_bytes in (1, 2, 4, 8)
    if not sizes or not kinds or parameter.buffer == -1:
        raise ProtocolError("a tensor map that no GPU takes")
    per_byte = 2 if map.data_type in TMA_FP4 else 1  # two numbers of 4 bits in a byte
    shape = [*map.shape[:-1], -(-map.shape[-1] // per_byte)]
    last = sum((size - 1) * stride for size, stride in zip(shape, map.strides))
    if parameter.offset + (last + 1) * map.element_bytes > plan.buffers[parameter.buffer].bytes:
        raise ProtocolError("a tensor map reaches past its buffer")
