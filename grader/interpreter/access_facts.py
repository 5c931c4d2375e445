"""Findings are told with what the text says of their access: its mask, its place, what its address is made with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from grader.interpreter.known_operations import ACCESSES
from grader.interpreter.suspect_lines import SuspectLines
from grader.ttir.data_flow import reached, sources_of
from grader.ttir.module import Module, Operation
from grader.wire.messages import Finding

OF_SHARED_PLACES = ("race-write-write", "lane-conflict")  # kinds of findings


class AccessFacts:
    """Facts about the accesses of some kernels, worked out when the first is asked for: only findings need them."""

    def __init__(
        self, kernels: Iterable[tuple[Module, Sequence[Sequence[str]]]], shapes: dict[str, tuple[int, ...]]
    ) -> None:
        """kernels: each with the values of its parameters in each launch. `shapes`: of the tensors, by name."""
        self.given, self.shapes = {id(module): (module, given) for module, given in kernels}, shapes
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
