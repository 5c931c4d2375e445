"""Tiles in shared memory that a copy overwrites while a product on tensor cores may still read them.

From sm_90 on, a product (wgmma) runs on by itself until the program waits for it, and the compiler states how many of
the last products may still be unfinished after that wait. Loads that run ahead fill slots of shared memory in turn.
Either is right alone. Together they are wrong if there are too few slots, as happens: Triton 3.6 to 3.9 give a tile
that mma.sync reads first, and wgmma later, one slot too few. The loop is followed for a few iterations, with numbers
for its counters of slots; whatever cannot be followed is left out.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from grader.gpu.laid_out import LaidOut, LaidOutBlock, LaidOutOperation

RUNS_ON = re.compile(r"wgmma\.wait_group\.sync\.aligned [1-9]")  # in PTX: a product may be unfinished
PENDING = re.compile(r"\bpendings = (\d+)")
CONSTANT = re.compile(r"\bvalue = (-?\d+|true|false)\b")
PREDICATE = re.compile(r"\bpredicate = (\d+)")
PLACES = re.compile(r"memdesc<(\d+)x")
COPIES = (
    "ttg.async_copy_global_to_local", "ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather", "ttg.local_store",
)  # fmt: skip
SAME_PLACE = ("ttg.memdesc_subslice", "ttg.memdesc_trans", "ttg.memdesc_reshape", "ttg.memdesc_reinterpret")
ARITHMETIC = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul, "arith.andi": operator.and_,
    "arith.xori": operator.xor, "arith.ori": operator.or_,
}  # fmt: skip
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)  # by MLIR's numbers
MORE_TURNS = 3  # iterations beyond the number of slots (`places`): all slots have been filled again by then


@dataclass(frozen=True)
class SharedSlot:
    """A slot of shared memory: an allocation's number, its count of slots, and the slot's index, None if unknown."""

    allocation: int
    places: int
    place: int | None = None


@dataclass(frozen=True)
class OverwrittenTile:
    """The lines of the load and of the product in the submission, 0 if unknown."""

    load: int
    product: int


Value = SharedSlot | int | None


def overwritten_tile(laid_out: LaidOut) -> OverwrittenTile | None:
    """Returns the first tile of a kernel that is overwritten too early; None if there is none."""
    values: dict[int, Value] = {}
    for step in _in_order(laid_out.blocks):
        if step.name == "scf.for" and not _has_loop(step):
            if tile := _Loop(step, values).overwritten():
                return tile
        else:
            _evaluate(step, values)
    return None


def _in_order(blocks: list[LaidOutBlock]) -> Iterator[LaidOutOperation]:
    for block in blocks:
        for step in block.steps:
            yield step
            if step.name != "scf.for" or _has_loop(step):
                for region in step.regions:
                    yield from _in_order(region)


def _has_loop(loop: LaidOutOperation) -> bool:
    return any(step.name == "scf.for" for region in loop.regions for step in _in_order(region))


@dataclass
class _Loop:
    """An innermost loop. `values`: the known values in front of it, by number."""

    step: LaidOutOperation
    values: dict[int, Value]
    _unfinished: list[tuple[LaidOutOperation, list[SharedSlot]]] = field(
        default_factory=list
    )  # products, and the tiles that they read

    def overwritten(self) -> OverwrittenTile | None:
        (block,) = self.step.regions[0]
        values = dict(self.values)
        carried = [values.get(value) for value in self.step.operands[3:]]
        most = max((value.places for value in values.values() if isinstance(value, SharedSlot)), default=0)
        for _ in range(most + MORE_TURNS):
            values.update(zip(block.arguments, [None, *carried]))
            for step in _in_order([block]):
                if tile := self._overwritten_by(step, values):
                    return tile
                _evaluate(step, values)
            carried = [values.get(value) for value in block.steps[-1].operands]
        return None

    def _overwritten_by(self, step: LaidOutOperation, values: dict[int, Value]) -> OverwrittenTile | None:
        tiles = [tile for value in step.operands if isinstance(tile := values.get(value), SharedSlot)]
        if step.name == "ttng.warp_group_dot":
            self._unfinished.append((step, tiles))
        if (left := _left_unfinished(step)) is not None:
            del self._unfinished[: max(0, len(self._unfinished) - left)]
        if step.name in COPIES:
            for product, read in self._unfinished:
                if any(tile in read and tile.place is not None for tile in tiles):
                    return OverwrittenTile(step.at[0], product.at[0])
        return None


def _left_unfinished(step: LaidOutOperation) -> int | None:
    """Returns the number of last products that may be unfinished after this step; None if it waits for none."""
    if step.name == "ttng.warp_group_dot_wait":
        match = PENDING.search(step.attributes)
        return int(match[1]) if match else 0
    return 0 if step.name == "ttng.warp_group_dot" and "isAsync = true" not in step.attributes else None


def _evaluate(step: LaidOutOperation, values: dict[int, Value]) -> None:
    """Adds the results of a step to `values`, as far as slots depend on them; None stands for an unknown result."""
    operands = [values.get(value) for value in step.operands]
    if step.name == "ttng.warp_group_dot_wait":  # its results are its operands
        values.update(zip(step.results, operands))
    elif step.results:
        values.update(dict.fromkeys(step.results))
        values[step.results[0]] = _result(step, operands)


def _result(step: LaidOutOperation, operands: list[Value]) -> Value:
    if step.name == "arith.constant":
        match = CONSTANT.search(step.attributes)
        return (
            None
            if match is None or "dense" in step.attributes
            else int({"true": 1, "false": 0}.get(match[1], match[1]))
        )
    if step.name == "ttg.local_alloc":
        places = PLACES.search(step.result_types[0])
        return None if operands or places is None else SharedSlot(step.results[0], int(places[1]))
    if step.name == "ttg.memdesc_index" and isinstance(operands[0], SharedSlot):
        place = 0 if operands[0].places == 1 else operands[1]
        return replace(operands[0], place=place if isinstance(place, int) else None)
    if step.name in SAME_PLACE:
        return operands[0]
    numbers = [number for number in operands if isinstance(number, int)]
    return _number(step, numbers) if len(numbers) == len(operands) else None


def _number(step: LaidOutOperation, operands: list[int]) -> int | None:
    if step.name in ARITHMETIC:
        return ARITHMETIC[step.name](*operands)
    if step.name == "arith.select":
        return operands[1] if operands[0] else operands[2]
    if step.name == "arith.cmpi":
        match = PREDICATE.search(step.attributes)
        comparison = int(match[1]) if match is not None else len(COMPARISONS)
        return int(COMPARISONS[comparison](*operands)) if comparison < len(COMPARISONS) else None
    return None
