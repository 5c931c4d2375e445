"""The child's reply to a call, checked field by field: from here on it is plain data of known types.

The interpreter runs no line of the learner's, and its reply is checked all the same: kernels' text and numbers come
from outside, and a mistake of ours in there must not become a verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch

from grader.wire.fields import build, checked, items
from grader.wire.frames import JsonObject, ProtocolError
from grader.wire.messages import (
    DTYPE_BYTES,
    FINDING_KINDS,
    Failure,
    Finding,
    Launch,
    LeftOpen,
    LoggedAccess,
    LoopCount,
    Meeting,
    Mend,
    Met,
    TensorSpec,
    Traffic,
)
from grader.wire.recorded_parts import Returned
from grader.wire.traced_program import TracedProgram, traced_program

SAMPLED_FIELDS = ("name", "dtype", "shape", "strides", "grid", "programs", "all_ran", "start", "stored")
DTYPES = {name: getattr(torch, name) for name in DTYPE_BYTES}


@dataclass
class Refusal:
    """A torch operation of the host function that the kernel should have done."""

    operation: str
    line: int = 0


@dataclass
class BrokenPromise:
    """A promise to the compiler that does not hold."""

    what: str  # tl.assume, tl.multiple_of ..., or UNALIGNED
    line: int = 0
    variable: str = ""
    program: list[int] = field(default_factory=list)  # the first for which it does not hold


@dataclass
class WideAccess:
    """How many neighbouring lanes a thread may move at once in an access of a launch: see interpreter/wide_accesses.py.

    `access`: the number of its kernel and of what it is in the kernel's text.
    """

    access: list[int]
    possible: int
    misaligned: int


@dataclass
class Overflow:
    """A number on its way to an address that its dtype cannot hold, as int16 or fp32."""

    dtype: str
    line: int = 0
    program: list[int] = field(default_factory=list)  # the first that met it


@dataclass
class Writers:
    """The number of the program that wrote each element of a result last: -1 none, -2 none, but it was initialised."""

    programs: torch.Tensor  # int32, the result's shape
    grid: list[int]


@dataclass
class Sampled:
    """The elements of a result that the programs of a sample have stored."""

    name: str
    dtype: str
    shape: list[int]
    strides: list[int]
    grid: list[int]
    programs: int  # that were run
    all_ran: bool  # whether every program of every launch was run: then the stored values are the call's result
    start: int  # of the stored elements, in the bytes of the blob
    stored: int
    offsets: torch.Tensor = field(init=False)  # int64, elements from the result's first one
    programs_of: torch.Tensor = field(init=False)  # int32, numbered with the last axis of the grid counting fastest
    values: torch.Tensor = field(init=False)  # of the result's dtype


@dataclass
class Reply:
    error: Failure | None = None
    refusals: list[Refusal] = field(default_factory=list)
    result: Returned = field(default_factory=Returned)
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)  # by the name of the result
    writers: dict[str, Writers] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # arguments that the host function filled, though it may not
    sampled: list[Sampled] = field(default_factory=list)  # of each result, where not all programs were run
    traffic: list[Traffic] = field(default_factory=list)
    loops: list[LoopCount] = field(default_factory=list)  # where traffic is counted
    accesses: list[LoggedAccess] = field(default_factory=list)
    meetings: list[Meeting] = field(default_factory=list)
    configurations: list[int] = field(default_factory=lambda: [0])  # numbers of the configurations that can run
    broken: list[BrokenPromise] = field(default_factory=list)
    left_open: list[LeftOpen] = field(default_factory=list)  # what came out otherwise, as the call asked for
    wide: list[WideAccess] = field(default_factory=list)  # where a promise about them is broken, or believed
    overflows: list[Overflow] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)  # by the kernels
    reached: list[int] = field(default_factory=list)  # lines of kernels that some program has carried out
    left_out: list[int] = field(default_factory=list)  # lines with parts of kernels that no program has carried out
    traced: list[TracedProgram] = field(default_factory=list)  # launch by launch
    mends: list[Mend] = field(default_factory=list)  # edits that make the call right
    out_of_time: bool = False  # more edits were to be tried
    is_cut: bool = False  # more edits might have been found: the call does not tell much
    spent: int = 0  # work, on all tries
    is_right: bool = False  # the call without an edit
    steps: int = 0  # operations that its launches have carried out, each for a batch of programs
    lanes: int = 0  # elements that these yielded
    processes: int = 0

    @property
    def output(self) -> torch.Tensor | None:
        """The first result; None if there is none."""
        return next(iter(self.outputs.values()), None)


def read_reply(header: JsonObject, blob: bytes) -> Reply:
    """Returns the reply. Raises ProtocolError for data that a sound child would not have sent."""
    if header.get("kind") != "ran":
        raise ProtocolError("an answer of the wrong kind")
    specs = items(header, "outputs", lambda data: TensorSpec.from_json(data, len(blob)))
    outputs = {spec.name: tensor_of(spec, blob) for spec in specs}
    maps = items(header, "writers", lambda data: _writers(data, blob, list(outputs.values())))
    sampled = items(header, "sampled", lambda data: _sampled(data, blob))
    outputs |= {
        one.name: torch.empty_strided(one.shape, one.strides, dtype=one.values.dtype, device="meta") for one in sampled
    }
    return Reply(
        sampled=sampled,
        error=failure_of(header.get("error")),
        outputs=outputs,
        writers=dict(zip(outputs, maps)),
        findings=items(header, "findings", _finding),
        launches=items(header, "launches", _launch),
        traffic=items(header, "traffic", lambda data: build(Traffic, data)),
        loops=items(header, "loops", lambda data: build(LoopCount, data)),
        accesses=items(header, "accesses", lambda data: build(LoggedAccess, data)),
        meetings=items(header, "meetings", _meeting),
        broken=items(header, "broken", lambda data: build(BrokenPromise, data)),
        left_open=items(header, "left_open", lambda data: build(LeftOpen, data)),
        wide=items(header, "wide", lambda data: build(WideAccess, data)),
        overflows=items(header, "overflows", lambda data: build(Overflow, data)),
        traced=items(header, "traced", traced_program),
        steps=checked(header.get("steps", 0), "int", "steps"),
        lanes=checked(header.get("lanes", 0), "int", "lanes"),
        printed=items(header, "printed", lambda data: checked(data, "str", "printed")),
        reached=items(header, "reached", lambda data: checked(data, "int", "reached")),
        left_out=items(header, "left_out", lambda data: checked(data, "int", "left_out")),
        mends=items(header, "mends", lambda data: build(Mend, data)),
        out_of_time=checked(header.get("out_of_time", False), "bool", "out_of_time"),
        is_cut=checked(header.get("is_cut", False), "bool", "is_cut"),
        spent=checked(header.get("spent", 0), "int", "spent"),
        is_right=checked(header.get("is_right", False), "bool", "is_right"),
    )


def failure_of(data: object) -> Failure | None:
    return None if data is None else build(Failure, data)


def tensor_of(spec: TensorSpec, blob: bytes) -> torch.Tensor:
    """Returns the tensor that a checked spec describes, as a copy of its bytes."""
    dtype = DTYPES[spec.dtype]
    data = bytearray(blob[spec.start : spec.start + spec.size])
    count = len(data) // DTYPE_BYTES[spec.dtype]
    flat = torch.frombuffer(data, dtype=dtype, count=count) if count else torch.empty(0, dtype=dtype)
    return flat.as_strided(spec.shape, spec.strides, spec.offset)


def spec_and_bytes(name: str, tensor: torch.Tensor, start: int) -> tuple[TensorSpec, bytes]:
    """Returns the spec and the storage's bytes of a tensor of ours; the bytes will lie at `start` of the blob."""
    data = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy().tobytes()
    return replace(spec_of(name, tensor), start=start), data


def spec_of(name: str, tensor: torch.Tensor) -> TensorSpec:
    """Returns the spec of a tensor without values: its view of a storage, and the storage's size in bytes."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    size = tensor.untyped_storage().nbytes()
    return TensorSpec(name, dtype, tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset()), 0, size)


def _writers(data: object, blob: bytes, outputs: list[torch.Tensor]) -> Writers:
    if not isinstance(data, dict):
        raise ProtocolError("a map of writers is not an object")
    number, start, size = (checked(data.get(key), "int", key) for key in ("output", "start", "size"))
    grid = [max(1, size) for size in _grid(data.get("grid"))]
    fits = 0 <= number < len(outputs) and start >= 0 and len(grid) == 3 and start + size <= len(blob)
    if not fits or size != 4 * outputs[number].numel():
        raise ProtocolError("the map of writers does not fit the output")
    output = outputs[number]
    flat = torch.frombuffer(bytearray(blob[start : start + size]), dtype=torch.int32) if size else torch.empty(0)
    return Writers(flat.to(torch.int32).reshape(output.shape), grid)


def _sampled(data: object, blob: bytes) -> Sampled:
    if not isinstance(data, dict):
        raise ProtocolError("a sample that is no object")
    sampled = build(Sampled, {key: data.get(key) for key in SAMPLED_FIELDS})
    dtype, start, count = DTYPES.get(sampled.dtype), sampled.start, sampled.stored
    if dtype is None or min(start, count) < 0 or len(sampled.grid) != 3:
        raise ProtocolError("a sample of no result")
    stored = bytearray(blob[start : start + count * (12 + dtype.itemsize)])
    if len(stored) != count * (12 + dtype.itemsize):
        raise ProtocolError("what a sample has stored does not fit its bytes")
    starts = (0, 8 * count, 12 * count)
    sampled.offsets, sampled.programs_of, sampled.values = (
        torch.frombuffer(stored, dtype=kind, count=count, offset=start) if count else torch.empty(0, dtype=kind)
        for kind, start in zip((torch.int64, torch.int32, dtype), starts)
    )
    return sampled


def _finding(data: object) -> Finding:
    finding = build(Finding, data)
    if finding.kind not in FINDING_KINDS:
        raise ProtocolError("a finding of an unknown kind")
    return finding


def _meeting(data: object) -> Meeting:
    if not isinstance(data, dict):
        raise ProtocolError("a meeting is not an object")
    kinds = {"argument": "str", "launch": "int", "loads_first": "bool", "in_one_turn": "bool"}
    fields = {name: checked(data.get(name), kind, name) for name, kind in kinds.items()}
    load, store = (build(Met, data.get(name)) for name in ("load", "store"))
    inside = all(0 <= lane < math.prod(met.shape) for met in (load, store) for lane in met.lanes)
    if not inside or len(load.lanes) != len(store.lanes):
        raise ProtocolError("the lanes of a meeting do not go with its tiles")
    return Meeting(**fields, load=load, store=store)


def _launch(data: object) -> Launch:
    launch = build(Launch, data)
    return replace(launch, grid=_grid(launch.grid))


def _grid(data: object) -> list[int]:
    grid = checked(data, "list[int]", "grid")
    if not 1 <= len(grid) <= 3 or min(grid) < 0:
        raise ProtocolError("a grid has 1 to 3 sizes")
    return grid
