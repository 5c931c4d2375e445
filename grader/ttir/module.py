"""The contents of the compiler's text: functions of blocks of operations on numbered values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


class BadText(ValueError):
    """The text is not TTIR as the parser knows it; the message says what was found, and where."""


@dataclass(frozen=True)
class Type:
    """The type of a number, a pointer, a descriptor of blocks, a block pointer, or a tensor of numbers or pointers.

    element: i1, i8 ... i64, f16, bf16, f32, f64, f8E4M3FN ...; for a pointer or a descriptor, the element it leads to;
    si32, ui8 ... only for descriptors; for a pointer to pointers "!tt.ptr<...>", as in the text.
    shape: of the tensor, or of the descriptor's block; () for a scalar, since every tensor has a dimension.
    """

    element: str
    shape: tuple[int, ...] = ()
    kind: str = "number"  # "number", "pointer", "descriptor", "block pointer" (Triton 3.7 and older, before make_ttir)

    @cached_property
    def lanes(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class SourcePlace:
    """The location of an operation in the learner's file; 0 and "" where the text does not say."""

    line: int = 0
    variable: str = ""  # that its result is assigned to
    # Lines of the calls that led to what was inlined here, the innermost first.
    via: tuple[int, ...] = field(default=(), compare=False)
    column: int = field(default=0, compare=False)  # of its last argument, as a rule, counted from 0


@dataclass(frozen=True)
class Dense:
    """A tensor constant; `values` holds one value where all elements are the same."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Successor:
    block: int  # its number in the region
    operands: tuple[int, ...]


@dataclass(eq=False)
class Operation:
    """An operation on numbered values. A function numbers its values from 0, each once.

    `operands` and `results` are numbers of values.
    """

    name: str
    operands: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    operand_types: tuple[Type, ...] = ()
    result_types: tuple[Type, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)  # int, float, bool, str, list of these, Dense
    regions: tuple[tuple[Block, ...], ...] = ()
    successors: tuple[Successor, ...] = ()
    place: SourcePlace = SourcePlace()

    def walk(self) -> Iterator[Operation]:
        """Yields this operation and all operations inside of its regions."""
        yield self
        for region in self.regions:
            for block in region:
                for operation in block.operations:
                    yield from operation.walk()


@dataclass(eq=False)
class Block:
    arguments: tuple[int, ...]
    types: tuple[Type, ...]
    operations: tuple[Operation, ...]  # the last one is a terminator
    places: tuple[SourcePlace, ...] = ()  # of the arguments, which variables they are


@dataclass(eq=False)
class Function:
    name: str
    public: bool
    names: tuple[str, ...]  # of the parameters, as far as the text tells
    blocks: tuple[Block, ...]  # the first one's arguments are the parameters
    result_types: tuple[Type, ...]
    values: int  # how many numbers of values it uses
    promises: tuple[dict[str, Any], ...] = ()  # of each parameter, such as {"tt.divisibility": 16}

    def walk(self) -> Iterator[Operation]:
        for block in self.blocks:
            for operation in block.operations:
                yield from operation.walk()

    def repeated(self) -> Iterator[Operation]:
        """Yields the operations of its loops; those of blocks that jumps lead back to as well."""
        for loop in self.walk():
            if loop.name in LOOPS:
                yield from (operation for operation in loop.walk() if operation is not loop)
        ways = {
            number: [way.block for way in block.operations[-1].successors] for number, block in enumerate(self.blocks)
        }
        for number, block in enumerate(self.blocks):
            if number in _reached(ways, ways[number]):
                yield from (inner for operation in block.operations for inner in operation.walk())


def _reached(ways: dict[int, list[int]], first: list[int]) -> set[int]:
    reached, waiting = set[int](), list(first)
    while waiting:
        block = waiting.pop()
        if block not in reached:
            reached.add(block)
            waiting += ways[block]
    return reached


LOOPS = ("scf.for", "scf.while")


@dataclass(eq=False)
class Module:
    functions: dict[str, Function]

    def in_loops(self) -> set[Operation]:
        """Returns the operations that stand in a loop of their function, or in a function that a loop calls."""
        operations: set[Operation] = set()
        waiting = [operation for function in self.functions.values() for operation in function.repeated()]
        while waiting:
            operation = waiting.pop()
            if operation not in operations:
                operations.add(operation)
                callee = self.functions.get(operation.attributes["callee"]) if operation.name == "tt.call" else None
                waiting += [] if callee is None else list(callee.walk())
        return operations

    @cached_property
    def entry(self) -> Function:
        """The kernel: the only public function."""
        return next(function for function in self.functions.values() if function.public)
