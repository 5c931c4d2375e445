"""The parts of recorded calls, and the rules that hold for each: memory by buffer and offset, never an address.

They are read from an untrusted child. ProtocolError is raised for data that a sound child would not have sent, BadPlan
with a sentence for what a submission must not do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field
from typing import Any

from grader.wire.fields import build, checked, items
from grader.wire.frames import JsonObject, ProtocolError
from grader.wire.launch_abi import NUMBER_BYTES
from grader.wire.messages import VIEW_BYTES, TensorSpec

MOST_BUFFERS, MOST_LAUNCHES, MOST_CONFIGS, MOST_KERNELS = 64, 64, 64, 256
MOST_STEPS = 4096  # all alternatives together
MOST_BYTES = 1 << 38  # of all buffers together
MOST_PROGRAMS = ((1 << 31) - 1, (1 << 16) - 1, (1 << 16) - 1)
MOST_DATA_BYTES = 4096  # of one tensor of numbers made in Python


class BadPlan(Exception):
    """The plan is refused; the message is a sentence for the learner."""


@dataclass
class PlannedBuffer:
    name: str
    argument: bool
    bytes: int
    line: int = 0  # where it is allocated


@dataclass
class PlannedView:
    """A tensor: `offset` in bytes from the start of a buffer, strides in elements."""

    buffer: int
    offset: int
    dtype: str
    shape: list[int]
    strides: list[int]


@dataclass
class Returned:
    """The result of the entry, or an item of the list or tuple that it returned.

    A tensor on the GPU has a `view` if it lies in this call's buffers and its dtype is one of VIEW_BYTES. A tensor kept
    from an earlier call has none, and `shares_with` says so.
    """

    type: str = ""  # "Tensor", "tuple", "NoneType" ...
    device: str = ""  # "cuda" for a tensor on the GPU
    dtype: str = ""
    same_as: str = ""  # the argument that it is
    shares_with: str = ""  # the argument whose memory it shares, or "the result of an earlier call"
    view: PlannedView | None = None
    line: int = 0  # where its memory was allocated
    items: list[Returned] = field(default_factory=list)


@dataclass
class Fill:
    view: PlannedView
    value: float | int
    line: int = 0


@dataclass
class PythonNumbers:
    """A few numbers made in Python: the elements of a contiguous view, as they lie in memory."""

    view: PlannedView
    bytes: bytes
    line: int = 0


@dataclass
class PlannedLaunch:
    kernel: int
    grid: list[int]
    parameters: list[Any]  # of the class that the StepReader's `parameter` makes
    line: int = 0
    constants: dict[str, str] = field(default_factory=dict)  # compiled into the kernel, as Python writes them
    dimensions: int = 3  # how many numbers of the grid are written in the file
    no_scratch: str = ""  # why there is no memory for descriptors that a kernel makes; "" if there is


@dataclass
class Alternative:
    """A configuration of an autotuned launch; `error` says why it cannot run."""

    config: str
    error: str
    steps: list[Step]
    left_over: bool = False  # pruned away for this call; an earlier call with the same key may have chosen it


@dataclass
class KeyPart:
    """A name in an autotuned kernel's key. kind: "value", "tensor", or "unknown" where no argument has this name."""

    name: str
    kind: str
    value: str = ""


@dataclass
class Tuning:
    """Triton's work around the trial runs of the first call with a key, which choose a configuration."""

    key: list[KeyPart] = field(default_factory=list)
    listed: int = 0  # configurations, before any is pruned for this call
    restored: list[str] = field(default_factory=list)  # arguments of the kernel, put back after each trial
    zeroed: list[str] = field(default_factory=list)  # arguments of the kernel, cleared by `before` and `after`
    before: list[Step] = field(default_factory=list)  # each trial
    after: list[Step] = field(default_factory=list)  # each trial, or all of them
    fixed_grid: bool = False  # the same numbers for all configurations, not a function of them


@dataclass
class Choice:
    alternatives: list[Alternative]
    line: int = 0
    tuning: Tuning | None = None  # None: nothing is tried, or this belongs to a launch plan


Step = PlannedLaunch | Fill | PythonNumbers | Choice


class Sequence:
    """The steps of a call, some of which may be choices between configurations."""

    steps: list[Step]

    def launches(self, config: int = 0) -> Iterator[PlannedLaunch]:
        """Yields the launches with the `config`-th alternative of each choice, modulo their number."""
        for step in steps_with(self.steps, config):
            if isinstance(step, PlannedLaunch):
                yield step

    @property
    def configs(self) -> int:
        """The number of alternatives of the largest choice; 1 where there is nothing to choose."""
        return max((len(choice.alternatives) for choice in self.choices), default=1)

    def config_text(self, config: int) -> str:
        """Returns the settings of a configuration, as Triton writes them: "BLOCK_N: 256, num_warps: 4"."""
        chosen = (choice.alternatives[config % len(choice.alternatives)] for choice in self.choices)
        texts = dict.fromkeys(alternative.config for alternative in chosen)
        settings = [setting for text in texts for setting in text.split(", ")]
        return ", ".join(setting for setting in settings if not setting.endswith(": None") and setting != "num_ctas: 1")

    @property
    def choices(self) -> list[Choice]:
        return [step for step in self.steps if isinstance(step, Choice)]

    @property
    def usable_configs(self) -> list[int]:
        """The numbers of the configurations that can run: Triton leaves out any that a GPU has no room for."""
        return [config for config in range(self.configs) if not self.error_of(config)]

    def error_of(self, config: int) -> str:
        """Returns why this configuration cannot run; "" if it can."""
        chosen = (choice.alternatives[config % len(choice.alternatives)] for choice in self.choices)
        return next((alternative.error for alternative in chosen if alternative.error), "")


def steps_with(steps: list[Step], config: int) -> Iterator[PlannedLaunch | Fill | PythonNumbers]:
    for step in steps:
        if isinstance(step, Choice):
            yield from steps_with(step.alternatives[config % len(step.alternatives)].steps, config)
        else:
            yield step


# ---- reading ------------------------------------------------------------------------------------------------------


class StepReader:
    """Reads a call's steps. `parameter` reads each parameter of a launch."""

    def __init__(self, parameter: Callable[[object], Any]) -> None:
        self.parameter = parameter
        self._left = iter(range(MOST_STEPS))  # reading a flood would take minutes

    def steps(self, data: JsonObject, key: str = "steps", depth: int = 0) -> list[Step]:
        if depth > 2:
            raise ProtocolError("choices inside of choices")
        return items(data, key, lambda item: self._step(item, depth))

    def _step(self, data: object, depth: int) -> Step:
        if next(self._left, None) is None:
            raise BadPlan(f"more than {MOST_STEPS} launches and fills in all configurations together")
        if not isinstance(data, dict):
            raise ProtocolError("a step is not an object")
        line = checked(data.get("line", 0), "int", "line")
        if data.get("op") == "launch":
            return self._launch(data, line)
        if data.get("op") == "fill":
            return Fill(read_view(data.get("view")), read_number(data.get("value")), line)
        if data.get("op") == "data":
            return PythonNumbers(read_view(data.get("view")), _bytes(data.get("bytes")), line)
        if data.get("op") == "choose":
            alternatives = items(data, "alternatives", lambda item: self._alternative(item, depth))
            return Choice(alternatives, line, self._tuning(data.get("tuning"), depth))
        raise ProtocolError("a step of an unknown kind")

    def _launch(self, data: JsonObject, line: int) -> PlannedLaunch:
        kernel, grid = checked(data.get("kernel"), "int", "kernel"), checked(data.get("grid"), "list[int]", "grid")
        dimensions = checked(data.get("dimensions", 3), "int", "dimensions")
        constants, parameters = dict(items(data, "constants", _constant)), items(data, "parameters", self.parameter)
        no_scratch = checked(data.get("no_scratch", ""), "str", "no_scratch")
        return PlannedLaunch(kernel, grid, parameters, line, constants, dimensions, no_scratch)

    def _alternative(self, data: object, depth: int) -> Alternative:
        if not isinstance(data, dict):
            raise ProtocolError("an alternative is not an object")
        config, error = (checked(data.get(key, ""), "str", key) for key in ("config", "error"))
        left_over = checked(data.get("left_over", False), "bool", "left_over")
        return Alternative(config, error, self.steps(data, depth=depth + 1), left_over)

    def _tuning(self, data: object, depth: int) -> Tuning | None:
        if not isinstance(data, dict):
            return None
        tuning = build(Tuning, {name: data.get(name) for name in ("listed", "restored", "zeroed", "fixed_grid")})
        tuning.key = items(data, "key", lambda item: build(KeyPart, item))
        tuning.before, tuning.after = (self.steps(data, key, depth + 1) for key in ("before", "after"))
        return tuning


def read_part(place: object, blob: bytes) -> bytes:
    """Returns the bytes of a frame's blob at [start, size]. Raises ProtocolError."""
    is_pair = isinstance(place, list) and len(place) == 2
    start, size = checked(place, "list[int]", "the place of a part") if is_pair else (-1, 0)
    if not 0 <= start <= start + size <= len(blob):
        raise ProtocolError("a kernel's part lies outside of the frame")
    return blob[start : start + size]


def read_view(data: object) -> PlannedView:
    view = build(PlannedView, data)
    if view.dtype not in VIEW_BYTES or len(view.shape) != len(view.strides) or min(view.shape, default=0) < 0:
        raise ProtocolError("a view of an unknown dtype, or with a wrong shape")
    return view


def read_number(text: object) -> float | int:
    """Returns a number that crossed as Python writes it, since JSON lacks inf and nan. Raises ProtocolError."""
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


def _constant(data: object) -> tuple[str, str]:
    if not isinstance(data, list) or len(data) != 2:
        raise ProtocolError("a constant is a name and a value")
    return checked(data[0], "str", "name"), checked(data[1], "str", "value")


def _bytes(text: object) -> bytes:
    """Returns the bytes that a text of two hexadecimal digits each gives. Raises ProtocolError."""
    if not isinstance(text, str) or len(text) > 2 * MOST_DATA_BYTES:
        raise ProtocolError("a few bytes were expected")
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ProtocolError("a few bytes were expected") from None


# ---- writing ------------------------------------------------------------------------------------------------------


def fields_of(part: Any) -> JsonObject:
    """Returns the fields of a part of a call, as a StepReader reads them; parts within it are left to the next call."""
    if isinstance(part, PlannedLaunch):
        return {**vars(part), "op": "launch", "constants": list(part.constants.items())}
    if isinstance(part, Fill):
        return {**vars(part), "op": "fill", "value": repr(part.value)}
    if isinstance(part, PythonNumbers):
        return {**vars(part), "op": "data", "bytes": part.bytes.hex()}
    return {**vars(part), "op": "choose"} if isinstance(part, Choice) else vars(part)


# ---- accepting ----------------------------------------------------------------------------------------------------


def accept_number(kind: str, value: float | int) -> None:
    """Raises ProtocolError unless a number fits its parameter's type: integers have no fraction, and their bits."""
    if kind[0] not in "iu":
        return
    bits = 1 if kind[1:] == "1" else 8 * NUMBER_BYTES[kind]
    signed = kind[0] == "i" and bits > 1
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if not isinstance(value, int) or not low <= value < high:
        raise ProtocolError(f"a number does not fit its parameter's type {kind}")


def accept_buffers(buffers: list[PlannedBuffer], arguments: list[TensorSpec]) -> None:
    given = [buffer for buffer in buffers if buffer.argument]
    if [(buffer.name, buffer.bytes) for buffer in given] != [(spec.name, spec.size) for spec in arguments]:
        raise ProtocolError("the plan's arguments are not those of the request")
    if len(buffers) > MOST_BUFFERS or any(buffer.bytes < 0 for buffer in buffers):
        raise BadPlan(f"more than {MOST_BUFFERS} tensors are allocated in one call")
    if sum(buffer.bytes for buffer in buffers) > MOST_BYTES:
        raise BadPlan(f"more than {MOST_BYTES >> 30} GiB are allocated in one call")


def accept_kernels(kernels: Sized) -> None:
    if len(kernels) > MOST_KERNELS:
        raise BadPlan(f"more than {MOST_KERNELS} kernels are compiled for one call")


def accept_steps(
    steps: list[Step], buffers: list[PlannedBuffer], accept_launch: Callable[[PlannedLaunch], None]
) -> None:
    if len(steps) > MOST_LAUNCHES:
        raise BadPlan(f"more than {MOST_LAUNCHES} launches and fills in one call")
    for step in steps:
        if isinstance(step, (Fill, PythonNumbers)):
            accept_view(buffers, step.view)
        elif isinstance(step, PlannedLaunch):
            accept_launch(step)
        else:
            if not 1 <= len(step.alternatives) <= MOST_CONFIGS:
                raise BadPlan(f"an autotuned kernel has 1 to {MOST_CONFIGS} configurations")
            for alternative in step.alternatives:
                accept_steps(alternative.steps, buffers, accept_launch)
            if step.tuning is not None:
                accept_steps(step.tuning.before + step.tuning.after, buffers, accept_launch)
        if (
            isinstance(step, PythonNumbers)
            and len(step.bytes) != math.prod(step.view.shape) * VIEW_BYTES[step.view.dtype]
        ):
            raise ProtocolError("numbers made in Python that do not fit their view")


def launches_in(steps: list[Step]) -> Iterator[PlannedLaunch]:
    """Yields the launches among steps, of all configurations of autotuned kernels."""
    for step in steps:
        if isinstance(step, PlannedLaunch):
            yield step
        elif isinstance(step, Choice):
            for alternative in step.alternatives:
                yield from launches_in(alternative.steps)


def accept_view(buffers: list[PlannedBuffer], view: PlannedView) -> None:
    if not 0 <= view.buffer < len(buffers) or view.offset < 0 or min(view.strides, default=0) < 0:
        raise ProtocolError("a view of no buffer")
    last = sum((size - 1) * stride for size, stride in zip(view.shape, view.strides))
    end = view.offset + (last + 1) * VIEW_BYTES[view.dtype] if math.prod(view.shape) else view.offset
    if end > max(buffers[view.buffer].bytes, 1):
        raise ProtocolError("a view reaches past its buffer")


def accept_grid(launch: PlannedLaunch, kernels: list[Any], least: int = 1) -> None:
    """Raises BadPlan for a grid that no GPU takes, and ProtocolError for a launch of no kernel.

    `least`: 0 where a launch of no programs is allowed, which Triton carries out as none.
    """
    if not 0 <= launch.kernel < len(kernels):
        raise ProtocolError("a launch of no kernel")
    grid = launch.grid
    if len(grid) != 3 or not all(least <= size <= most for size, most in zip(grid, MOST_PROGRAMS)):
        raise BadPlan(f"the grid {tuple(grid)} of {kernels[launch.kernel].name} is not possible")
    if not 1 <= launch.dimensions <= 3 or any(size != 1 for size in grid[launch.dimensions :]):
        raise ProtocolError("a grid has 1 to 3 sizes")


def accept_place(buffers: list[PlannedBuffer], buffer: int, offset: int) -> None:
    """Raises ProtocolError unless a pointer leads into a buffer, or just behind it."""
    if not 0 <= buffer < len(buffers) or not 0 <= offset <= buffers[buffer].bytes:
        raise ProtocolError("a pointer outside of its buffer")
