"""Loads that a pipelined loop begins before a store of an earlier iteration, and that read what this store writes.

With n stages the compiler begins the loads of an iteration n - 1 iterations ahead, and does not ask whether a store
lies in between (Triton 3.6 to 3.9; on an H200 with 3.6, 126976 of 131072 numbers of a loop that reads what the
iteration before has stored came out wrong with 3 stages, none with 1 or 2). tl.range(..., num_stages=n) asks for it for
all loads of the loop, num_stages of a launch for those that lead to a product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from grader.interpreter.shadow import Shadow, Units
from grader.ttir.module import Block, Module, Operation

DOTS = ("tt.dot", "tt.dot_scaled")
STAGES = "tt.num_stages"  # of a loop, in the text
NEVER = -(1 << 30)


@dataclass
class PipelinedLoop:
    """A loop under way. `lines`: of the loads that begin `stages` - 1 iterations ahead."""

    stages: int
    lines: frozenset[int]
    iteration: int = 0
    stored: dict[Shadow, np.ndarray] = field(default_factory=dict)  # iteration, program and line of the last, by unit

    def note_store(self, shadow: Shadow, units: Units, owners: np.ndarray, line: int) -> None:
        if shadow not in self.stored or len(self.stored[shadow]) != shadow.count:
            self.stored[shadow] = np.full((shadow.count, 3), NEVER, np.int64)
        self.stored[shadow][units] = np.stack(np.broadcast_arrays(self.iteration, owners, line), axis=1)

    def early(
        self, shadow: Shadow, units: Units, owners: np.ndarray, line: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns for each unit of a load whether the load would have begun before the program's own store, and the
        store's line; None if no unit is such."""
        known = self.stored.get(shadow)
        if line not in self.lines or known is None or len(known) != shadow.count:
            return None
        iterations, programs, lines = known[units].T
        ago = self.iteration - iterations
        bad = (ago > 0) & (ago < self.stages) & (programs == owners)
        return (bad, lines) if bad.any() else None


def pipelined_loops(module: Module, stages: int) -> dict[Operation, PipelinedLoop]:
    """Returns the pipelined loops of a kernel that store as well as load. stages: as the launch asks for."""
    loops = {}
    for function in module.functions.values():
        for operation in function.walk():
            if operation.name == "scf.for" and (loop := _pipelined(operation, stages)) is not None:
                loops[operation] = loop
    return loops


def _pipelined(loop: Operation, stages: int) -> PipelinedLoop | None:
    (body,), own = loop.regions[0], int(loop.attributes.get(STAGES, 0))
    if not any(operation.name in ("tt.store", "tt.atomic_rmw") for operation in loop.walk()):
        return None
    loads = [operation for operation in body.operations if operation.name == "tt.load"]
    if own == 0:
        into_products = set(_leading_to_products(body))
        loads = [load for load in loads if into_products.intersection(load.results)]
    if max(own or stages, 1) == 1 or not loads:
        return None
    return PipelinedLoop(own or stages, frozenset(load.place.line for load in loads))


def _leading_to_products(body: Block) -> Iterator[int]:
    """Yields the values of a loop's body from which its products are made."""
    wanted: set[int] = set()
    for operation in reversed(body.operations):
        if operation.name in DOTS:
            wanted |= set(operation.operands[:2])
        elif wanted.intersection(operation.results):
            yield from operation.results
            wanted |= set(operation.operands)
