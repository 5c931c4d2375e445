"""The messages between the parent, which judges, and the child, which runs the learner's file.

A message is a frame on a pipe: 8 bytes of lengths, a JSON header, then raw bytes (tensor storages, maps). Nothing is
pickled, so reading a frame runs no code. A child's messages are untrusted: the parent checks every field it uses.

    parent -> child        load       {source, filename}                   the learner's file
                           record     {arguments, numbers, entry, ...}     one call without values
    child -> parent        ready      {fence}                              imports are done, nothing else ran
                           loaded     {error, constants}
                           recorded   {error, refusals, buffers, kernels, steps, returned}
    parent -> front end    text       {filename, recipe, small_dots}       a kernel of the learner's file
    front end -> parent    text       {failure, fits}
    parent -> interpreter  interpret  {recorded, arguments, ...}           a recorded call, on inputs
    interpreter -> parent  ran        {error, outputs, findings, launches, traffic, ...}

Each request also says how many `seconds` of a core it may take. A child records and computes nothing; the front end
reads the learner's file and runs none of it; the interpreter computes, and reads of the learner's file only the texts
that the front end has made of the kernels. Both sides import this module.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from grader.wire.frames import JsonObject, ProtocolError
from grader.wire.launch_abi import FIRST_WITH_TENSOR_MAPS

MOST_ELEMENTS = 1 << 27  # of one tensor; with strides of 0 they need no bytes
ANY_SIZE = 1 << 62  # of a tensor without bytes in the frame
FRONT_END = "front end"  # the task of a child that makes texts
FAKE_OF = "fake of "  # begins the entry of a request that asks for the fake of an operator of torch
MULTIPROCESSORS = "MULTIPROCESSORS"  # in RecordRequest.constants: how many the GPU has that a host function believes in
CAPABILITY = "CAPABILITY"  # there, too: its compute capability for torch, 80 for 8.0; kernels are made for the model

DTYPE_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


# Dtypes of tensors that a host function may pass on, though no argument of an entry has some of them.
VIEW_BYTES = DTYPE_BYTES | {
    "uint16": 2, "uint32": 4, "uint64": 8,
    "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
}  # fmt: skip


@dataclass(frozen=True)
class TensorSpec:
    """A tensor as a view of a storage whose bytes lie in the frame's blob at [start, start + size).

    `shape` and `strides` count elements, as torch does; `offset` is the storage offset in elements.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    start: int
    size: int  # bytes of the storage

    def to_json(self) -> JsonObject:
        return dict(vars(self))

    @staticmethod
    def from_json(data: object, blob_bytes: int, most_elements: int = MOST_ELEMENTS) -> TensorSpec:
        """Returns the spec. Raises ProtocolError unless the view lies in its storage, and the storage in the blob."""
        known = data if isinstance(data, dict) else {}
        name, dtype = known.get("name"), known.get("dtype")
        if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
            raise ProtocolError("a tensor without a name or with an unknown dtype")
        shape, strides = _whole_numbers(known.get("shape")), _whole_numbers(known.get("strides"))
        offset, start, size = _whole_numbers([known.get("offset"), known.get("start"), known.get("size")])
        too_many = math.prod(shape) > most_elements
        if len(shape) != len(strides) or len(shape) > 8 or too_many or start + size > blob_bytes:
            raise ProtocolError("a tensor's shape, strides and bytes do not fit together")
        last = offset + sum((n - 1) * s for n, s in zip(shape, strides))
        if all(shape) and (last + 1) * DTYPE_BYTES[dtype] > size:
            raise ProtocolError("a tensor reaches past its own bytes")
        return TensorSpec(name, dtype, shape, strides, offset, start, size)


def _whole_numbers(values: object) -> tuple[int, ...]:
    if not isinstance(values, (list, tuple)) or len(values) > 64:
        raise ProtocolError("a list of numbers was expected")
    for value in values:
        if type(value) is not int or not 0 <= value < 1 << 48:
            raise ProtocolError("a whole number from 0 to 2**48 was expected")
    return tuple(values)


@dataclass(frozen=True)
class GpuModel:
    """The GPU that kernels are compiled for, as far as Triton or a host function may ask."""

    name: str
    arch: int  # 90 is sm_90, compute capability 9.0
    multiprocessors: int
    shared_per_block: int  # bytes that one block may use
    shared_per_multiprocessor: int  # bytes
    l2_bytes: int
    memory_bytes: int

    @property
    def target(self) -> str:
        return f"sm_{self.arch}"

    @property
    def has_tensor_cores(self) -> bool:
        """True where Triton multiplies tiles on tensor cores: before sm_80 it adds products one by one."""
        return self.arch >= 80

    @property
    def has_tensor_maps(self) -> bool:
        """True where Triton moves tiles by descriptors: before sm_90 it makes pointers and masks of them."""
        return self.arch >= FIRST_WITH_TENSOR_MAPS


@dataclass
class RecordRequest:
    """A call of the entry function without values. Arguments have no bytes: their `start` means nothing.

    `arguments` are the tensors among the call's arguments; `numbers` are the others, each [position among all
    arguments, value], where a value is a bool, a whole number, or a finite float. `constants` are module constants to
    replace, where the file has them, and MULTIPROCESSORS and CAPABILITY. `begins`: arguments that lie in the memory of
    an earlier argument, by their names, each with the earlier one's name, and how many bytes behind its address it
    begins: host code sees such addresses, though each has its own bytes here, which nothing writes.
    """

    entry: str
    arguments: list[TensorSpec]
    constants: dict[str, int] = field(default_factory=dict)
    numbers: list[list[Any]] = field(default_factory=list)
    small_dots: bool = False  # tl.dot takes tiles that no GPU's units take: examples are to be read, and run nowhere
    begins: dict[str, tuple[str, int]] = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        return {"kind": "record", **vars(self), "arguments": [spec.to_json() for spec in self.arguments]}


@dataclass
class Sample:
    """Some programs of each launch, on arguments that are not sent: their memory repeats the values of a table.

    tables: for each argument (start, bytes) of its table in the blob; None for an output, which holds poison. A table
    with an entry for each element of a vector is that vector.
    """

    programs: int
    seed: int
    tables: list[tuple[int, int] | None]

    @staticmethod
    def from_json(data: JsonObject) -> Sample:
        return Sample(data["programs"], data["seed"], [table and tuple(table) for table in data["tables"]])


@dataclass
class Mending:
    """Edits of a call's texts that are tried, one at a time, for those that make the call right.

    `results`: what the call should give, floats in float64, in the blob. `keys`: of the edits, None: all. `lines`: that
    an edit may be in, None: in any. `work`: after which no other is tried; see grader/interpreter/mends.py.
    `first_is_enough`: none is looked for after the first. `closely`: constants of fp32 count as wrong. `meant`:
    parameters of launches, each with the launch's line, whose arguments stay.
    """

    results: list[TensorSpec]
    work: int
    keys: list[str] | None = None
    lines: list[int] | None = None
    first_is_enough: bool = False
    closely: bool = False
    meant: list[tuple[int, str]] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        return {**asdict(self), "results": [spec.to_json() for spec in self.results]}

    @staticmethod
    def from_json(data: JsonObject, blob_bytes: int) -> Mending:
        results = [TensorSpec.from_json(spec, blob_bytes, MOST_ELEMENTS) for spec in data["results"]]
        return Mending(**{**data, "results": results})


@dataclass(frozen=True)
class Mend:
    """An edit of a kernel's text, or of a launch, by its key: the same in texts of the kernel for other calls.

    `kind`: what it changes, one of grader/ttir/edits.py, or the grid or an argument of a launch. `words`: what it is,
    in terms of the file. `level`: 0 for those that bring in nothing else, then 1, then 2.
    """

    key: str
    kind: str
    line: int
    words: str
    level: int


@dataclass
class InterpretRequest:
    """A recorded call, to be interpreted on these inputs; the blob holds its kernels' texts and the inputs' bytes."""

    recorded: list[int]  # a whole call, as recorded_to_json writes it: [start, bytes] in the blob
    texts: list[list[int]]  # of the call's kernels: [start, bytes] in the blob
    filename: str  # of the submission in its child: texts name it with their lines
    arguments: list[TensorSpec]
    writable: list[str] = field(default_factory=list)  # names of the arguments that the entry may write
    returns: list[str] = field(default_factory=lambda: ["z"])  # names of the results in messages
    updates: list[str] = field(default_factory=list)  # arguments that are results too, and need not be returned
    order: str | int = "forward"  # "forward", "reverse", or the seed of a random order of programs
    fill: str = "poison"  # what masked lanes of loads without `other` hold: "poison", "zero" or "lowest"
    fill_lines: list[int] | None = None  # of loads that `fill` is about: others hold "poison"; None: of all
    other: int = 0  # a number to draw from: what the language leaves open comes out otherwise; 0: as usual
    other_at: list[Any] = field(default_factory=list)  # [kind, line] of the only operations that do so; []: all do
    believe: bool = False  # values are what tl.max_contiguous says of them, as far as one thread's access reaches
    config: int = 0  # which configuration of an autotuned kernel runs, modulo their number
    tried: bool = False  # before that it is tried on the same memory, as in the first call with a key
    kept: list[str] = field(default_factory=list)  # arguments of the kernel that are put back after the trial
    count_traffic: bool = False  # distinct elements per load, summed over groups of `at_once` programs
    at_once: int = 1
    log_accesses: bool = False  # send every access, lane by lane; for small calls
    meetings: bool = False  # send where a program loads what it stores too
    traced: list[int] | None = None  # the program of each launch whose every value is sent
    sample: Sample | None = None  # then no argument has bytes: their `start` means nothing
    mending: Mending | None = None
    most_lanes: int = 0  # elements that the operations of a launch may yield; 0: as many as any kernel here needs
    limit: float = 10.0  # seconds of a core that its launches may take; then the reply tells where they are

    def to_json(self) -> JsonObject:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields["sample"] = self.sample and asdict(self.sample)
        fields["mending"] = self.mending and self.mending.to_json()
        return {"kind": "interpret", **fields, "arguments": [spec.to_json() for spec in self.arguments]}

    @staticmethod
    def from_json(header: JsonObject, blob_bytes: int) -> InterpretRequest:
        fields = {name: header[name] for name in InterpretRequest.__dataclass_fields__ if name in header}
        fields["sample"] = Sample.from_json(fields["sample"]) if fields.get("sample") else None
        fields["mending"] = Mending.from_json(fields["mending"], blob_bytes) if fields.get("mending") else None
        limits = (ANY_SIZE, ANY_SIZE) if fields["sample"] else (blob_bytes, MOST_ELEMENTS)
        fields["arguments"] = [TensorSpec.from_json(spec, *limits) for spec in header["arguments"]]
        return InterpretRequest(**fields)


FOREIGN_KERNEL, NOT_PLAIN = "foreign-kernel", "not-plain"  # kinds of failures: no kernel of the file, no plain constant


class OpenKind(StrEnum):
    """What the language leaves open: see grader/interpreter/left_open.py."""

    ADDRESS = "address"  # where tensors lie
    CAT = "cat"  # the order of tl.cat
    COMBINATION = "combination"  # the order in which a function of the file combines elements
    CONTRACTION = "contraction"  # whether a * b + c is rounded once
    DIVISION = "division"  # the quotient of a whole number and 0
    RESHAPE = "reshape"  # the order of tl.reshape(can_reorder=True), and of tl.view, tl.ravel


@dataclass(frozen=True)
class LeftOpen:
    """Operations of a line whose outcome is left open, and was another than usual. `rounds`: it may round otherwise."""

    kind: str
    line: int
    rounds: bool = False


@dataclass
class Failure:
    """An exception in the learner's code, or a result of the wrong kind.

    kind: syntax, encoding, import, load, no-entry, arity, exit, memory, host, compile, kernel, result, FOREIGN_KERNEL,
    NOT_PLAIN.
    """

    kind: str
    type: str = ""  # of the exception
    message: str = ""
    line: int = 0  # in the learner's file, 0 if unknown
    kernel: str = ""
    program: list[int] = field(default_factory=list)  # of the kernel, that shows it; empty: all may show it


# Promises to the compiler, by their names in a kernel; UNALIGNED: a run of neighbours that another run interrupts at no
# multiple of its length.
ASSUME, MULTIPLE_OF = "tl.assume", "tl.multiple_of"
MAX_CONTIGUOUS, MAX_CONSTANCY = "tl.max_contiguous", "tl.max_constancy"
UNALIGNED = "unaligned tl.max_contiguous"
GATHER = "tl.gather"  # that each index is one of the tile's
COUNTER = "range"  # that a loop's counter, one step behind the last iteration, fits its type
# The likeliest cause first: a write outside destroys what later findings look at.
FINDING_KINDS = (
    "input-written", "out-of-bounds-store", "out-of-bounds-atomic", "race-write-write", "out-of-bounds-load",
    "wild-pointer", "misaligned", "lane-conflict", "race-read-after-write", "race-write-after-read",
    "race-atomic-after-write", "load-ahead-of-store", "uninitialised-read",
)  # fmt: skip


@dataclass
class Finding:
    """Something the memory checker saw, once for each kind, argument and line. kind: one of FINDING_KINDS."""

    kind: str
    argument: str
    line: int = 0
    program: list[int] = field(default_factory=list)  # the first program that did it
    other_program: list[int] | None = None  # the other side of a race; None: several; of a load ahead: the store's line
    element: list[int] = field(default_factory=list)  # its index in the argument's shape; empty if outside the shape
    linear: int = 0  # elements from the argument's first one, may be negative
    between: bool = False  # inside the storage, but in a hole of the strided view
    neighbour: str = ""  # the argument whose memory the address really lies in
    count: int = 1  # elements
    programs: int = 1
    lanes: int = 0  # of the first program, in this access, masked ones left out
    astray: int = 0  # of these lanes, those that do it
    column: int = 0  # of the access in its line, counted from 0
    via: list[int] = field(default_factory=list)  # lines of the calls that led to it, the innermost first
    masked: bool = False  # the access has a mask
    has_other: bool = False  # a load that has a number for lanes that are masked off
    by_descriptor: bool = False
    in_loop: bool = False
    tile: list[int] = field(default_factory=list)  # shape of the access
    lane: int = 0  # how many lanes of its row of the tile come before the first one that does it
    row_start: int = -1  # where the first of these leads: elements from the argument's first one; -1: not known
    loaded: str = ""  # a variable that was loaded, and that the address is made with
    loaded_is_one: bool = False  # it is one number for all lanes
    suspects: list[int] = field(default_factory=list)  # lines that can be to blame where the access's own may not


@dataclass
class LoggedAccess:
    """A load, store or atomic of one program."""

    kind: str  # "load", "store" or "atomic"
    argument: str
    line: int = 0
    program: list[int] = field(default_factory=list)
    launch: int = 0
    elements: list[int] = field(default_factory=list)  # by lane, numbered row by row; -1: masked off, or no element


@dataclass
class Met:
    """An access that meets another access: its location, its tile, and its lanes that meet the other's, in pairs."""

    line: int
    via: list[int]  # lines of the calls that led to what was inlined there
    shape: list[int]
    lanes: list[int] = field(default_factory=list)  # numbered row by row


@dataclass
class Meeting:
    """A load and a store of the same bytes by one program of a launch; the store changes what they hold."""

    argument: str
    launch: int
    loads_first: bool
    in_one_turn: bool  # no loop leads back to the first access before the second is reached
    load: Met
    store: Met


@dataclass
class Launch:
    kernel: str
    grid: list[int]
    line: int = 0  # of the launch, in the learner's file
    atomics: bool = False
    float_sums: bool = False  # atomics that add floats
    idle: int = 0  # programs that loaded and stored nothing
    arguments: list[str] = field(default_factory=list)  # "N = 1024", "x_ptr = x + 0": plain values, and places
    unmasked_fills: list[int] = field(default_factory=list)  # lines of masked loads without `other`, lanes masked off
    updated: list[str] = field(default_factory=list)  # parameters whose memory it both reads and writes


@dataclass
class LoopCount:
    """Iterations of one loop that loads or stores, of all programs of all launches together."""

    line: int
    iterations: int = 0
    idle: int = 0  # in which a program loaded and stored nothing
    runs: int = 0  # times that a program began the loop


@dataclass
class Traffic:
    """Bytes that all programs of all launches moved for one argument."""

    argument: str
    read: int = 0
    written: int = 0
    size: int = 0  # bytes of the argument's distinct elements
    used: int = 0  # bytes that loads and stores asked for, each element once per instruction
    moved: int = 0  # bytes of the whole sectors, 32 bytes each, that these lie in
    asked: int = 0  # bytes by lanes: an element counts as often as lanes of one instruction touch it
    by_one: int = 0  # bytes that one program of a launch has read, the most that any has; counted by lanes
    item: int = 0  # bytes of an element
