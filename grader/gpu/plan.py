"""A launch plan: the actions of a submission on a GPU. It is accepted or refused, sent to a replay process, and read.

A plan that breaks one of a few rules is refused with a sentence. Pointers are a buffer and an offset inside it, never
an address; numbers are numbers; a kernel's machine code is for the right GPU, takes the parameters that the plan binds,
fits the GPU's limits and keeps no memory between launches.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from grader.wire.cubin import BadCubin, Cubin, read_cubin
from grader.wire.fields import build, checked, items
from grader.wire.frames import ProtocolError
from grader.wire.launch_abi import MOST_THREADS, NUMBER_BYTES, POINTER_BYTES, TENSOR_MAP_BYTES, WARP_SIZE
from grader.wire.messages import VIEW_BYTES, Failure, GpuModel, TensorSpec
from grader.wire.recorded_parts import (
    Alternative,
    BadPlan,
    Choice,
    Fill,
    PlannedBuffer,
    PlannedLaunch,
    PlannedView,
    PythonNumbers,
    Sequence,
    Step,
    StepReader,
    accept_buffers,
    accept_grid,
    accept_kernels,
    accept_number,
    accept_place,
    accept_steps,
    accept_view,
    read_number,
    read_part,
    read_view,
    steps_with,
)
from grader.wire.reply import Refusal

if TYPE_CHECKING:
    from grader.course.exercise import Exercise

__all__ = [
    "Alternative", "BadPlan", "Choice", "Fill", "PackedPlan", "Plan", "PlannedBuffer", "PlannedKernel", "PlannedLaunch",
    "PlannedParameter", "PlannedView", "PythonNumbers", "Step", "TensorMap", "least_bytes", "read_plan", "sent",
    "steps_with",
]  # fmt: skip

TMA_TYPES, TMA_FP4, SWIZZLES = range(16), range(13, 16), range(4)  # as the CUDA driver numbers them
MOST_TMA_DIMENSIONS, MOST_TMA_BOX, MOST_TMA_SIZE, MOST_TMA_STRIDE = 5, 256, 1 << 32, 1 << 40
TEXTS = ("ttir", "ttgir", "llir", "ptx")
SENT = ("name", "shared", "warps", "stages", "ctas", "cooperative", "dependent")  # of a kernel, besides its code


@dataclass
class PlannedParameter:
    """A parameter of a kernel: a number, as text (`value`), or an `offset` in bytes into a `buffer` (-1: null pointer).

    A TMA descriptor has both a place in a buffer and a `map`.
    """

    name: str
    type: str  # "pointer", "tensormap" or one of NUMBER_BYTES
    value: str = ""
    buffer: int = -1
    offset: int = 0
    map: TensorMap | None = None

    @property
    def bytes(self) -> int:
        return {"pointer": POINTER_BYTES, "tensormap": TENSOR_MAP_BYTES}.get(self.type) or NUMBER_BYTES[self.type]


@dataclass
class TensorMap:
    """The values of which the driver makes a TMA descriptor. `strides`: in elements; the last dimension is the fastest.

    `data_type` and `swizzle` are numbered as by the CUDA driver. `nan_padding`: NaN instead of 0 outside of the tensor.
    """

    data_type: int
    element_bytes: int
    swizzle: int
    box: list[int]
    shape: list[int]
    strides: list[int]
    nan_padding: bool


@dataclass
class PlannedKernel:
    """A kernel's machine code, and the settings that a launch of it needs."""

    name: str
    shared: int  # bytes of shared memory per block
    warps: int
    stages: int
    ctas: int  # blocks per cluster
    cooperative: bool
    dependent: bool  # may start before the previous launch has ended
    code: bytes = b""
    cubin: Cubin = field(default_factory=Cubin)
    texts: dict[str, str] = field(default_factory=dict)  # ttir, ttgir, llir, ptx, as far as requested


@dataclass
class Plan(Sequence):
    """A launch plan. `error` and `refusals` say why there is no whole plan; then the other fields are empty."""

    buffers: list[PlannedBuffer] = field(default_factory=list)
    kernels: list[PlannedKernel] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    results: dict[str, PlannedView] = field(default_factory=dict)  # by name
    error: Failure | None = None
    refusals: list[Refusal] = field(default_factory=list)


@dataclass
class PackedPlan:
    """A launch plan, with the header and the blob in which it is sent, and the call's tensor `arguments`."""

    plan: Plan
    header: dict
    blob: bytes
    arguments: list[TensorSpec]

    @staticmethod
    def of(plan: Plan, arguments: list[TensorSpec]) -> PackedPlan:
        return PackedPlan(plan, *sent(plan), arguments)


def least_bytes(plan: Plan, arguments: list[TensorSpec], exercise: Exercise) -> int:
    """Returns the least bytes that a call moves: it reads each input element once, writes each result element once.

    An argument that the call only fills, or of which it need not read all, does not count as an input.
    """
    filled = set(exercise.written) - set(exercise.updates) | set(exercise.unread)
    read = (math.prod(spec.shape) * VIEW_BYTES[spec.dtype] for spec in arguments if spec.name not in filled)
    written = (math.prod(view.shape) * VIEW_BYTES[view.dtype] for view in plan.results.values())
    return sum(read) + sum(written)


# ---- sending and reading ------------------------------------------------------------------------------------------


def sent(plan: Plan) -> tuple[dict, bytes]:
    """Returns the header and the blob of a frame that read_plan reads; kernels' texts are not sent."""
    kernels, blob = [], b""
    for kernel in plan.kernels:
        fields = {name: getattr(kernel, name) for name in SENT}
        kernels.append(fields | {"code": [len(blob), len(kernel.code)]})
        blob += kernel.code
    header: dict = {"buffers": [asdict(buffer) for buffer in plan.buffers], "kernels": kernels}
    header["steps"] = [_sent(step) for step in plan.steps]
    header["results"] = [[name, asdict(view)] for name, view in plan.results.items()]
    return header, blob


def _sent(step: Step) -> dict:
    if isinstance(step, Choice):
        alternatives = [{**vars(one), "steps": [_sent(inner) for inner in one.steps]} for one in step.alternatives]
        return {"op": "choose", "alternatives": alternatives, "line": step.line}
    if isinstance(step, PlannedLaunch):
        parameters = [_sent_parameter(parameter) for parameter in step.parameters]
        return {"op": "launch", **vars(step), "parameters": parameters, "constants": list(step.constants.items())}
    if isinstance(step, PythonNumbers):
        return {"op": "data", "view": asdict(step.view), "bytes": step.bytes.hex(), "line": step.line}
    return {"op": "fill", "view": asdict(step.view), "value": repr(step.value), "line": step.line}


def _sent_parameter(parameter: PlannedParameter) -> dict:
    return {**vars(parameter), **(asdict(parameter.map) if parameter.map else {}), "map": None}


def read_plan(header: dict, blob: bytes, arguments: list[TensorSpec], model: GpuModel) -> Plan:
    """Returns the plan of a frame. Raises ProtocolError and BadPlan.

    ProtocolError: for a frame that `sent` would not have made; BadPlan: for a plan that breaks a rule for submissions.
    """
    plan = Plan()
    plan.buffers = items(header, "buffers", lambda data: build(PlannedBuffer, data))
    plan.kernels = items(header, "kernels", lambda data: _kernel(data, blob))
    plan.steps = StepReader(_parameter).steps(header)
    plan.results = dict(items(header, "results", _result))
    accept(plan, arguments, model)
    return plan


def _result(data: object) -> tuple[str, PlannedView]:
    if not isinstance(data, list) or len(data) != 2:
        raise ProtocolError("a result is no pair")
    return checked(data[0], "str", "name"), read_view(data[1])


def _kernel(data: object, blob: bytes) -> PlannedKernel:
    if not isinstance(data, dict):
        raise ProtocolError("a kernel is not an object")
    kernel = build(PlannedKernel, {name: data[name] for name in SENT if name in data})
    kernel.code = read_part(data.get("code"), blob)
    return kernel


def _parameter(data: object) -> PlannedParameter:
    fields = {name: value for name, value in data.items() if name != "map"} if isinstance(data, dict) else data
    parameter = build(PlannedParameter, fields)
    if parameter.type == "tensormap":
        parameter.map = build(TensorMap, data)
    elif parameter.type in NUMBER_BYTES:
        accept_number(parameter.type, read_number(parameter.value))
    elif parameter.type != "pointer":
        raise ProtocolError("a parameter of an unknown type")
    return parameter


# ---- accepting ----------------------------------------------------------------------------------------------------


def accept(plan: Plan, arguments: list[TensorSpec], model: GpuModel) -> None:
    """Raises ProtocolError or BadPlan where a plan breaks a rule; sets each kernel's `cubin` from its machine code."""
    accept_buffers(plan.buffers, arguments)
    accept_kernels(plan.kernels)
    for kernel in plan.kernels:
        _accept_kernel(kernel, model)
    accept_steps(plan.steps, plan.buffers, lambda launch: _accept_launch(plan, launch))
    for view in plan.results.values():
        accept_view(plan.buffers, view)


def _accept_kernel(kernel: PlannedKernel, model: GpuModel) -> None:
    try:
        kernel.cubin = cubin = read_cubin(kernel.code)
    except BadCubin as error:
        raise BadPlan(f"the machine code of {kernel.name} cannot be read: {error}") from None
    if cubin.arch != model.arch or kernel.name not in cubin.kernels:
        raise BadPlan(f"the machine code does not hold {kernel.name} for {model.target}")
    if cubin.writable_globals or cubin.undefined:
        what = "keeps memory between launches" if cubin.writable_globals else f"calls {cubin.undefined[0]}"
        raise BadPlan(f"the machine code of {kernel.name} {what}, which Triton's never does")
    if not 1 <= kernel.warps <= MOST_THREADS // WARP_SIZE or not 1 <= kernel.ctas <= 16:
        raise BadPlan(f"{kernel.name} asks for {kernel.warps} warps in clusters of {kernel.ctas}")
    if not 0 <= kernel.shared <= model.shared_per_block:
        raise BadPlan(
            f"{kernel.name} needs {kernel.shared} bytes of shared memory; a block of {model.name} has at most "
            f"{model.shared_per_block}"
        )


def _accept_launch(plan: Plan, launch: PlannedLaunch) -> None:
    accept_grid(launch, plan.kernels)
    if [parameter.bytes for parameter in launch.parameters] != plan.kernels[launch.kernel].cubin.parameters:
        raise ProtocolError("a launch does not bind the parameters that its machine code takes")
    for parameter in launch.parameters:
        if parameter.type in ("pointer", "tensormap") and parameter.buffer != -1:
            accept_place(plan.buffers, parameter.buffer, parameter.offset)
        if parameter.map is not None:
            _accept_map(plan, parameter, parameter.map)


def _accept_map(plan: Plan, parameter: PlannedParameter, map: TensorMap) -> None:
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
