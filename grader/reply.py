"""What the child answered to a call, checked field by field: from here on it is plain data of known types."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch

from grader.fields import build, checked, items
from grader.protocol import (
    DTYPE_BYTES,
    FINDING_KINDS,
    Failure,
    Finding,
    Launch,
    ProtocolError,
    TensorSpec,
    TracedAccess,
    Traffic,
)

DTYPES = {name: getattr(torch, name) for name in DTYPE_BYTES}


@dataclass
class Refusal:
    """A torch operation of the host function that the kernel should have done."""

    operation: str
    line: int = 0


@dataclass
class Result:
    """What kind of object the entry returned."""

    type: str = ""
    same_as: str = ""  # the argument that it is
    shares_with: str = ""  # the argument whose memory it shares
    device: str = ""
    dtype: str = ""  # as torch names it
    line: int = 0  # where its memory was allocated


@dataclass
class BrokenPromise:
    """What a kernel told the compiler, and what does not hold: tl.assume, tl.multiple_of, tl.max_contiguous."""

    what: str
    line: int = 0
    variable: str = ""
    program: list[int] = field(default_factory=list)  # the first for which it does not


@dataclass
class Writers:
    """Which program wrote each element of the output last: -1 none, -2 none, but the element was initialised."""

    programs: torch.Tensor  # int32, the output's shape
    grid: list[int]


@dataclass
class Reply:
    error: Failure | None = None
    refusals: list[Refusal] = field(default_factory=list)
    result: Result = field(default_factory=Result)
    output: torch.Tensor | None = None
    writers: Writers | None = None
    findings: list[Finding] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # arguments that the host function filled, though it may not
    traffic: list[Traffic] = field(default_factory=list)
    trace: list[TracedAccess] = field(default_factory=list)
    configurations: list[int] = field(default_factory=lambda: [0])  # numbers of those that can run
    broken: list[BrokenPromise] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)  # by the kernels
    threads: int = 0
    processes: int = 0


def read_reply(header: dict, blob: bytes) -> Reply:
    """Raises ProtocolError for anything that a sound child would not have sent."""
    if header.get("kind") != "ran":
        raise ProtocolError("an answer of the wrong kind")
    outputs = items(header, "outputs", lambda data: TensorSpec.from_json(data, len(blob)))
    output = tensor_of(outputs[0], blob) if outputs else None
    return Reply(
        error=failure_of(header.get("error")),
        output=output,
        writers=_writers(header, blob, output),
        findings=items(header, "findings", _finding),
        launches=items(header, "launches", _launch),
        traffic=items(header, "traffic", lambda data: build(Traffic, data)),
        trace=items(header, "trace", lambda data: build(TracedAccess, data)),
        broken=items(header, "broken", lambda data: build(BrokenPromise, data)),
        printed=items(header, "printed", lambda data: checked(data, "str", "printed")),
    )


def failure_of(data: object) -> Failure | None:
    return None if data is None else build(Failure, data)


def tensor_of(spec: TensorSpec, blob: bytes) -> torch.Tensor:
    """The tensor that a checked spec describes, in memory of its own."""
    dtype = DTYPES[spec.dtype]
    data = bytearray(blob[spec.start : spec.start + spec.size])
    count = len(data) // DTYPE_BYTES[spec.dtype]
    flat = torch.frombuffer(data, dtype=dtype, count=count) if count else torch.empty(0, dtype=dtype)
    return flat.as_strided(spec.shape, spec.strides, spec.offset)


def spec_and_bytes(name: str, tensor: torch.Tensor, start: int) -> tuple[TensorSpec, bytes]:
    """A tensor of ours as a spec and its storage's bytes, which will lie at `start` of the blob."""
    data = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy().tobytes()
    return replace(spec_of(name, tensor), start=start), data


def spec_of(name: str, tensor: torch.Tensor) -> TensorSpec:
    """A tensor without values as a spec: its view of a storage of so many bytes."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    size = tensor.untyped_storage().nbytes()
    return TensorSpec(name, dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), 0, size)


def _writers(header: dict, blob: bytes, output: torch.Tensor | None) -> Writers | None:
    maps = header.get("writers") or []
    if output is None or not isinstance(maps, list) or not maps or not isinstance(maps[0], dict):
        return None
    start, size = (checked(maps[0].get(key), "int", key) for key in ("start", "size"))
    grid = [max(1, size) for size in _grid(maps[0].get("grid"))]
    if start < 0 or len(grid) != 3 or size != 4 * output.numel() or start + size > len(blob):
        raise ProtocolError("the map of writers does not fit the output")
    flat = torch.frombuffer(bytearray(blob[start : start + size]), dtype=torch.int32) if size else torch.empty(0)
    return Writers(flat.to(torch.int32).reshape(output.shape), grid)


def _finding(data: object) -> Finding:
    finding = build(Finding, data)
    if finding.kind not in FINDING_KINDS:
        raise ProtocolError("a finding of an unknown kind")
    return finding


def _launch(data: object) -> Launch:
    launch = build(Launch, data)
    return replace(launch, grid=_grid(launch.grid))


def _grid(data: object) -> list[int]:
    grid = checked(data, "list[int]", "grid")
    if not 1 <= len(grid) <= 3 or min(grid) < 0:
        raise ProtocolError("a grid has 1 to 3 sizes")
    return grid
