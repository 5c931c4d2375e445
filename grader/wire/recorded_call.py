"""A recorded call: the recipe of each kernel, and what a host function does with memory and launches.

child -> RecordRequest answered by "recorded" -> read_recorded -> RecordedCall
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from grader.wire.fields import build, checked, items
from grader.wire.frames import JsonObject, ProtocolError
from grader.wire.launch_abi import ATTRIBUTES, LAUNCH_OPTIONS, NUMBER_BYTES, TYPE
from grader.wire.messages import Failure, TensorSpec
from grader.wire.recorded_parts import (
    BadPlan,
    PlannedBuffer,
    PlannedLaunch,
    PlannedView,
    Returned,
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
    fields_of,
    launches_in,
    read_number,
    read_view,
)
from grader.wire.reply import Refusal, failure_of

WORK = ("launch", "choose")  # steps
MOST_DIMENSIONS, MOST_DEPTH, MOST_RESULTS = 5, 4, 64


@dataclass
class RecordedDescriptor:
    """A descriptor of blocks of a tensor, made by the host: sizes and strides count elements."""

    element: str  # as Triton names it: fp16, i32
    shape: list[int]
    strides: list[int]
    block: list[int]
    padding: str  # what lies outside of the shape: "zero" or "nan"
    tf32: bool = False  # round fp32 to tf32 on the way


@dataclass
class RecordedParameter:
    """An argument of the kernel's function, in the order of the text.

    type "pointer": `buffer` and `offset` in bytes, and the `view` of the tensor that was passed; -1: a null pointer.
    type "descriptor": the same of its base, and what it describes. Its shape (i32) and strides (i64) follow it, as
    arguments in the text and as parameters in the list: "x.shape", "x.strides".
    Otherwise a type of NUMBER_BYTES, with its `value` as Python writes it.
    """

    name: str  # in the file; of an item of a tuple "name.0"
    type: str
    value: str = ""
    buffer: int = -1
    offset: int = 0
    view: PlannedView | None = None
    descriptor: RecordedDescriptor | None = None

    @property
    def number(self) -> float | int:
        return read_number(self.value)


@dataclass
class Recipe:
    """The input from which the front end makes a text: a function of the file, at the line where it begins for Python.

    constants: by path of the argument, a number in a list and further numbers in tuples; a value is {"value": repr},
        {"dtype": name}, {"function": [name, line]}, {"public": "triton.language.exp"}, {"items": [values]},
        {"named": [fields, values]} for a tuple with names, {"constexpr": value} in a tuple, {"tuple": [name, fields,
        defaults]} for a class of tuples, {"absent": ""} for a name without a value, or {"other": text}.
    attrs: by path, what the front end is told of the argument: [["tt.divisibility", 16]].
    scopes: the names that the function, and each function of the file that it may reach, sees in addition to its
        arguments: [function, line, names, defaults]; each name or default is [name, 1 for a constexpr, value].
    fields: by path, the names of an argument that is a tuple with names for its parts.
    symbol: the function's name in the text, where `repr` was given to triton.jit.
    """

    function: str
    line: int
    signature: dict[str, Any]  # by argument: "*fp32", "i32", "constexpr", or a list of these
    constants: list[tuple[list[int], JsonObject]]
    attrs: list[tuple[list[int], Any]]
    options: dict[str, Any]  # of LAUNCH_OPTIONS, all that this Triton has: num_warps, num_stages, num_ctas ...
    scopes: list[list[Any]] = field(default_factory=list)
    fields: list[tuple[list[int], list[str]]] = field(default_factory=list)
    symbol: str = ""


@dataclass
class RecordedKernel:
    """`source`: MLIR's generic form of the module after the inliner, as our front end makes it of the recipe."""

    name: str
    recipe: Recipe
    source: str = ""


@dataclass
class RecordedCall(Sequence):
    """A recorded call. `error` and `refusals` say what kept the child from a whole call.

    Then `kernels` are of the launches that came before, `begun` tells whether anything was launched, and buffers, steps
    and result are empty.
    """

    buffers: list[PlannedBuffer] = field(default_factory=list)  # the arguments first, in the order of the request
    kernels: list[RecordedKernel] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)  # Fill, Data, PlannedLaunch, Choice
    returned: Returned = field(default_factory=Returned)
    error: Failure | None = None
    refusals: list[Refusal] = field(default_factory=list)
    processes: int = 0
    begun: bool = False


def read_recorded(header: JsonObject, arguments: list[TensorSpec]) -> RecordedCall:
    """Returns a child's answer to a RecordRequest, checked field by field; its kernels have no text yet.

    Every buffer, view, pointer and fill lies inside; a launch's kernel exists and its grid fits a GPU; numbers fit
    their types. The parser of the text checks whether the parameters match it.

    `steps_with(call.steps, config)` gives the fills, data and launches of a configuration. Raises ProtocolError for
    what a sound child would not have sent, BadPlan for what a submission must not do.
    """
    if header.get("kind") != "recorded":
        raise ProtocolError("an answer of the wrong kind")
    call = RecordedCall(error=failure_of(header.get("error")))
    call.refusals = items(header, "refusals", lambda data: build(Refusal, data))
    call.processes = checked(header.get("processes", 0), "int", "processes")
    call.kernels = items(header, "kernels", _kernel)
    if call.error is not None or call.refusals:
        call.begun = any(items(header, "steps", lambda step: isinstance(step, dict) and step.get("op") in WORK))
        return call
    call.buffers = items(header, "buffers", lambda data: build(PlannedBuffer, data))
    call.steps = StepReader(_parameter).steps(header)
    for alternative in (one for choice in call.choices for one in choice.alternatives):
        alternative.error = ""  # not believed from the child: compiling the configuration tells
    call.returned = _returned(header.get("returned"))
    _accept(call, arguments)
    return call


def recorded_to_json(call: RecordedCall) -> bytes:
    """Returns the text that read_recorded reads as this call, which has no error."""
    kernels = [{"name": kernel.name, "recipe": kernel.recipe} for kernel in call.kernels]
    parts = {"buffers": call.buffers, "kernels": kernels, "steps": call.steps, "returned": call.returned}
    return json.dumps({"kind": "recorded", **parts}, allow_nan=False, default=fields_of).encode()


# ---- reading ------------------------------------------------------------------------------------------------------


def _object(data: object, what: str) -> JsonObject:
    if not isinstance(data, dict):
        raise ProtocolError(f"{what} is not an object")
    return data


def _kernel(data: object) -> RecordedKernel:
    data = _object(data, "RecordedKernel")
    return RecordedKernel(checked(data.get("name"), "str", "name"), _recipe(data.get("recipe")))


def _recipe(data: object) -> Recipe:
    data = _object(data, "a recipe")
    signature = _object(data.get("signature"), "a signature")
    if len(signature) > 256:
        raise ProtocolError("signature is not short")
    return Recipe(
        checked(data.get("function"), "str", "function"),
        checked(data.get("line"), "int", "line"),
        {checked(name, "str", "name"): _type(kind) for name, kind in signature.items()},
        items(data, "constants", lambda item: _at_path(item, _constant)),
        items(data, "attrs", lambda item: _at_path(item, _attributes)),
        _options(data.get("options")),
        items({"scopes": [], **data}, "scopes", _scope),
        items({"fields": [], **data}, "fields", lambda item: _at_path(item, _field_names)),
        checked(data.get("symbol", ""), "str", "symbol"),
    )


def _at_path(data: object, read: Any) -> tuple[list[int], Any]:
    if not isinstance(data, list) or len(data) != 2:
        raise ProtocolError("a value without the path of its argument")
    return checked(data[0], "list[int]", "a path"), read(data[1])


def _field_names(data: object) -> list[str]:
    return checked(data, "list[str]", "the names of a tuple's parts")


def _scope(data: object) -> list[Any]:
    if not isinstance(data, list) or len(data) != 4:
        raise ProtocolError("the scope of no function")
    name, line, names, defaults = data
    scope = {"names": names, "defaults": defaults}
    return [
        checked(name, "str", "function"), checked(line, "int", "line"),
        items(scope, "names", _name), items(scope, "defaults", _name),
    ]  # fmt: skip


def _name(data: object, depth: int = 0) -> list[Any]:
    if not isinstance(data, list) or len(data) != 3:
        raise ProtocolError("a name without its value")
    return [checked(data[0], "str", "name"), checked(data[1], "int", "constexpr"), _constant(data[2], depth)]


def _type(data: object, depth: int = 0) -> Any:
    """Returns a type as Triton writes it, or a list of types. Raises ProtocolError for text to be evaluated."""
    if isinstance(data, list) and depth < MOST_DEPTH and len(data) <= 256:
        return [_type(item, depth + 1) for item in data]
    text = checked(data, "str", "a type")
    if not TYPE.fullmatch(text):
        raise ProtocolError("a type that no argument has")
    return text


def _attributes(data: object) -> list[list[Any]]:
    if not isinstance(data, list) or len(data) > len(ATTRIBUTES):
        raise ProtocolError("the attributes of an argument are no short list")
    for one in data:
        if not isinstance(one, list) or len(one) != 2 or one[0] not in ATTRIBUTES or type(one[1]) is not int:
            raise ProtocolError("an attribute that no argument has")
    return data


def _constant(data: object, depth: int = 0) -> JsonObject:
    data = _object(data, "a constant")
    if set(data) == {"items"} and depth < MOST_DEPTH:
        return {"items": items(data, "items", lambda item: _constant(item, depth + 1))}
    if set(data) == {"named"} and isinstance(data["named"], list) and len(data["named"]) == 2 and depth < MOST_DEPTH:
        fields, parts = data["named"]
        constant = {"parts": parts}
        return {"named": [_field_names(fields), items(constant, "parts", lambda item: _constant(item, depth + 1))]}
    if set(data) == {"constexpr"} and depth < MOST_DEPTH:
        return {"constexpr": _constant(data["constexpr"], depth + 1)}
    if set(data) == {"function"} and isinstance(data["function"], list) and len(data["function"]) == 2:
        name, line = data["function"]
        return {"function": [checked(name, "str", "function"), checked(line, "int", "line")]}
    if set(data) == {"tuple"} and isinstance(data["tuple"], list) and len(data["tuple"]) == 3 and depth < MOST_DEPTH:
        name, fields, defaults = data["tuple"]
        constant = {"defaults": defaults}
        return {
            "tuple": [
                checked(name, "str", "tuple"), _field_names(fields),
                items(constant, "defaults", lambda item: _name(item, depth + 1)),
            ]
        }  # fmt: skip
    for name in ("value", "dtype", "public", "other", "absent"):
        if set(data) == {name}:
            return {name: checked(data[name], "str", name)}
    raise ProtocolError("a constant of an unknown kind")


def _options(data: object) -> dict[str, Any]:
    data = _object(data, "options")
    if unknown := [name for name in data if name not in LAUNCH_OPTIONS]:
        raise BadPlan(f"a launch has the option {checked(unknown[0], 'str', 'option')}, which is not known here")
    return {name: checked(value, LAUNCH_OPTIONS[name], name) for name, value in data.items()}


def _parameter(data: object) -> RecordedParameter:
    data = dict(_object(data, "RecordedParameter"))
    view, described = data.pop("view", None), data.pop("descriptor", None)
    parameter = build(RecordedParameter, data)
    if parameter.type in ("pointer", "descriptor"):
        parameter.view = None if view is None else read_view(view)
        if parameter.type == "descriptor":
            parameter.descriptor = build(RecordedDescriptor, described)
    elif parameter.type in NUMBER_BYTES:
        accept_number(parameter.type, parameter.number)
    else:
        raise ProtocolError("a parameter of an unknown type")
    return parameter


def _returned(data: object, depth: int = 0) -> Returned:
    data = dict(_object(data, "the result"))
    view, parts = data.pop("view", None), data.pop("items", None)
    returned = build(Returned, data)
    returned.view = None if view is None else read_view(view)
    if parts is not None:
        if depth == MOST_DEPTH or not isinstance(parts, list) or len(parts) > MOST_RESULTS:
            raise ProtocolError("the result is not a short list")
        returned.items = [_returned(part, depth + 1) for part in parts]
    return returned


# ---- accepting ----------------------------------------------------------------------------------------------------


def _accept(call: RecordedCall, arguments: list[TensorSpec]) -> None:
    accept_buffers(call.buffers, arguments)
    accept_kernels(call.kernels)
    accept_steps(call.steps, call.buffers, lambda launch: _accept_launch(call, launch))
    _accept_returned(call, call.returned)


def _accept_returned(call: RecordedCall, returned: Returned) -> None:
    if returned.view is not None:
        accept_view(call.buffers, returned.view)
        returned.line = call.buffers[returned.view.buffer].line
    for item in returned.items:
        _accept_returned(call, item)


def _accept_launch(call: RecordedCall, launch: PlannedLaunch) -> None:
    accept_grid(launch, call.kernels, least=0)
    for parameter in launch.parameters:
        if parameter.buffer == -1:
            if parameter.view is not None or parameter.type == "descriptor":
                raise ProtocolError("a tensor of no buffer")
        else:
            _accept_tensor(call, parameter)


def accept_multiples(call: RecordedCall, elsewhere: Collection[str]) -> None:
    """Raises BadPlan for a launch whose argument is no multiple of what its kernel was compiled for.

    elsewhere: names of arguments that begin at the address of another, which their own offset does not tell.
    """
    for launch in launches_in(call.steps):
        kernel = call.kernels[launch.kernel]
        names, values = list(kernel.recipe.signature), {parameter.name: parameter for parameter in launch.parameters}
        for (number, *inner), attributes in kernel.recipe.attrs:
            name = ".".join(map(str, (names[number] if number < len(names) else "", *inner)))
            for _, multiple in attributes:
                if name in values and multiple and _remainder(call, values[name], multiple, elsewhere):
                    raise BadPlan(
                        f"{kernel.name} was compiled for multiples of {multiple} as {name}, and this launch gives it "
                        "something else"
                    )


def _remainder(call: RecordedCall, given: RecordedParameter, multiple: int, elsewhere: Collection[str]) -> float | int:
    if given.type == "pointer":
        known = given.buffer != -1 and call.buffers[given.buffer].name not in elsewhere
        return given.offset % multiple if known else 0
    return given.number % multiple if given.type in NUMBER_BYTES else 0


def _accept_tensor(call: RecordedCall, parameter: RecordedParameter) -> None:
    """Raises ProtocolError unless a pointer leads into its buffer, to the first element of its view."""
    accept_place(call.buffers, parameter.buffer, parameter.offset)
    view = parameter.view
    if view is None or (view.buffer, view.offset) != (parameter.buffer, parameter.offset):
        raise ProtocolError("a pointer without the view of its tensor")
    accept_view(call.buffers, view)
    if parameter.descriptor is not None:
        _accept_descriptor(parameter.descriptor)


def _accept_descriptor(descriptor: RecordedDescriptor) -> None:
    rank = len(descriptor.shape)
    sizes = (
        1 <= rank <= MOST_DIMENSIONS
        and len(descriptor.strides) == len(descriptor.block) == rank
        and all(1 <= size < 1 << 31 for size in descriptor.shape)
        and all(1 <= size <= 1 << 20 for size in descriptor.block)
        and all(0 <= stride < 1 << 40 for stride in descriptor.strides)
    )
    if not sizes or descriptor.padding not in ("zero", "nan"):
        raise ProtocolError("a descriptor that no GPU takes")
