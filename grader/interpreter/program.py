"""A kernel made ready to run: each operation of the text becomes a callable, once, for all programs and launches."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from grader.interpreter import offset_checks, promises
from grader.interpreter.control import ReadyFunction, run_region
from grader.interpreter.dtypes import Unsupported
from grader.interpreter.frame import Frame, ReadyBlock, ReadyOperation
from grader.interpreter.known_operations import ACCESSES, entry_of
from grader.interpreter.left_open import OtherOutcomes, products_in
from grader.interpreter.pipelined_loads import pipelined_loops
from grader.interpreter.registry import Maker, OperationEntry
from grader.ttir.module import Block, Module, Operation


class ReadyKernel:
    """All functions of a module, ready to run. `stages`: of its pipelined loops, as the launch asks for. `other`: the
    outcomes of operations that leave open what comes out.

    Raises Unsupported for an operation that the interpreter does not know.
    """

    def __init__(self, module: Module, stages: int = 1, other: OtherOutcomes | None = None) -> None:
        self.module, self.other = module, other
        self.pipelined = pipelined_loops(module, stages)
        self.functions: dict[str, ReadyFunction] = {}
        self.blocks: list[ReadyBlock] = []  # of all functions and regions
        leading = offset_checks.leading_to_memory(module)
        for name, function in module.functions.items():
            self._leading = {number for home, number in leading if home == name}
            self._products = products_in(list(function.walk())) if other is not None else {}
            self.functions[name] = ReadyFunction(function, self._region(function.blocks))
        self.entry = self.functions[module.entry.name]

    def begin_call(self) -> None:
        """Marks all blocks as not yet run."""
        for block in self.blocks:
            block.has_run = False

    def lines(self, have_run: bool) -> set[int]:
        """Returns the lines of the blocks that have run in this call, or of the blocks that have not."""
        return set().union(*(block.lines for block in self.blocks if block.has_run == have_run))

    @cached_property
    def waits(self) -> bool:
        """True where the kernel uses an atomic's result: programs may wait for each other, and run one at a time."""
        used: set[tuple[str, int]] = set()
        returned: set[tuple[str, int]] = set()
        for name, function in self.module.functions.items():
            for operation in function.walk():
                used |= {(name, number) for number in operation.operands}
                used |= {(name, number) for way in operation.successors for number in way.operands}
                if operation.name in ACCESSES and ACCESSES[operation.name].access == "atomic":
                    returned |= {(name, number) for number in operation.results}
        return bool(used & returned)

    @cached_property
    def largest(self) -> int:
        """The elements of its largest tensor."""
        operations = (one for function in self.module.functions.values() for one in function.walk())
        shapes = (kind.shape for one in operations for kind in (*one.operand_types, *one.result_types))
        return max(map(math.prod, shapes), default=1)

    def _region(self, blocks: tuple[Block, ...]) -> tuple[ReadyBlock, ...]:
        return tuple(self._block(block) for block in blocks)

    def _block(self, block: Block) -> ReadyBlock:
        *operations, last = block.operations
        steps = [self.step(operation) for operation in operations]
        lanes = sum(kind.lanes for operation in operations for kind in operation.result_types)
        self.blocks.append(ReadyBlock(block.arguments, steps, last, lanes, block.operations[0].place, block))
        return self.blocks[-1]

    def step(self, operation: Operation) -> ReadyOperation:
        try:
            return self._made_ready(operation, entry_of(operation.name))
        except Unsupported as what:
            what.line = what.line or operation.place.line
            raise

    def _made_ready(self, operation: Operation, entry: OperationEntry) -> ReadyOperation:
        leads = bool(self._leading.intersection(operation.results))
        if not leads and (contracted := self._contracted(operation)) is not None:
            return contracted
        run, stateful = self._prepared(operation, entry), entry.stateful
        checked = offset_checks.with_checks(operation, run, stateful, leads)
        run, stateful = (run, stateful) if checked is None else (checked, True)
        if promises.has_hints(operation):
            run, stateful = promises.with_hints(operation, run, stateful), True
        return ReadyOperation(run, operation.operands, operation.results, stateful, operation)

    def _prepared(self, operation: Operation, entry: OperationEntry) -> Callable:
        if entry.fold:
            return _Fold(operation, self._region(operation.regions[0]), self._maker(entry))
        if entry.control:
            return entry.make(operation, [self._region(blocks) for blocks in operation.regions], self.functions)
        return self._maker(entry)(operation)

    def _maker(self, entry: OperationEntry) -> Maker:
        other = self.other
        if other is None:
            return entry.make
        return lambda operation, *evaluate: other.of(operation, *evaluate) or entry.make(operation, *evaluate)

    def _contracted(self, operation: Operation) -> ReadyOperation | None:
        """Returns a sum or a difference of a product as one operation with one rounding; None for any other."""
        if self.other is None or operation.name not in ("arith.addf", "arith.subf"):
            return None
        at = next((at for at in (0, 1) if operation.operands[at] in self._products), None)
        if at is None:
            return None
        product = self._products[operation.operands[at]]
        run = self.other.contracted(operation, at)
        operands = (*product.operands, operation.operands[1 - at])
        return None if run is None else ReadyOperation(run, operands, operation.results, False, operation)


class _Fold:
    """A reduction, a scan or tt.map_elementwise. Its region is evaluated as if each lane were a program."""

    frame: Frame  # of the run under way

    def __init__(self, operation: Operation, region: tuple[ReadyBlock, ...], make: Maker) -> None:
        self.region = region
        self.prepared = make(operation, self.evaluate)

    def __call__(self, frame: Frame, *operands: np.ndarray) -> Any:
        self.frame = frame
        try:
            return self.prepared(*operands)
        finally:
            del self.frame  # it holds all memory of its call, and a kernel is kept ready for others

    def evaluate(self, arguments: list[np.ndarray]) -> list[np.ndarray]:
        shape = np.broadcast_shapes(*(argument.shape for argument in arguments))
        flat = [np.broadcast_to(argument, shape).reshape(-1) for argument in arguments]
        inner = Frame(self.frame.batch, self.frame.values, None, flat[0].size)
        for number, value in zip(self.region[0].arguments, flat):
            inner.values[number] = value
        results = run_region(self.region, inner)
        return [np.broadcast_to(result, flat[0].shape).reshape(shape) for result in results]
