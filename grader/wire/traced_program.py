"""The values that one program of a launch held, operation by operation: from the interpreter, read by the parent."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.wire.fields import build, checked
from grader.wire.frames import ProtocolError

MOST_NUMBERS = 64  # elements of a tensor whose numbers are listed
MOST_LAUNCHES = 8
MOST_STEPS = 4096  # of all programs together

KINDS = ("parameter", "carried", "value", "constant", "load", "store", "atomic", "printed", "iteration", "gap")


@dataclass
class TracedStep:
    """A value, or an iteration of a loop. kind: one of KINDS; a gap stands for iterations that are left out.

    `marks`, a character per number: "." none, "m" masked off, "?" it holds nothing.
    """

    kind: str
    line: int = 0
    variable: str = ""
    operation: str = ""  # "+", "tl.max"; "" where it only changes a shape
    calls: list[int] = field(default_factory=list)  # lines of the calls that led here, the outermost first
    depth: int = 0  # in loops
    dtype: str = ""  # "fp32", "pointer"
    shape: list[int] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)  # row by row; of pointers elements from the argument's first one
    marks: str = ""
    low: str = ""  # of the lanes that hold something and are no NaN
    high: str = ""
    nans: int = 0
    masked: int = 0  # lanes that are masked off
    outside: int = 0  # lanes that are not masked off, and lead to no element
    empty: int = 0  # lanes whose value comes from memory or lanes that hold nothing
    argument: str = ""  # that an access, or a pointer, leads to
    box: list[int] = field(default_factory=list)  # of an access: first and last index, dimension by dimension
    elements: int = 0  # of the argument, different ones
    iteration: int = 0  # of a loop, from 1; of a gap, the first that is left out
    iterations: int = 0  # all of the loop


@dataclass
class TracedProgram:
    kernel: str
    line: int = 0  # of its launch
    grid: list[int] = field(default_factory=list)
    program: list[int] = field(default_factory=list)
    steps: list[TracedStep] = field(default_factory=list)
    left_out: int = 0  # steps beyond MOST_STEPS


def traced_program(data: object) -> TracedProgram:
    """Returns the program. Raises ProtocolError for data that no interpreter of ours sends."""
    if not isinstance(data, dict) or not isinstance(data.get("steps"), list) or len(data["steps"]) > MOST_STEPS:
        raise ProtocolError("a traced program without a short list of steps")
    program = build(TracedProgram, {key: value for key, value in data.items() if key != "steps"})
    program.steps = [_step(step) for step in data["steps"]]
    return program


def _step(data: object) -> TracedStep:
    step = build(TracedStep, data)
    if step.kind not in KINDS or len(step.marks) != len(checked(step.numbers, "list[str]", "numbers")):
        raise ProtocolError("a traced step that does not fit together")
    return step
