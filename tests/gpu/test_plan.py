"""A launch plan crosses into the process that owns the GPU: whatever it holds, it is read, or refused by name."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from grader import Exercise
from grader.gpu.models import MODELS
from grader.gpu.plan import BadPlan, Plan, least_bytes, read_plan
from grader.wire.cubin import HEADER, SECTION, BadCubin, read_cubin
from grader.wire.frames import ProtocolError
from grader.wire.messages import TensorSpec
from grader.wire.recorded_parts import PlannedView
from tests.waiting import NEVER

MODEL = MODELS["sm_90"]
SOURCE = """
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def copy_kernel(x, z_ptr, scale, N, BLOCK: tl.constexpr):
        at = [tl.program_id(0) * BLOCK, 0]
        i = (at[0] + tl.arange(0, BLOCK))[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
        tl.store(z_ptr + i, x.load(at) * scale, mask=i < N)

    @triton.autotune([triton.Config({"BLOCK": b}) for b in (64, 128)], key=[])
    @triton.jit
    def clear_kernel(z_ptr, BLOCK: tl.constexpr):
        tl.store(z_ptr + tl.arange(0, BLOCK), 0.0)

    def entry(x):
        z = torch.full(x.shape, 1.0, device=x.device)
        copy_kernel[(2,)](TensorDescriptor.from_tensor(x, [64, 64]), z, 2.0, z.numel(), BLOCK=64)
        clear_kernel[(1,)](z)
        return z
"""


@dataclass
class Recorded:
    """A plan as it is sent."""

    header: dict
    blob: bytes
    specs: list[TensorSpec]

    def read(self, header: dict | None = None, blob: bytes | None = None) -> Plan:
        header = self.header if header is None else header
        return read_plan(header, self.blob if blob is None else blob, self.specs, MODEL)

    @property
    def cubin(self) -> bytes:
        start, size = self.header["kernels"][0]["code"]
        return self.blob[start : start + size]

    def refuses(self, header: dict | None = None, blob: bytes | None = None) -> str:
        """Why the plan is refused; "" if it is not. No other exception may come."""
        try:
            self.read(header, blob)
        except (ProtocolError, BadPlan) as refused:
            return str(refused) or "?"
        return ""


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    from tests.compiler.launch_plans import Recording

    recording = Recording(SOURCE)
    recording.plan("entry", x=torch.empty(128, 64, device="meta"))
    recording.runner.end()
    return Recorded(json.loads(json.dumps(recording.header)), recording.blob, recording.specs)


def changed(recorded: Recorded, path: str, value: object) -> dict:
    """The header with another value at a path such as steps.1.grid."""
    header = copy.deepcopy(recorded.header)
    *outer, last = path.split(".")
    place = header
    for key in outer:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[int(last) if isinstance(place, list) else last] = value
    return header


def test_the_plan_itself_is_accepted(recorded):
    plan = recorded.read()
    assert [type(step).__name__ for step in plan.steps] == ["Fill", "PlannedLaunch", "Choice"]
    assert len(plan.kernels) == 3 and plan.configs == 2


# step 0 fills z, step 1 launches copy_kernel(x: tensor map, shape, strides, z_ptr, scale, N), step 2 is a choice
REFUSED = {
    "steps are a text": ("steps", "launch", "steps is not a short list"),
    "steps are an object": ("steps", {"op": "launch"}, "steps is not a short list"),
    "too many steps": ("steps", [{"op": "launch"}] * 300, "steps is not a short list"),
    "an unknown step": ("steps.0.op", "exec", "a step of an unknown kind"),
    "a step that is a list": ("steps.0", [], "a step is not an object"),
    "a step that is null": ("steps.0", None, "a step is not an object"),
    "a kernel that is not there": ("steps.1.kernel", 3, "a launch of no kernel"),
    "a kernel before the first": ("steps.1.kernel", -1, "a launch of no kernel"),
    "a kernel by its name": ("steps.1.kernel", "copy_kernel", "kernel is not int"),
    "a kernel that is true": ("steps.1.kernel", True, "kernel is not int"),
    "an empty grid": ("steps.1.grid", [], "the grid () of copy_kernel is not possible"),
    "a grid of two": ("steps.1.grid", [1, 1], "is not possible"),
    "a grid of zero": ("steps.1.grid", [0, 1, 1], "is not possible"),
    "a negative grid": ("steps.1.grid", [-1, 1, 1], "is not possible"),
    "a huge grid": ("steps.1.grid", [1 << 31, 1, 1], "is not possible"),
    "a grid past every integer": ("steps.1.grid", [1 << 80, 1, 1], "grid is not int"),
    "a grid of floats": ("steps.1.grid", [1.0, 1, 1], "grid is not int"),
    "no parameters": ("steps.1.parameters", [], "does not bind the parameters that its machine code takes"),
    "an unknown type": ("steps.1.parameters.0.type", "object", "a parameter of an unknown type"),
    "a type that is a list": ("steps.1.parameters.0.type", ["pointer"], "type is not str"),
    "a wider number": ("steps.1.parameters.6.type", "fp64", "does not bind the parameters"),
    "a buffer that is not there": ("steps.1.parameters.5.buffer", 2, "a pointer outside of its buffer"),
    "a buffer before the first": ("steps.1.parameters.5.buffer", -2, "a pointer outside of its buffer"),
    "an offset past the end": ("steps.1.parameters.5.offset", 128 * 64 * 4 + 1, "a pointer outside of its buffer"),
    "a negative offset": ("steps.1.parameters.5.offset", -4, "a pointer outside of its buffer"),
    "an offset as a text": ("steps.1.parameters.5.offset", "0", "offset is not int"),
    "a number that is code": ("steps.1.parameters.6.value", "__import__('os')", "a number was expected"),
    "a number that is long": ("steps.1.parameters.6.value", "9" * 41, "a number was expected"),
    "a number that is a number": ("steps.1.parameters.6.value", 2.0, "value is not str"),
    "an integer with a fraction": ("steps.1.parameters.7.value", "1.5", "does not fit"),
    "an integer that is nan": ("steps.1.parameters.7.value", "nan", "does not fit"),
    "an integer that is infinite": ("steps.1.parameters.7.value", "inf", "does not fit"),
    "an integer too large": ("steps.1.parameters.7.value", str(1 << 31), "does not fit"),
    "an integer too small": ("steps.1.parameters.7.value", str(-(1 << 31) - 1), "does not fit"),
    "an unknown TMA type": ("steps.1.parameters.0.data_type", 99, "a tensor map"),
    "an unknown swizzle": ("steps.1.parameters.0.swizzle", 9, "a tensor map"),
    "elements of no size": ("steps.1.parameters.0.element_bytes", 0, "a tensor map"),
    "a box of three for two": ("steps.1.parameters.0.box", [1, 64, 64], "a tensor map"),
    "an empty box": ("steps.1.parameters.0.box", [0, 64], "a tensor map"),
    "a huge box": ("steps.1.parameters.0.box", [1 << 20, 64], "a tensor map"),
    "a map without dimensions": ("steps.1.parameters.0.shape", [], "a tensor map"),
    "a map past its buffer": ("steps.1.parameters.0.shape", [129, 64], "a tensor map"),
    "a map of nothing": ("steps.1.parameters.0.shape", [0, 64], "a tensor map"),
    "a map with a negative size": ("steps.1.parameters.0.shape", [-1, 64], "a tensor map"),
    "a map with a wide row": ("steps.1.parameters.0.strides", [1 << 40, 1], "a tensor map"),
    "a map with a negative stride": ("steps.1.parameters.0.strides", [-64, 1], "a tensor map"),
    "a map of no buffer": ("steps.1.parameters.0.buffer", -1, "a tensor map"),
    "a fill with a text": ("steps.0.value", "zero", "a number was expected"),
    "a fill with a list": ("steps.0.value", [0], "a number was expected"),
    "a fill of no buffer": ("steps.0.view.buffer", 7, "a view of no buffer"),
    "a fill past the end": ("steps.0.view.offset", 4, "a view reaches past its buffer"),
    "a fill before the start": ("steps.0.view.offset", -4, "a view of no buffer"),
    "a view with a huge size": ("steps.0.view.shape", [1 << 40, 64], "a view reaches past its buffer"),
    "a view with a negative size": ("steps.0.view.shape", [-128, 64], "with a wrong shape"),
    "a view with a negative stride": ("steps.0.view.strides", [-64, 1], "a view of no buffer"),
    "a view with a lone stride": ("steps.0.view.strides", [64], "with a wrong shape"),
    "a view of an unknown dtype": ("steps.0.view.dtype", "object", "a view of an unknown dtype"),
    "a view that is null": ("steps.0.view", None, "PlannedView is not an object"),
    "a choice of nothing": ("steps.2.alternatives", [], "1 to 64 configurations"),
    "a choice of too much": ("steps.2.alternatives", [{"config": "", "error": "", "steps": []}] * 65, "configurations"),
    "an alternative that is null": ("steps.2.alternatives.0", None, "an alternative is not an object"),
    "an alternative without steps": ("steps.2.alternatives.0.steps", 7, "steps is not a short list"),
    "the results are no list": ("results", 3, "results is not a short list"),
    "a result is no pair": ("results.0", {}, "a result is no pair"),
    "a result without a name": ("results.0.0", None, "name is not str"),
    "a result is no view": ("results.0.1", 3, "PlannedView is not an object"),
    "a result is past its end": ("results.0.1.shape", [129, 64], "a view reaches past its buffer"),
    "no arguments": ("buffers.0.argument", False, "not those of the request"),
    "another argument": ("buffers.0.name", "y", "not those of the request"),
    "an argument with less memory": ("buffers.0.bytes", 1, "not those of the request"),
    "a negative buffer": ("buffers.1.bytes", -1, "tensors are allocated"),
    "a huge buffer": ("buffers.1.bytes", 1 << 61, "256 GiB are allocated in one call"),
    "buffers are an object": ("buffers", {"0": 1}, "buffers is not a short list"),
    "a kernel that is null": ("kernels.0", None, "a kernel is not an object"),
    "a kernel without code": ("kernels.0.code", None, "the frame"),
    "a part outside": ("kernels.0.code", [0, 1 << 40], "lies outside of the frame"),
    "a part before the start": ("kernels.0.code", [-8, 8], "lies outside of the frame"),
    "a part of a negative size": ("kernels.0.code", [8, -8], "lies outside of the frame"),
    "a part that is a text": ("kernels.0.code", "0", "lies outside of the frame"),
    "a part of texts": ("kernels.0.code", ["0", "8"], "the place of a part is not int"),
    "no machine code": ("kernels.0.code", [0, 0], "cannot be read"),
    "half the machine code": ("kernels.0.code", [0, 2000], "cannot be read"),
    "another kernel's name": ("kernels.0.name", "softmax_kernel", "does not hold softmax_kernel"),
    "no warps": ("kernels.0.warps", 0, "asks for 0 warps"),
    "too many warps": ("kernels.0.warps", 33, "asks for 33 warps"),
    "a large cluster": ("kernels.0.ctas", 17, "in clusters of 17"),
    "too much shared memory": ("kernels.0.shared", 1 << 20, "bytes of shared memory"),
    "less than no shared memory": ("kernels.0.shared", -1, "bytes of shared memory"),
    "cooperative as a number": ("kernels.0.cooperative", 1, "cooperative is not bool"),
}  # fmt: skip


@pytest.mark.parametrize("path, value, sentence", REFUSED.values(), ids=REFUSED)
def test_what_breaks_a_rule_is_refused(recorded, path, value, sentence):
    assert sentence in recorded.refuses(changed(recorded, path, value))


def test_choices_inside_of_choices_are_refused(recorded):
    choice = recorded.header["steps"][2]
    for _ in range(2000):  # deeper than Python's own recursion
        choice = {"op": "choose", "line": 0, "alternatives": [{"config": "", "error": "", "steps": [choice]}]}
    assert recorded.refuses({**recorded.header, "steps": [choice]}) == "choices inside of choices"


def test_choices_do_not_multiply_the_work(recorded):
    """64 x 64 alternatives of 64 launches each would be a quarter of a million."""
    launch = recorded.header["steps"][1]
    inner = {"op": "choose", "alternatives": [{"config": "", "error": "", "steps": [launch] * 64}] * 64}
    outer = {"op": "choose", "alternatives": [{"config": "", "error": "", "steps": [inner]}] * 64}
    assert recorded.refuses({**recorded.header, "steps": [outer]}) == (
        "more than 4096 launches and fills in all configurations together"
    )


def places(value: object, path: str = "") -> list[str]:
    """Every path inside a header."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [f"{path}.{key}".lstrip(".") for key, _ in inner]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, item in inner for place in places(item, f"{path}.{key}".lstrip("."))]


STRANGE = [None, True, -1, 0, 7, 1 << 61, 1 << 70, -(1 << 70), 1.5, float("nan"), "", "x", "9" * 5000, [], [[]], [None],
           {}, {"op": "launch"}, [1, 2, 3], [-1], ["x"]]  # fmt: skip


def test_any_value_anywhere_is_read_or_refused(recorded):
    accepted = 0
    for place in places(recorded.header):
        for value in STRANGE:
            accepted += recorded.refuses(changed(recorded, place, value)) == ""
    assert accepted > 0


def test_any_missing_field_is_read_or_refused(recorded):
    for place in places(recorded.header):
        header = copy.deepcopy(recorded.header)
        *outer, last = place.split(".")
        inner = header
        for key in outer:
            inner = inner[int(key)] if isinstance(inner, list) else inner[key]
        inner.pop(int(last) if isinstance(inner, list) else last)
        recorded.refuses(header)


# ---- machine code -------------------------------------------------------------------------------------------------


def reads(data: bytes) -> str:
    try:
        read_cubin(data)
    except BadCubin as refused:
        return str(refused) or "?"
    return ""


def test_each_byte_of_the_header_may_be_anything(recorded):
    cubin = recorded.cubin
    for at in range(HEADER.size):
        for value in (0, 1, 0x7F, 0x80, 0xFF, cubin[at] ^ 1):
            reads(cubin[:at] + bytes([value]) + cubin[at + 1 :])


def test_each_byte_of_the_sections_may_be_anything(recorded):
    cubin = recorded.cubin
    header = HEADER.unpack_from(cubin)
    start, count = header[11], header[17]
    for at in range(start, start + count * SECTION.size):
        for value in (0, 0x7F, 0xFF):
            reads(cubin[:at] + bytes([value]) + cubin[at + 1 :])


def test_machine_code_cut_short_is_refused_or_read(recorded):
    cubin = recorded.cubin
    for size in (*range(0, 200), *range(200, len(cubin), 97)):
        reads(cubin[:size])
    assert reads(cubin[: len(cubin) // 2]) and reads(b"") and reads(b"\x7fELF")


def test_random_bytes_are_refused_or_read(recorded):
    draw = random.Random(1)
    for _ in range(2000):
        damaged = bytearray(recorded.cubin)
        for _ in range(draw.randint(1, 8)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        reads(bytes(damaged))
    for _ in range(200):
        reads(draw.randbytes(draw.randrange(4096)))


def sections(cubin: bytes) -> list[tuple[int, str, list]]:
    """(where its entry lies, name, fields) of each section."""
    header = HEADER.unpack_from(cubin)
    at = [header[11] + number * SECTION.size for number in range(header[17])]
    fields = [list(SECTION.unpack_from(cubin, place)) for place in at]
    names = fields[header[18]]
    texts = cubin[names[4] : names[4] + names[5]]
    return [(place, texts[f[0] : texts.index(b"\0", f[0])].decode(), f) for place, f in zip(at, fields)]


def forged(cubin: bytes, old: str, change: Callable[[list], None]) -> bytes:
    """The machine code with the fields of the section `old` changed, and under the name .nv.global."""
    place, _, fields = next(section for section in sections(cubin) if section[1].startswith(old))
    header = HEADER.unpack_from(cubin)
    names_at = header[11] + header[18] * SECTION.size
    names = list(SECTION.unpack_from(cubin, names_at))
    texts = cubin[names[4] : names[4] + names[5]] + b".nv.global\0"
    fields[0] = names[5]  # the new name stands after the old ones
    change(fields)
    names[4], names[5] = len(cubin), len(texts)
    result = bytearray(cubin + texts)
    result[place : place + SECTION.size] = SECTION.pack(*fields)
    result[names_at : names_at + SECTION.size] = SECTION.pack(*names)
    return bytes(result)


def test_memory_that_survives_a_launch_is_refused(recorded):
    def writable(fields: list) -> None:
        fields[1], fields[2], fields[5] = 8, 3, 4096  # no bits in the file, writable and allocated, 4 KiB

    cubin = forged(recorded.cubin, ".debug", writable)
    assert read_cubin(cubin).writable_globals == 4096
    header = changed(recorded, "kernels.0.code", [len(recorded.blob), len(cubin)])
    assert "keeps memory between launches, which Triton's never does" in recorded.refuses(header, recorded.blob + cubin)


def test_a_real_global_variable_is_seen():
    """One that the assembler made."""
    import triton

    text = """
        .version 8.0
        .target sm_90
        .address_size 64
        .visible .global .align 4 .u32 kept[256];
        .visible .entry kernel(.param .u64 z) {
            .reg .b32 %r<2>;
            .reg .b64 %d<2>;
            ld.param.u64 %d0, [z];
            ld.global.u32 %r0, [kept];
            st.global.u32 [%d0], %r0;
            st.global.u32 [kept], %r0;
            ret;
        }
    """
    assembler = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
        source.write_text(text)
        subprocess.run([assembler, "-arch=sm_90", source, "-o", binary], check=True, timeout=NEVER)
        assert read_cubin(binary.read_bytes()).writable_globals == 1024


@pytest.mark.parametrize(("unread", "crossings"), [((), 3), (("cache",), 2)])
def test_what_is_updated_and_need_not_be_read_is_moved_once(unread, crossings):
    exercise = Exercise("write", lambda x, cache: x, "bits", 1, returns=("cache",), updates=("cache",), unread=unread)
    shape, strides = (5, 7), (7, 1)
    arguments = [TensorSpec(name, "float16", shape, strides, 0, 0, 70) for name in ("x", "cache")]
    plan = Plan(results={"cache": PlannedView(1, 0, "float16", [5, 7], [7, 1])})
    assert least_bytes(plan, arguments, exercise) == crossings * 70
