"""One recorded call of an entry, carried out on given inputs: what it computed, and what was seen on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from grader.interpreter.accesses import Descriptor
from grader.interpreter.batch import Batch, KernelFault, TooLong
from grader.interpreter.buffers import Argument, Buffer, OutOfMemory, base_of
from grader.interpreter.dtypes import DTYPES, Unsupported, dtype_of
from grader.interpreter.launch import run_launch
from grader.interpreter.memory import Memory
from grader.interpreter.program import Kernel
from grader.interpreter.views import View
from grader.protocol import Failure, InterpretRequest, Launch, TensorSpec
from grader.ttir.module import BadText, Type

# Of tensors, as torch names them -> of elements, as the text does.
ELEMENTS = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "i8", "bool": "i1", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
    "uint16": "i16", "uint32": "i32", "uint64": "i64",
}  # fmt: skip


@dataclass
class Call:
    """`kernels`: those of the recording, in its order; `inputs`: the bytes of the arguments' storages, one by one."""

    request: InterpretRequest
    recorded: dict
    kernels: list[Kernel]
    inputs: list[np.ndarray]
    launches: list[Launch] = field(default_factory=list)
    broken: list[dict] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)

    def run(self) -> tuple[dict, bytes]:
        """The fields of the reply and its blob."""
        request = self.request
        self.memory = Memory(
            fill=request.fill, count_traffic=request.count_traffic, at_once=request.at_once, trace=request.trace
        )
        self.buffers = list(self._buffers())
        error = self._carried_out()
        reply, blob = self._outputs() if error is None else ({}, b"")
        reply |= {
            "error": None if error is None else asdict(error),
            "findings": [asdict(finding) for finding in self.memory.findings()],
            "launches": [asdict(launch) for launch in self.launches],
            "traffic": [asdict(traffic) for traffic in self.memory.traffic()],
            "trace": [asdict(access) for access in self.memory.trace_accesses()],
            "broken": self.broken,
            "printed": self.printed,
        }
        return reply, blob

    # ---- memory --------------------------------------------------------------------------------------------------

    def _buffers(self) -> Iterator[Buffer]:
        arguments = iter(zip(self.request.arguments, self.inputs, strict=True))
        for number, buffer in enumerate(self.recorded["buffers"]):
            if buffer["argument"]:
                spec, data = next(arguments)
                view = _view_of(spec)
                read_only = spec.name not in self.request.writable
                yield Buffer(spec.name, spec.size, data=data, initialised=True, read_only=read_only, view=view)
            else:
                whole = View(0, (buffer["bytes"],), (1,), 1)
                view = _first_view(self.recorded["steps"], number, whole)
                yield Buffer("", buffer["bytes"], initialised=False, view=view)

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _carried_out(self) -> Failure | None:
        """Fills and launches in their order; what ended them before the last one."""
        line, kernel = 0, ""
        try:
            for step in self._steps(self.recorded["steps"]):
                line = step["line"]
                if step["op"] == "launch":
                    kernel = self.recorded["kernels"][step["kernel"]]["name"]
                    self._launch(step, kernel)
                else:
                    self._fill(step)
        except TooLong as error:
            return Failure("endless", "TooLong", str(error), error.place.line or line, kernel)
        except KernelFault as error:
            return Failure("assert", str(error.program), str(error), error.place.line or line, kernel)
        except OutOfMemory as error:
            return Failure("kernel", "MemoryError", str(error), line, kernel)
        except (Unsupported, BadText) as error:
            return Failure("not-known", type(error).__name__, str(error), line, kernel)
        return None

    def _steps(self, steps: list[dict]) -> Iterator[dict]:
        for step in steps:
            if step["op"] == "choose":
                usable = [one for one in step["alternatives"] if not one["error"]] or step["alternatives"]
                yield from self._steps(usable[self.request.config % len(usable)]["steps"])
            else:
                yield step

    def _fill(self, step: dict) -> None:
        view = step["view"]
        buffer, dtype = self.buffers[view["buffer"]], DTYPES[ELEMENTS[view["dtype"]]]
        place = View(view["offset"], tuple(view["shape"]), tuple(view["strides"]), dtype.itemsize)
        if step["op"] == "data":
            values = np.frombuffer(bytes.fromhex(step["bytes"]), dtype).reshape(place.shape)
        else:
            number = step["value"]
            value = float(number) if not number.lstrip("-").isdigit() else int(number)
            values = np.array(value % (1 << 64) if dtype.kind == "u" else value).astype(dtype)
        buffer.write(place, values)

    def _launch(self, step: dict, name: str) -> None:
        kernel, grid = self.kernels[step["kernel"]], tuple(step["grid"])
        launch = Launch(name, list(grid[: step["dimensions"]]), step["line"])
        self.launches.append(launch)
        types = kernel.module.entry.blocks[0].types
        if len(types) != len(step["parameters"]):
            raise BadText(f"the text of {name} takes {len(types)} parameters, its launch binds another number")
        given = [_value(number, *both) for number, both in enumerate(zip(step["parameters"], types))]
        arguments = [self._argument(parameter) for parameter in step["parameters"]]
        self.memory.begin_launch(grid, step["dimensions"], arguments, ordered=kernel.waits)
        batch = Batch(self.memory, grid, self.request.fill)
        try:
            run_launch(kernel, batch, given, self._order(grid))
        finally:
            launch.atomics, launch.unmasked_fills = batch.atomics, batch.unmasked_fills
            launch.idle = self.memory.end_launch()
            self.printed += batch.printed
            for one in batch.broken:
                what = {"what": one.what, "line": one.place.line, "variable": one.place.variable}
                self.broken.append(what | {"program": one.program})

    def _argument(self, parameter: dict) -> Argument | None:
        if "buffer" not in parameter or parameter["type"] not in ("pointer", "descriptor"):
            return None
        name = parameter["name"].removesuffix("_ptr")
        if parameter["buffer"] == -1:
            return Argument(name, None)
        view = parameter.get("view")
        item = DTYPES[ELEMENTS[view["dtype"]]].itemsize if view else 1
        own = View(parameter["offset"], tuple(view["shape"]), tuple(view["strides"]), item) if view else None
        return Argument(name, self.buffers[parameter["buffer"]], parameter["offset"], own)

    def _order(self, grid: tuple[int, ...]) -> np.ndarray:
        total = grid[0] * grid[1] * grid[2]
        programs = np.arange(total)
        if self.request.order == "forward" or self.request.count_traffic:
            return programs
        if self.request.order == "reverse":
            return programs[::-1]
        return np.random.default_rng(self.request.order).permutation(programs)

    # ---- the result ----------------------------------------------------------------------------------------------

    def _outputs(self) -> tuple[dict, bytes]:
        result = self.recorded.get("result")
        if result is None or result["dtype"] not in ELEMENTS:
            return {"outputs": [], "writers": []}, b""
        buffer, item = self.buffers[result["buffer"]], DTYPES[ELEMENTS[result["dtype"]]].itemsize
        view = View(result["offset"], tuple(result["shape"]), tuple(result["strides"]), item)
        self.memory.name_result(buffer, self.request.returns, view)
        # One element after the other: the result's own strides are kept, since they are judged.
        low, data = view.offset, buffer.bytes_between(view.low, view.high)
        spec = TensorSpec(
            self.request.returns, result["dtype"], view.shape, view.strides, (view.offset - low) // item, 0, len(data)
        )
        writers = np.ascontiguousarray(self.memory.writers_of(buffer, view), np.int32).tobytes()
        place = {"output": 0, "start": len(data), "size": len(writers), "grid": list(buffer.last_grid)}
        return {"outputs": [spec.to_json()], "writers": [place]}, data + writers


def _view_of(spec: TensorSpec) -> View:
    item = DTYPES[ELEMENTS[spec.dtype]].itemsize
    return View(spec.offset * item, tuple(spec.shape), tuple(spec.strides), item)


def _first_view(steps: list[dict], number: int, whole: View) -> View:
    """The first tensor of an allocation that a kernel gets: it tells elements from bytes."""
    for step in steps:
        for alternative in step.get("alternatives", []):
            if (view := _first_view(alternative["steps"], number, whole)) is not whole:
                return view
        for parameter in step.get("parameters", []):
            if parameter.get("buffer") == number and parameter.get("view"):
                view = parameter["view"]
                item = DTYPES[ELEMENTS[view["dtype"]]].itemsize
                return View(parameter["offset"], tuple(view["shape"]), tuple(view["strides"]), item)
    return whole


def _value(number: int, parameter: dict, kind: Type) -> Any:
    """What a kernel's parameter of this number and type holds. Raises BadText where the launch binds something else."""
    if parameter["type"] in ("pointer", "descriptor"):
        address = 0 if parameter["buffer"] == -1 else base_of(number) + parameter["offset"]
        if parameter["type"] != kind.kind or kind.shape and kind.kind == "pointer":
            raise BadText(f"the parameter {parameter['name']} is no {parameter['type']} in the text")
        pointer = np.array([address], np.int64)
        if kind.kind == "pointer":
            return pointer
        sizes, strides = ([np.array([n], np.int64) for n in parameter[key]] for key in ("shape", "strides"))
        return Descriptor(pointer, tuple(sizes), tuple(strides), kind, bool(parameter["nan_padding"]))
    if kind.kind != "number" or kind.shape:
        raise BadText(f"the parameter {parameter['name']} is no number in the text")
    dtype, text = dtype_of(kind), parameter["value"]
    if dtype.kind in "ib":
        bits = int(text) & (1 << 8 * dtype.itemsize) - 1
        if dtype.kind == "b":
            return np.array([bool(bits & 1)])
        return np.array([bits], f"u{dtype.itemsize}").view(dtype)
    return np.array([float(text)]).astype(dtype)
