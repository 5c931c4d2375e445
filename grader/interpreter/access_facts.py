"""Findings are told with what the text says of their access: its mask, its place, what its address is made with.

The checker sees an address go astray, and the learner reads a sentence about a line. What the sentence needs stands in
the text alone, and is read from it when there is a finding, so that a right kernel does not pay for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from grader.interpreter.known_operations import ACCESSES
from grader.ttir.data_flow import CONTROL, Value, reached, sources_of
from grader.ttir.module import Dense, Module, Operation
from grader.wire.messages import Finding

OF_SHARED_PLACES = ("race-write-write", "lane-conflict")  # kinds of findings
SAME_NUMBERS = ("tt.splat", "tt.broadcast", "tt.expand_dims", "arith.extsi", "arith.extui", "arith.trunci")
LINEAR = (*SAME_NUMBERS, *CONTROL, "tt.call", "tt.addptr", "arith.addi", "arith.subi", "arith.muli")
GIVEN = ("arith.constant", "tt.make_range", *ACCESSES)  # no line is to blame for these
NO_STATEMENT = (*CONTROL, "tt.call", *SAME_NUMBERS)  # what they hand on was made elsewhere
# Predicates of a condition `number < limit`, signed or unsigned, either way round: where the limit stands.
LIMIT_OF = {2: 1, 6: 1, 4: 0, 8: 0}
ELSEWHERE = -1  # stands for lines that the text does not tell: of a launch, of a constant


class AccessFacts:
    """Facts about the accesses of some kernels, worked out when the first is asked for: only findings need them."""

    def __init__(
        self, kernels: Iterable[tuple[Module, Sequence[Sequence[str]]]], shapes: dict[str, tuple[int, ...]]
    ) -> None:
        """kernels: each with the values of its parameters in each launch. `shapes`: of the tensors, by name."""
        self.given, self.shapes = {id(module): (module, values) for module, values in kernels}, shapes
        self._lines: dict[int, SuspectLines] = {}  # by the id of a module
        self._homes = {operation: (module, function.name) for module, _ in self.given.values()
                       for function in module.functions.values() for operation in function.walk()}  # fmt: skip

    def of(self, access: Operation, finding: Finding) -> dict[str, Any]:
        """Returns the facts about an access by the names of a Finding's fields."""
        place, by_descriptor = access.place, access.name.startswith("tt.descriptor")
        entry = ACCESSES.get(access.name)
        masked = entry is not None and entry.mask_of(access) is not None
        return {
            "column": place.column,
            "via": list(place.via),
            "masked": masked or bool(access.attributes.get("boundaryCheck")),
            "has_other": access.name == "tt.load" and len(access.operands) > 2,
            "by_descriptor": by_descriptor,
            "tile": list(access.operand_types[0].shape) if access.operand_types else [],
            "in_loop": access in self._homes and access in set(self._homes[access][0].in_loops()),
            **(self._loaded(access) if access in self._homes and entry is not None else {}),
            **(self._suspects(access, finding) if access in self._homes and entry is not None else {}),
        }

    def _suspects(self, access: Operation, finding: Finding) -> dict[str, list[int]]:
        module, home = self._homes[access]
        lines = self._lines.get(id(module)) or SuspectLines(*self.given[id(module)])
        self._lines[id(module)] = lines
        if finding.kind in OF_SHARED_PLACES:
            return {"suspects": lines.of_a_shared_place(home, access)}
        if not finding.kind.startswith("out-of-bounds"):
            return {}
        before, inside = finding.linear < 0 and not finding.between, finding.astray < finding.lanes
        shape = self.shapes.get(finding.argument, ())
        return {"suspects": lines.outside(home, access, before, inside, shape)}

    def _loaded(self, access: Operation) -> dict[str, Any]:
        """Returns the variable nearest to the address that was loaded itself, and whether it is one number; {} if there
        is none."""
        module, home = self._homes[access]
        entry = ACCESSES[access.name]
        mask = entry.mask_of(access)
        roots = [access.operands[at] for at in entry.leading(access) if at != mask]
        made = {
            (name, result): operation for operation, (_, name) in self._homes.items() for result in operation.results
        }
        for value in reached([(home, root) for root in roots], sources_of(module, ACCESSES)):
            operation = made.get(value)
            if operation is not None and operation.name in ACCESSES and operation.place.variable:
                return {"loaded": operation.place.variable, "loaded_is_one": not operation.result_types[0].shape}
        return {}


class SuspectLines:
    """The lines that can be to blame for an access that goes astray: those that make its address, or its mask.

    A line of an access is where a mistake shows. Where it was made, the ways of its values tell: what a mask tests is
    not to blame where the mask itself is as masks are, and program numbers, lanes and what is loaded are taken as they
    come.
    """

    def __init__(self, module: Module, given: Sequence[Sequence[str]]) -> None:
        """`given`: the values of the kernel's parameters, in each launch."""
        entry, self._edges = module.entry, sources_of(module, ACCESSES)
        parameters = zip(entry.blocks[0].arguments, zip(*given))
        self._given = {(entry.name, number): set(values) for number, values in parameters}
        self._makers: dict[Value, Operation] = {}
        self._keys: dict[Value, object] = {}  # equal for values that are computed alike from the same values
        known: dict[tuple, int] = {}
        for name, function in module.functions.items():
            for one in function.walk():
                self._makers |= {(name, result): one for result in one.results}
                if len(one.results) == 1 and not one.regions and one.name not in (*ACCESSES, "tt.call"):
                    keys = tuple(self._key((name, operand)) for operand in one.operands)
                    form = (one.name, str(one.attributes), keys)
                    self._keys[name, one.results[0]] = (
                        keys[0] if one.name in SAME_NUMBERS else known.setdefault(form, len(known))
                    )

    def of_a_shared_place(self, home: str, access: Operation) -> list[int]:
        """Returns the lines that can be to blame where several programs, or lanes, store to one place."""
        return self._lines(self._address(home, access), GIVEN)

    def outside(self, home: str, access: Operation, before: bool, inside: bool, shape: tuple[int, ...]) -> list[int]:
        """Returns the lines that can be to blame for an access outside of its tensor, which has this shape.

        before: it lies in front of the tensor; inside: some lanes of it are inside.
        """
        address, mask = self._address(home, access), self._mask(home, access)
        if before:
            return self._subtractions(address) or self._lines(address, GIVEN)
        if mask is None:
            return [access.place.line] if inside else self._lines(address, (*GIVEN, "tt.get_program_id"))
        conditions = self._conditions(mask)
        if odd := {one.place.line for one in conditions if one.attributes.get("predicate") not in LIMIT_OF}:
            return sorted(odd)
        limits = [self._numbers(home, one.operands[LIMIT_OF[one.attributes["predicate"]]]) for one in conditions]
        sizes = {str(math.prod(shape[first:end])) for end in range(len(shape) + 1) for first in range(end)}
        numbers = [(home, one.operands[1 - LIMIT_OF[one.attributes["predicate"]]]) for one in conditions]
        suspects = self._lines(address, (*GIVEN, "tt.get_program_id"), {self._key(number) for number in numbers})
        cut = [tile for tile in access.operand_types[0].shape if tile > 1 and all(size % tile for size in shape)]
        tests_each = sum(condition.operand_types[0].lanes > 1 for condition in conditions) >= len(cut)
        if any(sizes and limit is not None and not limit <= sizes for limit in limits):
            return [access.place.line, ELSEWHERE]
        return suspects if tests_each and None not in limits else sorted({*suspects, *self._lines([mask], GIVEN)})

    # ---- ways of values ----------------------------------------------------------------------------------------------

    def _address(self, home: str, access: Operation) -> list[Value]:
        entry = ACCESSES[access.name]
        mask = entry.mask_of(access)
        return [(home, access.operands[at]) for at in entry.leading(access) if at != mask]

    def _mask(self, home: str, access: Operation) -> Value | None:
        at = ACCESSES[access.name].mask_of(access)
        return None if at is None else (home, access.operands[at])

    def _key(self, value: Value) -> object:
        return self._keys.get(value, value)

    def _lines(self, roots: Iterable[Value], last: Collection[str], ends: Collection[object] = ()) -> list[int]:
        """Returns the lines that compute what these values are made of, up to `ends` and to operations of `last`."""
        makers = self._makers_of(roots, lambda maker: maker.name not in last, ends)
        return sorted({maker.place.line for _, maker in makers if maker.name not in NO_STATEMENT} - {0})

    def _subtractions(self, roots: Iterable[Value]) -> list[int]:
        """Returns the lines that subtract, or take a negative number, on a way that keeps the sign of a sum."""
        lines = set()
        for home, maker in self._makers_of(roots, lambda maker: maker.name in LINEAR):
            taken = [self._numbers(home, operand) or () for operand in maker.operands]
            negative = any(number.startswith("-") for numbers in taken for number in numbers)
            if maker.name == "arith.subi" or negative and maker.name not in NO_STATEMENT:
                lines.add(maker.place.line)
        return sorted(lines - {0})

    def _makers_of(
        self, roots: Iterable[Value], through: Callable[[Operation], bool], ends: Collection[object] = ()
    ) -> Iterator[tuple[str, Operation]]:
        """Yields the operations that these values are made of, and the functions where they stand, on ways `through`
        operations alone and not beyond `ends`."""
        waiting, seen = list(roots), set[Value]()
        while waiting:
            value = waiting.pop()
            maker = self._makers.get(value)
            if value in seen or self._key(value) in ends or maker is not None and not through(maker):
                continue
            seen.add(value)
            waiting += self._edges.get(value, ())
            if maker is not None:
                yield value[0], maker

    def _conditions(self, mask: Value) -> list[Operation]:
        """Returns the comparisons that have to hold all in a lane that takes part, but for those that keep numbers at 0
        or above; [] where it is not so simple."""
        conditions, waiting, seen = [], [mask], set[Value]()
        while waiting:
            value = waiting.pop()
            maker = self._makers.get(value)
            if maker is None or maker.name not in (*SAME_NUMBERS, "arith.andi", "arith.cmpi"):
                return []
            if maker.name != "arith.cmpi":
                waiting += [(value[0], operand) for operand in maker.operands if (value[0], operand) not in seen]
                seen.update(waiting)
            elif all(self._numbers(value[0], operand) != {"0"} for operand in maker.operands):
                conditions.append(maker)
        return conditions

    def _numbers(self, home: str, operand: int) -> set[str] | None:
        """Returns what an operand holds, in all launches; None where it is neither a parameter nor a constant."""
        value: Value = home, operand
        while (maker := self._makers.get(value)) is not None and maker.name in SAME_NUMBERS:
            value = home, maker.operands[0]
        if maker is None or maker.name != "arith.constant":
            return self._given.get(value)
        number = maker.attributes["value"]
        return {str(constant) for constant in (number.values if isinstance(number, Dense) else (number,))}
