"""Facts of a kernel as its text states them, for explanations: what is masked, rounded, stored, and where.

A sentence about a kernel asks here and not the learner's Python: a mask that comes through a helper function, or is
None, is plain in the compiler's text and hidden in the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from grader.ttir.data_flow import CONTROL, Value, reached, sources_of
from grader.ttir.module import Dense, Module, Operation

OF_16_BITS = {"f16": "fp16", "bf16": "bf16"}
STORES = ("tt.store", "tt.descriptor_store", "tt.descriptor_scatter", "tt.descriptor_reduce", "tt.atomic_rmw",
          "tt.atomic_cas", "tt.atomic_store")  # fmt: skip
CONVERSIONS = ("arith.truncf", "tt.fp_to_fp", "arith.sitofp", "arith.uitofp")
ARITHMETIC = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf", "tt.precise_divf")
ADDS_UP = ("arith.addf", "arith.mulf")
CHOOSES = ("arith.maxnumf", "arith.maximumf", "arith.minnumf", "arith.minimumf", "arith.select", "tt.clampf")
SAME_NUMBERS = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "arith.extf", "arith.truncf")
HAND_ON = (*SAME_NUMBERS, *CHOOSES, *CONTROL, "tt.call", "tt.trans", "tt.join", "tt.split", "tt.cat", "tt.gather")
FOLDS = ("tt.reduce", "tt.scan")
TF32 = 0  # of a product's inputPrecision


@dataclass(frozen=True)
class Rounding:
    """A place where a kernel rounds to 16 bits what it computes with afterwards."""

    line: int
    dtype: str  # "fp16" or "bf16"


class KernelFacts:
    """The facts of one kernel, each worked out when it is asked for."""

    def __init__(self, module: Module) -> None:
        self.module = module

    @cached_property
    def operations(self) -> list[Operation]:
        return [operation for function in self.module.functions.values() for operation in function.walk()]

    def named(self, *names: str) -> list[Operation]:
        return [operation for operation in self.operations if operation.name in names]

    @cached_property
    def axes(self) -> dict[int, int]:
        """The axes of the grid that it asks for, and uses; each with its first line."""
        lines: dict[int, int] = {}
        for operation in sorted(self.named("tt.get_program_id"), key=lambda operation: operation.place.line):
            lines.setdefault(int(operation.attributes["axis"]), operation.place.line)
        return lines

    @property
    def store_lines(self) -> list[int]:
        return sorted({operation.place.line for operation in self.named(*STORES)})

    @property
    def early_end_lines(self) -> list[int]:
        """The lines of conditions that end a program: the text branches there, and for no other reason."""
        return sorted({operation.place.line for operation in self.named("cf.cond_br")})

    @property
    def stores_only_in_loops(self) -> bool:
        """True if the kernel stores, and each store stands in a loop."""
        stores, repeated = self.named(*STORES), self.module.in_loops()
        return bool(stores) and all(store in repeated for store in stores)

    @property
    def uses_no_stride(self) -> bool:
        """True if parameters are called strides, and the kernel uses none of them."""
        entry = self.module.entry
        strides = [at for at, name in zip(entry.blocks[0].arguments, entry.names) if "stride" in name]
        return bool(strides) and not any(self._made_of.get((entry.name, at)) for at in strides)

    def line_without_strides(
        self, pointers: Collection[str], numbers: Mapping[str, int], strides: Iterable[int]
    ) -> int:
        """Returns the only line that adds offsets to these parameters, if a number that is one of these strides goes
        into none of them, and the kernel uses a parameter that holds it nowhere; else 0. `numbers`: what other
        parameters hold, by name."""
        home, arguments = self.module.entry.name, self.module.entry.blocks[0].arguments
        parameters = dict(zip(self.module.entry.names, arguments))
        roots = {(home, parameters[name]) for name in pointers if name in parameters}
        adds = [
            operation for operation in self.named("tt.addptr")
            if not roots.isdisjoint(reached([(self._homes[operation], operation.operands[0])], self._sources))
        ]  # fmt: skip
        offsets = {*reached([(self._homes[add], add.operands[1]) for add in adds], self._sources)}
        used = {number for name, number in numbers.items() if (home, parameters.get(name, -1)) in offsets}
        lines = {self._line_of_offsets(add) for add in adds if not add.place.via}
        taken = {operand for operation in self.module.entry.walk() for operand in operation.operands}
        idle = {number for name, number in numbers.items() if parameters.get(name) not in taken}
        return lines.pop() if len(lines) == 1 and idle & set(strides) - used else 0

    def _line_of_offsets(self, add: Operation) -> int:
        """Returns the line that adds up the offsets of rows and of columns, where a variable holds their sum; else that
        which adds them to a pointer."""
        home, origin = self._homes[add], self._origin(add, 1)
        makers = (self._makers.get(value) for value in reached([(home, add.operands[1])], self._sources))
        indices = {maker for maker in makers if maker is not None and maker.name == "tt.make_range"}
        return origin.place.line if origin is not None and len(indices) > 1 else add.place.line

    @property
    def tf32_lines(self) -> list[int]:
        """The lines of products that cut operands of fp32 to tf32."""
        dots = (operation for operation in self.named("tt.dot") if operation.operand_types[0].element == "f32")
        return sorted({dot.place.line for dot in dots if dot.attributes.get("inputPrecision") == TF32})

    @property
    def narrowing_lines(self) -> list[int]:
        """The lines that round fp32 to 16 bits, for whatever use."""
        narrow = (one for one in self.named(*CONVERSIONS) if one.result_types[0].element in OF_16_BITS)
        return sorted({one.place.line for one in narrow if one.operand_types[0].element in ("f32", "f64")})

    @property
    def rounded_operands(self) -> list[int]:
        """The lines that round to 16 bits, in front of a product, what was computed or held in fp32."""
        rounded = (self._origin(dot, at) for dot in self.named("tt.dot") for at in (0, 1))
        return sorted({one.place.line for one in rounded if one is not None and one.name in CONVERSIONS})

    @cached_property
    def roundings(self) -> list[Rounding]:
        """The places where it rounds to 16 bits what it computes with afterwards, products of tiles left out."""
        roundings: dict[int, Rounding] = {}
        for home, operation in self._with_homes():
            dtype = OF_16_BITS.get(operation.result_types[0].element) if operation.result_types else None
            if dtype is None or not self._loses_digits(home, operation):
                continue
            roundings.setdefault(operation.place.line, Rounding(operation.place.line, dtype))
        return sorted(roundings.values(), key=lambda rounding: rounding.line)

    # ---- ways of values ----------------------------------------------------------------------------------------------

    def _with_homes(self) -> Iterator[tuple[str, Operation]]:
        for name, function in self.module.functions.items():
            for operation in function.walk():
                yield name, operation

    @cached_property
    def _makers(self) -> dict[Value, Operation]:
        return {(home, value): operation for home, operation in self._with_homes() for value in operation.results}

    @cached_property
    def _homes(self) -> dict[Operation, str]:
        return {operation: home for home, operation in self._with_homes()}

    @cached_property
    def _sources(self) -> dict[Value, list[Value]]:
        return sources_of(self.module)

    @cached_property
    def _made_of(self) -> dict[Value, list[Value]]:
        """For each value the values that are made of it directly."""
        found: dict[Value, list[Value]] = defaultdict(list)
        for value, sources in self._sources.items():
            for source in sources:
                found[source].append(value)
        return found

    @cached_property
    def _in_folds(self) -> set[Operation]:
        """The operations in regions of reductions and scans."""
        folds = self.named(*FOLDS)
        return {inner for fold in folds for inner in fold.walk() if inner is not fold}

    def _origin(self, operation: Operation, at: int) -> Operation | None:
        """Returns the operation that made an operand, changes of its shape left out."""
        maker = self._makers.get((self._homes[operation], operation.operands[at]))
        while maker is not None and maker.name in SAME_NUMBERS[:4]:
            maker = self._makers.get((self._homes[maker], maker.operands[0]))
        return maker

    def _constant(self, operation: Operation, at: int) -> float | None:
        """Returns the number that an operand holds everywhere; None where it is no constant."""
        maker = self._makers.get((self._homes[operation], operation.operands[at]))
        while maker is not None and maker.name in SAME_NUMBERS:
            maker = self._makers.get((self._homes[maker], maker.operands[0]))
        value = maker.attributes["value"] if maker is not None and maker.name == "arith.constant" else None
        if isinstance(value, Dense):
            return float(value.values[0]) if len(set(value.values)) == 1 else None
        return None if value is None else float(value)

    def _loses_digits(self, home: str, operation: Operation) -> bool:
        """Returns whether an operation rounds to 16 bits what is computed with afterwards."""
        if operation.name in CONVERSIONS:
            origin = self._origin(operation, 0)
            source = origin.operand_types[0].element if origin is not None and origin.name == "arith.extf" else ""
            if source == operation.result_types[0].element:
                return False  # it has these 16 bits already
        elif operation.name not in ARITHMETIC and operation.name != "tt.dot" and not operation.name.startswith("math."):
            return False
        if operation in self._in_folds:
            return operation.name in ADDS_UP
        return operation.name == "tt.dot" or self._is_computed_with((home, operation.results[0]))

    def _is_computed_with(self, value: Value) -> bool:
        """Returns whether a number goes into arithmetic, a sum or an accumulator, unchanged but for its shape."""
        seen, waiting = set[Value](), [value]
        while waiting:
            at = waiting.pop()
            for following in self._made_of.get(at, ()):
                maker = self._makers.get(following)
                if maker is not None and self._computes(maker, at):
                    return True
                if following not in seen and (maker is None or maker.name in HAND_ON or maker.name in FOLDS):
                    seen.add(following)
                    waiting.append(following)
        return False

    def _computes(self, operation: Operation, value: Value) -> bool:
        if operation.name == "tt.dot":
            return operation.operands[2] == value[1]
        return operation.name in ARITHMETIC or operation.name.startswith("math.") or self._adds_up(operation)

    def _adds_up(self, operation: Operation) -> bool:
        return operation.name in FOLDS and any(inner.name in ADDS_UP for inner in operation.walk())

    def _operand(self, operation: Operation, at: int) -> Value:
        return self._homes[operation], operation.operands[at]

    def _result(self, operation: Operation) -> Value:
        return self._homes[operation], operation.results[0]


def _all(roots: Iterable[Value], edges: dict[Value, list[Value]]) -> set[Value]:
    """Returns these values and all that the edges lead to from them."""
    values, waiting = set[Value](), list(roots)
    while waiting:
        value = waiting.pop()
        if value not in values:
            values.add(value)
            waiting += edges.get(value, ())
    return values
