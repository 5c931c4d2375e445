"""A recorded call is data from an untrusted process: whatever it holds, it is read, or refused by name."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from grader.wire.frames import ProtocolError
from grader.wire.recorded_call import RecordedCall, read_recorded, recorded_to_json
from grader.wire.recorded_parts import BadPlan
from tests.child.recorded_calls import Recording, meta

SOURCE = """
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def copy_kernel(x, z_ptr, y_ptr, scale, N, BLOCK: tl.constexpr):
        at = [tl.program_id(0) * BLOCK, 0]
        i = (at[0] + tl.arange(0, BLOCK))[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
        tl.store(z_ptr + i, x.load(at) * scale, mask=i < N)

    @triton.autotune([triton.Config({"BLOCK": b}) for b in (64, 128)], key=[])
    @triton.jit
    def clear_kernel(z_ptr, BLOCK: tl.constexpr):
        tl.store(z_ptr + tl.arange(0, BLOCK), 0.0)

    def entry(x):
        z = torch.full(x.shape, 1.0, device=x.device)
        copy_kernel[(2,)](TensorDescriptor.from_tensor(x, [64, 64]), z, None, 2.0, z.numel(), BLOCK=64)
        clear_kernel[(1,)](z)
        return z, [torch.tensor([1, 2], device=x.device), 3]
"""


class Recorded:
    """What a child answered."""

    def __init__(self, recording: Recording) -> None:
        self.header, self.specs = recording.header, recording.specs

    def read(self, header: dict | None = None) -> RecordedCall:
        return read_recorded(self.header if header is None else header, self.specs)

    def refuses(self, header: dict) -> str:
        """Why the call is refused; "" if it is not. No other exception may come."""
        try:
            self.read(header)
        except (ProtocolError, BadPlan) as refused:
            return str(refused) or "?"
        return ""


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    recording = Recording(SOURCE)
    recording("entry", x=meta(128, 64))
    recording.end()
    return Recorded(recording)


def changed(recorded: Recorded, path: str, value: object) -> dict:
    """The header with another value at a path such as steps.1.grid."""
    header = copy.deepcopy(recorded.header)
    *outer, last = path.split(".")
    place = header
    for key in outer:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[int(last) if isinstance(place, list) else last] = value
    return header


def test_the_call_itself_is_accepted(recorded):
    call = recorded.read()
    assert [type(step).__name__ for step in call.steps] == ["Fill", "PlannedLaunch", "Choice", "PythonNumbers"]
    assert len(call.kernels) == 3 and call.configs == 2
    assert [item.type for item in call.returned.items] == ["Tensor", "list"]


# step 0 fills z, step 1 launches copy_kernel(x and its 4 sizes, z_ptr, scale, N), step 2 is a choice, step 3 is data
X, Z, N = "steps.1.parameters.0", "steps.1.parameters.5", "steps.1.parameters.7"
REFUSED = {
    "another kind": ("kind", "ran", "an answer of the wrong kind"),
    "steps are a text": ("steps", "launch", "steps is not a short list"),
    "an unknown step": ("steps.0.op", "exec", "a step of an unknown kind"),
    "a kernel that is not there": ("steps.1.kernel", 3, "a launch of no kernel"),
    "a negative grid": ("steps.1.grid", [-1, 1, 1], "the grid (-1, 1, 1) of copy_kernel is not possible"),
    "a huge grid": ("steps.1.grid", [1 << 31, 1, 1], "is not possible"),
    "a grid of two": ("steps.1.grid", [1, 1], "is not possible"),
    "no dimensions": ("steps.1.dimensions", 0, "a grid has 1 to 3 sizes"),
    "fewer dimensions than sizes": ("steps.1.grid", [2, 2, 1], "a grid has 1 to 3 sizes"),
    "an unknown type": (f"{Z}.type", "object", "a parameter of an unknown type"),
    "a pointer before its buffer": (f"{Z}.offset", -1, "a pointer outside of its buffer"),
    "a pointer behind its buffer": (f"{Z}.offset", 128 * 64 * 4 + 1, "a pointer outside of its buffer"),
    "a pointer into no buffer": (f"{Z}.buffer", 9, "a pointer outside of its buffer"),
    "a pointer without a view": (f"{Z}.view", None, "a pointer without the view of its tensor"),
    "a view of another place": (f"{Z}.view.offset", 4, "a pointer without the view of its tensor"),
    "a view of another buffer": (f"{Z}.view.buffer", 0, "a pointer without the view of its tensor"),
    "a view past its buffer": (f"{Z}.view.shape", [129, 64], "a view reaches past its buffer"),
    "a view that runs backwards": (f"{Z}.view.strides", [64, -1], "a view of no buffer"),
    "a view of an unknown dtype": (f"{Z}.view.dtype", "object", "a view of an unknown dtype"),
    "a null pointer with a view": (f"{Z}.buffer", -1, "a tensor of no buffer"),
    "a null descriptor": (X, {"name": "x", "type": "descriptor", "descriptor": None}, "Descriptor is not an object"),
    "a descriptor without a block": (f"{X}.descriptor.block", [], "a descriptor that no GPU takes"),
    "a descriptor without sizes": (f"{X}.descriptor.shape", [], "a descriptor that no GPU takes"),
    "a descriptor of nothing": (f"{X}.descriptor.shape", [0, 64], "a descriptor that no GPU takes"),
    "a padding of ones": (f"{X}.descriptor.padding", "one", "a descriptor that no GPU takes"),
    "a number with a fraction": (f"{N}.value", "1.5", "a number does not fit its parameter's type i32"),
    "a number that is too large": (f"{N}.value", str(1 << 31), "a number does not fit its parameter's type i32"),
    "a number in words": (f"{N}.value", "one", "a number was expected"),
    "a fill past its buffer": ("steps.0.view.offset", 4, "a view reaches past its buffer"),
    "a fill with a word": ("steps.0.value", "one", "a number was expected"),
    "too few bytes": ("steps.3.bytes", "00", "numbers made in Python that do not fit their view"),
    "bytes that are none": ("steps.3.bytes", "zz", "a few bytes were expected"),
    "too many bytes": ("steps.3.bytes", "00" * 4097, "a few bytes were expected"),
    "an argument of another size": ("buffers.0.bytes", 4, "the plan's arguments are not those of the request"),
    "an argument of another name": ("buffers.0.name", "y", "the plan's arguments are not those of the request"),
    "a buffer of less than nothing": ("buffers.1.bytes", -1, "tensors are allocated in one call"),
    "a buffer of a terabyte": ("buffers.1.bytes", 1 << 40, "more than 256 GiB are allocated in one call"),
    "no recipe": ("kernels.0.recipe", None, "a recipe is not an object"),
    "an unknown option": ("kernels.0.recipe.options.ir_override", "/tmp/k.ptx", "the option ir_override, which is not"),
    "warps in words": ("kernels.0.recipe.options.num_warps", "four", "num_warps is not int"),
    "a constant of an unknown kind": ("kernels.0.recipe.constants.0.1", {"eval": "1"}, "a constant of an unknown kind"),
    "a constant of two kinds": ("kernels.0.recipe.constants.0.1", {"value": "1", "dtype": "i1"}, "of an unknown kind"),
    "a signature of numbers": ("kernels.0.recipe.signature.N", 1.5, "a type is not str"),
    "a type that is evaluated": (
        "kernels.0.recipe.signature.N", "*tensordesc<fp32[16],print(1) #*fp32", "a type that no argument has"
    ),
    "a layout behind a type": ("kernels.0.recipe.signature.x", "tensordesc<fp32[64, 64],x>", "a type that no argument"),
    "an attribute that Triton does not give": (
        "kernels.0.recipe.attrs.0.1", [["tt.contiguity", 16]], "an attribute that no argument has"
    ),
    "an attribute in words": (
        "kernels.0.recipe.attrs.0.1", [["tt.divisibility", "16"]], "an attribute that no argument has"
    ),
    "a line in words": ("kernels.0.recipe.line", "one", "line is not int"),
    "a result past its buffer": ("returned.items.0.view.offset", 4, "a view reaches past its buffer"),
    "a result that is a text": ("returned", "x", "the result is not an object"),
    "results without end": ("returned.items", [{}] * 65, "the result is not a short list"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused(recorded, name):
    path, value, sentence = REFUSED[name]
    assert sentence in recorded.refuses(changed(recorded, path, value))


def test_results_inside_of_results_have_an_end(recorded):
    inner: dict = {}
    for _ in range(100):
        inner = {"items": [inner]}
    assert recorded.refuses(changed(recorded, "returned", inner)) == "the result is not a short list"


def test_constants_inside_of_constants_have_an_end(recorded):
    inner: dict = {"value": "1"}
    for _ in range(100):
        inner = {"items": [inner]}
    assert recorded.refuses(changed(recorded, "kernels.0.recipe.constants.0.1", inner))


def test_what_is_sent_on_is_what_was_read(recorded):
    call = recorded.read()
    assert recorded.read(json.loads(recorded_to_json(call))) == call


def test_the_word_that_a_configuration_cannot_run_is_not_taken(recorded):
    call = recorded.read(changed(recorded, "steps.2.alternatives.1.error", "it cannot"))
    assert call.usable_configs == [0, 1]


def test_what_went_wrong_is_told_without_the_rest(recorded):
    failure = {"kind": "host", "type": "ValueError", "message": "m", "line": 3, "kernel": ""}
    header = {"kind": "recorded", "error": failure, "steps": [{"op": "launch"}], "processes": 1}
    call = recorded.read(header)
    assert (call.error.type, call.steps, call.begun) == ("ValueError", [], True)
    assert call.processes == 1


ODD: list[Any] = [None, True, -1, 0, 1 << 70, 1.5, "", "x" * 5000, [], [[]], {}, {"value": "1"}, [None] * 300]


def places(value: object, path: str = "") -> Iterator[str]:
    """The paths of all that a header holds."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        place = f"{path}.{key}" if path else str(key)
        yield place
        yield from places(inner, place)


def test_anything_anywhere_is_read_or_refused(recorded):
    draw = random.Random(1)
    for place in places(recorded.header):
        for value in draw.sample(ODD, 5):
            recorded.refuses(changed(recorded, place, value))


def test_each_missing_field_is_read_or_refused(recorded):
    for place in places(recorded.header):
        header = copy.deepcopy(recorded.header)
        *outer, last = place.split(".")
        inner: Any = header
        for key in outer:
            inner = inner[int(key)] if isinstance(inner, list) else inner[key]
        inner.pop(int(last) if isinstance(inner, list) else last)
        recorded.refuses(header)


def test_texts_are_cleaned_of_control_characters(recorded):
    header = changed(recorded, "kernels.0.name", "a\x1b[31mb")
    assert recorded.read(header).kernels[0].name == "a?[31mb"


def test_a_view_of_a_dtype_that_no_argument_has_is_read(recorded):
    header = changed(recorded, "steps.0.view.dtype", "float8_e4m3fn")
    assert recorded.read(header).steps[0].view.dtype == str(torch.float8_e4m3fn).removeprefix("torch.")
