"""Carries out a recorded call of an entry on given inputs, and reports its results and what the memory checker saw.

Everything else of the room serves this: launches step by step, the memory between them, the limits of the call. A
failure ends the call and is told; what the memory checker sees does not, so that one run finds all mistakes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from grader.interpreter.access_facts import AccessFacts
from grader.interpreter.batch import Batch, KernelFault, TooLong
from grader.interpreter.blocks import Descriptor
from grader.interpreter.buffers import Argument, Buffer, OutOfMemory, base_of
from grader.interpreter.dtypes import DTYPES, Unsupported, dtype_of
from grader.interpreter.endless_loops import Endless
from grader.interpreter.launch import MOST_PROGRAMS, run_launch
from grader.interpreter.meetings import Meetings
from grader.interpreter.memory import CheckedMemory
from grader.interpreter.program import ReadyKernel
from grader.interpreter.views import BufferView
from grader.ttir.module import BadText, Type
from grader.wire import recorded_parts
from grader.wire.messages import Failure, InterpretRequest, Launch, TensorSpec
from grader.wire.recorded_call import RecordedCall, RecordedParameter
from grader.wire.recorded_parts import Choice, Fill, PlannedLaunch, PlannedView, PythonNumbers, Step, steps_with
from grader.wire.recorded_results import results_by_name

# torch's name of a dtype -> the text's name of an element.
ELEMENTS = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "i8", "bool": "i1", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
    "uint16": "i16", "uint32": "i32", "uint64": "i64",
}  # fmt: skip


MANY_ATOMICS = 1000  # by one program
MOST_OVERFLOWS = 16  # reported, over all launches
MOST_SHUFFLED = 1 << 24  # programs of a launch: their numbers in a random order take 8 bytes each
Read = Callable[[PlannedView], np.ndarray]
Write = Callable[[PlannedView, np.ndarray], None]


@dataclass
class InterpretedCall:
    """A call under way. `kernels`: by number in the recording, but for kernels without a text, which no step launches.

    `inputs`: the bytes of each argument's storage.
    """

    request: InterpretRequest
    recorded: RecordedCall
    kernels: dict[int, ReadyKernel]
    inputs: list[np.ndarray]
    launches: list[Launch] = field(default_factory=list)
    broken: list[dict] = field(default_factory=list)
    wide: list[dict] = field(default_factory=list)
    overflows: list[dict] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    steps: int = 0
    lanes: int = 0

    def run(self) -> tuple[dict, bytes]:
        """Carries out the call. Returns the fields of the reply and its blob."""
        self._begin()
        error = self._carried_out()
        reply, blob = self._outputs() if error is None else ({}, b"")
        reply |= {
            "error": None if error is None else asdict(error),
            "findings": self._findings(),
            "launches": [asdict(launch) for launch in self.launches],
            "traffic": [asdict(traffic) for traffic in self.memory.traffic()],
            "loops": [asdict(loop) for loop in self.memory.loops()],
            "accesses": [asdict(access) for access in self.memory.logged_accesses()],
            "meetings": [asdict(meeting) for meeting in self.memory.told_meetings()],
            "broken": self.broken,
            "wide": self.wide,
            "overflows": self.overflows,
            "printed": self.printed,
            "steps": self.steps,
            "lanes": self.lanes,
        }
        return reply, blob

    def _begin(self) -> None:
        request = self.request
        self.until = time.process_time() + request.limit
        self.memory = CheckedMemory(
            fill=request.fill, count_traffic=request.count_traffic, at_once=request.at_once, log=request.log_accesses
        )
        self.memory.meetings = Meetings() if request.meetings else None
        self.buffers = list(self._buffers())
        for buffer in self.buffers:
            self.memory.register(buffer)

    def _findings(self) -> list[dict]:
        findings = self.memory.findings()
        shapes = {buffer.name: buffer.view.shape for buffer in self.buffers}
        steps = list(steps_with(self.recorded.steps, self.request.config)) if findings else []
        given = [(one.kernel, [it.value for it in one.parameters]) for one in steps if isinstance(one, PlannedLaunch)]
        facts = AccessFacts(
            [(one.module, [values for of, values in given if of == n]) for n, one in self.kernels.items() if findings],
            shapes,
        )
        return [asdict(finding) | facts.of(access, finding) for finding, access in findings]

    # ---- memory --------------------------------------------------------------------------------------------------

    def _buffers(self) -> Iterator[Buffer]:
        arguments = iter(zip(self.request.arguments, self.inputs, strict=True))
        for number, buffer in enumerate(self.recorded.buffers):
            if buffer.argument:
                spec, data = next(arguments)
                view = view_of_spec(spec)
                read_only = spec.name not in self.request.writable
                yield Buffer(spec.name, spec.size, data=data, read_only=read_only, view=view, given=True)
            else:
                whole = BufferView(0, (buffer.bytes,), (1,), 1)
                view = first_view(self.recorded.steps, number) or whole
                yield Buffer("", buffer.bytes, initialised=False, view=view)

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _carried_out(self) -> Failure | None:
        """Carries out fills and launches in their order.

        Returns the failure that ended them before the last step, or None.
        """
        line, kernel = 0, ""
        try:
            for step in self._steps():
                line = step.line
                if isinstance(step, PlannedLaunch):
                    kernel = self.recorded.kernels[step.kernel].name
                    self._launch(step, kernel)
                else:
                    self._fill(step)
        except TooLong as error:
            return self._too_long(error, line, kernel)
        except KernelFault as error:
            program = list(self.memory.name(error.program))
            return Failure("assert", "KernelFault", str(error), error.place.line or line, kernel, program)
        except OutOfMemory as error:
            return Failure("kernel", "MemoryError", str(error), line, kernel)
        except (Unsupported, BadText) as error:
            return Failure("not-known", type(error).__name__, str(error), getattr(error, "line", 0) or line, kernel)
        return None

    def _steps(self) -> Iterator[PlannedLaunch | Fill | PythonNumbers]:
        steps, request = self.recorded.steps, self.request
        if not request.tried:
            return steps_with(steps, request.config)
        return with_a_trial(steps, request.config, request.kept, self._read, self._write)

    def _read(self, view: recorded_parts.PlannedView) -> np.ndarray:
        return self.buffers[view.buffer].read(view_of(view))

    def _write(self, view: recorded_parts.PlannedView, values: np.ndarray) -> None:
        self.buffers[view.buffer].write(view_of(view), values)

    def _too_long(self, error: TooLong, line: int, kernel: str) -> Failure:
        """Returns the failure of a launch without end: of its grid or of its kernel.

        It is the grid's if that has too many programs and some of them have ended.
        """
        total = math.prod(self.batch.grid)
        if isinstance(error, Endless):
            return Failure("endless", "Endless", str(error), error.place.line or line, kernel)
        if self.batch.done and total > MOST_PROGRAMS:
            return Failure("grid", "TooLong", f"{self.batch.done} of {total}", line, kernel)
        return Failure("endless", "TooLong", str(error), error.place.line or line, kernel, self._waiting())

    def _waiting(self) -> list[int]:
        """Returns the indices in the grid of a program that seems to wait for others; [] if the program does not.

        It has done many atomics: it asks memory again and again for something that another program has to write.
        """
        if not self.batch.waits or self.batch.asked < MANY_ATOMICS:
            return []
        return list(self.memory.name(int(self.batch.programs[0])))

    def _fill(self, step: Fill | PythonNumbers) -> None:
        dtype, view = DTYPES[ELEMENTS[step.view.dtype]], view_of(step.view)
        if isinstance(step, PythonNumbers):
            values = np.frombuffer(step.bytes, dtype).reshape(view.shape)
        elif dtype.kind == "i":
            bits = int(step.value) & (1 << 8 * dtype.itemsize) - 1
            values = np.array(bits, f"u{dtype.itemsize}")
        else:
            values = np.array(step.value).astype(dtype)
        self.buffers[step.view.buffer].write(view, values)

    def _launch(self, step: PlannedLaunch, name: str) -> None:
        kernel, (x, y, z) = self.kernels[step.kernel], step.grid
        grid = x, y, z
        launch = Launch(name, list(grid[: step.dimensions]), step.line)
        self.launches.append(launch)
        types = kernel.module.entry.blocks[0].types
        if len(types) != len(step.parameters):
            raise BadText(f"the text of {name} takes {len(types)} parameters, its launch binds another number")
        given = [_value(number, *both) for number, both in enumerate(zip(step.parameters, types))]
        arguments = [self._argument(parameter) for parameter in step.parameters]
        self.memory.begin_launch(grid, step.dimensions, arguments, ordered=kernel.waits)
        asked = self.request
        batch = self.batch = Batch(
            self.memory, grid, kernel.waits, asked.fill, asked.fill_lines, kernel.pipelined, asked.believe, self.until
        )
        batch.most_lanes = asked.most_lanes or batch.most_lanes
        try:
            self._run(kernel, batch, given, grid)
        finally:
            launch.atomics, launch.unmasked_fills = batch.atomics, batch.unmasked_fills
            launch.float_sums = batch.float_sums
            launch.updated = self._updated(step, arguments)
            self.steps, self.lanes = self.steps + batch.steps, self.lanes + batch.lanes
            self.memory.end_launch()
            launch.idle = self.memory.idle_programs()
            self.printed += batch.printed
            for broken in batch.broken:
                what = {"what": broken.what, "line": broken.place.line, "variable": broken.place.variable}
                self.broken.append(what | {"program": self.memory.name(broken.program)})
            for key in batch.wide.possible:
                bits = {"possible": batch.wide.possible[key], "misaligned": batch.wide.misaligned[key]}
                self.wide.append({"access": [step.kernel, *key], **bits})
            for overflow in batch.overflows[: MOST_OVERFLOWS - len(self.overflows)]:
                program = self.memory.name(overflow.program)
                self.overflows.append({"dtype": overflow.dtype, "line": overflow.place.line, "program": program})

    def _run(self, kernel: ReadyKernel, batch: Batch, arguments: list[Any], grid: tuple[int, ...]) -> None:
        run_launch(kernel, batch, arguments, self._order(grid))

    def _updated(self, step: PlannedLaunch, arguments: list[Argument | None]) -> list[str]:
        """Returns the names of the parameters whose memory the launch both reads and writes."""
        both = self.memory.loaded & self.memory.stored
        return [
            parameter.name
            for parameter, argument in zip(step.parameters, arguments)
            if argument is not None and argument.buffer in both
        ]

    def _argument(self, parameter: RecordedParameter) -> Argument | None:
        """Returns a pointer or a descriptor as the kernel's memory takes it; None for a number or a null pointer."""
        if parameter.view is None:
            return None
        name = parameter.name.removesuffix("_ptr")
        buffer, view = self.buffers[parameter.buffer], view_of(parameter.view)
        # A view that the host makes of an argument, as with as_strided, gives no right to memory around the argument.
        view = buffer.view if buffer.given and not view.is_part_of(buffer.view) else view
        return Argument(name, buffer, parameter.offset, view)

    def _order(self, grid: tuple[int, ...]) -> Sequence[int] | np.ndarray:
        """Returns the numbers of the grid's programs, in the order in which they are to run.

        A launch by mistake may have billions of programs, so that this is a range wherever possible. More than
        MOST_SHUFFLED programs run in reverse if a random order is asked for.
        """
        programs, order = range(grid[0] * grid[1] * grid[2]), self.request.order
        if order == "forward" or self.request.count_traffic:
            return programs
        if isinstance(order, str) or len(programs) > MOST_SHUFFLED:  # a str: "reverse"
            return programs[::-1]
        return np.random.default_rng(order).permutation(programs)

    # ---- the result ----------------------------------------------------------------------------------------------

    def _outputs(self) -> tuple[dict, bytes]:
        """Returns the reply's fields and blob: each result's elements, and the last program that wrote each element."""
        outputs, writers, blob = [], [], bytearray()
        request = self.request
        results = results_by_name(self.recorded.returned, request.arguments, request.returns, request.updates)
        for number, (name, result) in enumerate(results.items()):
            buffer, view = self.buffers[result.buffer], view_of(result)
            self.memory.name_result(buffer, name, view)
            data = buffer.read(replace(view, shape=(view.span,), strides=(1,))).tobytes() if view.span else b""
            outputs.append(TensorSpec(name, result.dtype, view.shape, view.strides, 0, len(blob), len(data)).to_json())
            blob += data
            who = np.ascontiguousarray(self.memory.writers_of(buffer, view), np.int32).tobytes()
            writers.append({"output": number, "start": len(blob), "size": len(who), "grid": list(buffer.last_grid)})
            blob += who
        return {"outputs": outputs, "writers": writers}, bytes(blob)


def view_of_spec(spec: TensorSpec) -> BufferView:
    item = DTYPES[ELEMENTS[spec.dtype]].itemsize
    return BufferView(spec.offset * item, tuple(spec.shape), tuple(spec.strides), item)


def view_of(view: recorded_parts.PlannedView) -> BufferView:
    return BufferView(view.offset, tuple(view.shape), tuple(view.strides), DTYPES[ELEMENTS[view.dtype]].itemsize)


def first_view(steps: list[Step], number: int) -> BufferView | None:
    """Returns the first tensor in allocation number `number` that a kernel gets, or None.

    It tells the size of the allocation's elements.
    """
    for step in steps:
        if isinstance(step, Choice):
            for alternative in step.alternatives:
                if (view := first_view(alternative.steps, number)) is not None:
                    return view
        elif isinstance(step, PlannedLaunch):
            for parameter in step.parameters:
                if parameter.buffer == number:
                    return view_of(parameter.view)
    return None


def _value(number: int, parameter: RecordedParameter, kind: Type) -> Any:
    """Returns the value of a kernel's parameter of this number and type.

    Raises BadText where the launch binds something else.
    """
    if parameter.type not in ("pointer", "descriptor"):
        return _number(parameter, kind)
    if parameter.type != kind.kind or kind.shape and kind.kind == "pointer":
        raise BadText(f"the parameter {parameter.name} is no {parameter.type} in the text")
    address = 0 if parameter.buffer == -1 else base_of(number) + parameter.offset
    pointer, described = np.array([address], np.int64), parameter.descriptor
    if kind.kind == "pointer":
        return pointer
    if described is None or tuple(described.block) != kind.shape:
        raise BadText(f"the descriptor {parameter.name} has blocks of another shape in the text")
    sizes, strides = ([np.array([n], np.int64) for n in numbers] for numbers in (described.shape, described.strides))
    return Descriptor(pointer, tuple(sizes), tuple(strides), kind, described.padding == "nan")


def _number(parameter: RecordedParameter, kind: Type) -> np.ndarray:
    if kind.kind != "number" or kind.shape:
        raise BadText(f"the parameter {parameter.name} is no number in the text")
    dtype, value = dtype_of(kind), parameter.number
    if dtype.kind == "b":
        return np.array([bool(int(value) & 1)])
    if dtype.kind == "i":
        return np.array([int(value) & (1 << 8 * dtype.itemsize) - 1], f"u{dtype.itemsize}").view(dtype)
    return np.array([float(value)]).astype(dtype)


def with_a_trial(
    steps: list[Step], config: int, kept: list[str], read: Read, write: Write
) -> Iterator[PlannedLaunch | Fill | PythonNumbers]:
    """Yields the steps; a tuned choice is carried out once more before it counts, between its hooks.

    `kept`: a kernel's arguments that are restored after the trial, besides the arguments that its file names. `read`
    and `write` access a view's memory; they are called between two of the steps.
    """
    for step in steps:
        if not isinstance(step, Choice) or step.tuning is None:
            yield from steps_with([step], config)
            continue
        tuning = step.tuning
        yield from steps_with(tuning.before, config)
        views = list(_views(step, config, [*tuning.restored, *kept]))
        copies = [read(view) for view in views]
        yield from steps_with([step], config)
        for view, copy in zip(views, copies):
            write(view, copy)
        yield from steps_with(tuning.after, config)
        yield from steps_with([step], config)


def _views(choice: Choice, config: int, names: list[str]) -> Iterator[PlannedView]:
    """Yields the views of the tensors that the configuration's kernel gets under these names."""
    for step in steps_with([choice], config):
        if isinstance(step, PlannedLaunch):
            yield from (one.view for one in step.parameters if one.name in names and one.view is not None)
