"""Parses MLIR's generic form into functions of blocks of operations.

MLIR writes an operation per line, and an operation with regions as a line that opens, lines inside, and a line that
closes. So the parser goes by lines: one match of a regular expression each, no recursion, and parts that repeat (types,
attributes, locations) are worked out once. Text that is written in any other way is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from grader.ttir.attributes import attributes_of
from grader.ttir.lines import ALIAS, CLOSE, LABEL, OPERATION, arguments_of, labels_of, result_names, types_of
from grader.ttir.locations import Locations
from grader.ttir.module import BadText, Block, Function, Module, Operation, SourcePlace, Successor, Type
from grader.ttir.operation_table import TERMINATORS, check_form, check_regions

MOST_TEXT = 8 << 20  # characters
MOST_LINES = 1_000_000
MOST_LINE = 256 << 10  # characters
MOST_OPERATIONS = 200_000
MOST_DEPTH = 32  # regions in regions

_Form = tuple[dict[str, Any], tuple[Type, ...], tuple[Type, ...]]
MOST_CALLS = 32  # functions that call functions


def parse(text: str, filename: str) -> Module:
    """Returns the module that the text of one kernel describes.

    text: MLIR's generic form with locations, of Triton 3.6 to 3.9.
    filename: base name of the learner's file, to which places refer.
    Raises BadText for anything that is not exactly what these releases write, or that does not fit together.
    """
    if len(text) > MOST_TEXT:
        raise BadText(f"a text of {len(text)} characters, at most {MOST_TEXT} are read")
    return _Reader(text, filename).module()


@dataclass(eq=False, slots=True)
class _Region:
    blocks: list[Block] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)  # of values that are known inside the region only
    branches: list[tuple[Operation, list[str]]] = field(default_factory=list)
    arguments: tuple[int, ...] = ()  # of the block that is being read
    places: tuple[SourcePlace, ...] = ()  # of the arguments
    types: tuple[Type, ...] = ()
    operations: list[Operation] = field(default_factory=list)
    open: bool = False  # whether a block has begun
    ended: bool = False  # whether it has its terminator


@dataclass(eq=False, slots=True)
class _Open:
    """An operation whose regions are being read."""

    head: re.Match[str]
    regions: list[tuple[Block, ...]] = field(default_factory=list)


class _Reader:
    def __init__(self, text: str, filename: str) -> None:
        self.lines = text.split("\n")
        if len(self.lines) > MOST_LINES:
            raise BadText(f"a text of {len(self.lines)} lines, at most {MOST_LINES} are read")
        self.aliases = self._aliases()
        places = {name: text[4:-1] for name, text in self.aliases.items() if text[:4] + text[-1:] == "loc()"}
        self.locations = Locations(places, filename)
        self.plain = len(places) == len(self.aliases)
        self.forms: dict[tuple[str | None, ...], _Form] = {}
        self.functions: dict[str, Function] = {}
        self.opened: list[_Open] = []
        self.regions: list[_Region] = []
        self.count = 0
        self.line = 0
        self._new_function()

    def _new_function(self) -> None:
        self.names: dict[str, int] = {}
        self.types: list[Type] = []
        self.parameters: tuple[str, ...] = ()

    def _aliases(self) -> dict[str, str]:
        aliases: dict[str, str] = {}
        for line in self.lines:
            if line.startswith("#"):
                match = ALIAS.fullmatch(line)
                if match is None or match[1] in aliases:
                    raise BadText(f"a definition that cannot be read or is given twice: {line[:60]!r}")
                aliases[match[1]] = match[2]
        return aliases

    def module(self) -> Module:
        try:
            self._read()
            if self.opened or self.count == 0:
                raise BadText("the text ends too early")
        except BadText as error:
            raise BadText(f"line {self.line} of the text: {error}") from None
        module = Module(self.functions)
        check_calls(module)
        return module

    def _read(self) -> None:
        operation_of, add, read_other = OPERATION.fullmatch, self._operation, self._other
        for number, line in enumerate(self.lines, 1):
            self.line = number
            if len(line) > MOST_LINE:
                raise BadText(f"a line of {len(line)} characters")
            match = operation_of(line)
            if match is not None:
                add(match)
            elif line and line[0] != "#":
                read_other(line)

    def _operation(self, match: re.Match[str]) -> None:
        results, name, operands, successors, attributes, opens, more, types, _, _, location = match.groups()
        depth = len(self.regions)
        if depth != _DEPTH.get(name, depth if depth >= 2 else 2):
            raise BadText(f"{name} at a place where it cannot stand")
        if opens:
            self._open(match)
            return
        region = self.regions[-1]
        if name in _DEPTH:
            raise BadText(f"{name} without a body")
        self._add(region, name, results, operands, successors, (attributes, more, types), (), location)

    def _open(self, match: re.Match[str]) -> None:
        if len(self.regions) >= MOST_DEPTH:
            raise BadText("regions in regions in regions")
        if not self.regions and self.count:
            raise BadText("a second module")
        if len(self.regions) == 1:
            self._new_function()
        if len(self.regions) >= 2:
            self.regions[-1].open = True
        self.count += 1
        self.opened.append(_Open(match))
        self.regions.append(_Region())

    def _other(self, line: str) -> None:
        """Reads a block's label or the end of a region. Raises BadText for any other line."""
        bare = line.lstrip(" ")
        if bare.startswith("^") and len(self.regions) >= 2:
            self._label(line)
        elif bare == "}, {" and len(self.regions) >= 3 and not self.opened[-1].regions:
            self._end_region()
            self.regions.append(_Region())
        elif bare.startswith("}") and (match := CLOSE.fullmatch(line)) and self.regions:
            self._end_region()
            self._close(match)
        else:
            raise BadText(f"it cannot be read: {bare[:60]!r}")

    def _label(self, line: str) -> None:
        match, region = LABEL.fullmatch(line), self.regions[-1]
        if match is None or match[1] in region.labels:
            raise BadText(f"a block's label that cannot be read or is given twice: {line.strip()[:60]!r}")
        if region.open:
            self._end_block(region)
        region.labels[match[1]] = len(region.blocks)
        region.open = True
        names, types, places = arguments_of(match[2] or "")
        region.arguments = self._define(region, names, types)
        region.types = types
        region.places = tuple([self.locations.place(place) for place in places])
        if len(self.regions) == 2 and not region.blocks:
            variables = [place.variable for place in region.places]
            self.parameters = tuple(variable or name[1:] for variable, name in zip(variables, names))

    def _define(self, region: _Region, names: list[str], types: tuple[Type, ...]) -> tuple[int, ...]:
        """Returns numbers for new values. Raises BadText for a name that is defined already."""
        first, known = len(self.types), self.names
        for number, name in enumerate(names, first):
            if name in known:
                raise BadText(f"{name} is defined twice")
            known[name] = number
        region.names += names
        self.types += types
        return tuple(range(first, first + len(names)))

    def _add(
        self,
        region: _Region,
        name: str,
        results: str | None,
        operands: str,
        successors: str | None,
        form: tuple[str | None, str | None, str],
        regions: tuple[tuple[Block, ...], ...],
        location: str,
    ) -> None:
        if region.ended:
            raise BadText(f"{name} after the end of its block")
        if location[-1:] != ")":
            raise BadText("a location that does not end")
        key = (name, *form)
        known = self.forms.get(key)
        if known is None:
            known = self.forms[key] = self._form(*key)
        attributes, operand_types, result_types = known
        numbers = self._operands(operands, operand_types)
        self.count += 1
        if self.count > MOST_OPERATIONS:
            raise BadText(f"more than {MOST_OPERATIONS} operations")
        region.open = True
        if results is None:
            if result_types:
                raise BadText(f"the results of {name} have no names")
            new: tuple[int, ...] = ()
        else:
            names = [results] if ":" not in results and "," not in results else result_names(results)
            if len(names) != len(result_types):
                raise BadText(f"{len(names)} names for {len(result_types)} results of {name}")
            new = self._define(region, names, result_types)
        operation = Operation(
            name,
            numbers,
            new,
            operand_types,
            result_types,
            dict(attributes),
            regions,
            (),
            self.locations.place(location[:-1]),
        )
        region.operations.append(operation)
        if successors is not None or name.startswith("cf."):
            region.branches.append((operation, labels_of(successors or "")))
        if name in TERMINATORS:
            region.ended = True

    def _form(self, name: str, attributes: str | None, more: str | None, types: str) -> _Form:
        if self.plain and len(types) < _LONGEST_KEPT and len(attributes or "") + len(more or "") < _LONGEST_KEPT:
            return _plain_form(name, attributes or "", more or "", types)
        return _form(name, attributes or "", more or "", types, self.aliases)

    def _operands(self, text: str, types: tuple[Type, ...]) -> tuple[int, ...]:
        if not text:
            numbers: tuple[int, ...] = ()
        else:
            known = self.names
            try:
                numbers = tuple([known[name] for name in text.split(", ")])
            except KeyError as error:
                raise BadText(f"{str(error.args[0])[:60]} is used before it is defined") from None
        defined = self.types
        if tuple([defined[number] for number in numbers]) != types:
            raise BadText(f"operands of other types than they were defined with: {text[:60]}")
        return numbers

    def _end_block(self, region: _Region) -> None:
        if not region.ended:
            raise BadText("a block ends without a terminator")
        region.blocks.append(Block(region.arguments, region.types, tuple(region.operations), region.places))
        region.arguments, region.types, region.operations, region.places = (), (), [], ()
        region.open = region.ended = False

    def _end_region(self) -> None:
        region = self.regions.pop()
        if not self.regions:  # the module's own holds functions, no blocks
            self.opened[-1].regions.append(())
            return
        if region.open:
            self._end_block(region)
        for operation, labels in region.branches:
            operation.successors = _successors(operation, labels, region)
        for name in region.names:
            del self.names[name]
        self.opened[-1].regions.append(tuple(region.blocks))

    def _close(self, end: re.Match[str]) -> None:
        opened = self.opened.pop()
        results, name, operands, successors, attributes = opened.head.groups()[:5]
        form = (attributes, end["more"], end["types"])
        if name in _DEPTH and (results or operands or successors):
            raise BadText(f"{name} with operands or results")
        if name == "builtin.module":
            self._form(name, *form)
        elif name == "tt.func":
            self._function(opened.regions, self._form(name, *form)[0])
        else:
            regions = tuple(opened.regions)
            operand_types, result_types = types_of(end["types"])
            check_regions(name, regions)
            self._add(self.regions[-1], name, results, operands, successors, form, regions, end["location"])

    def _function(self, regions: list[tuple[Block, ...]], attributes: dict[str, Any]) -> None:
        name, form = attributes.get("sym_name"), attributes.get("function_type")
        if not isinstance(name, str) or not isinstance(form, str) or len(regions) != 1 or not regions[0]:
            raise BadText("a function without a name, a type or a body")
        if name in self.functions:
            raise BadText(f"the function {name} is defined twice")
        blocks = regions[0]
        check_regions("tt.func", regions)
        parameter_types, result_types = types_of(form)
        if blocks[0].types != parameter_types:
            raise BadText(f"{name} has other parameters than its type says")
        promises = attributes.get("arg_attrs", [{}] * len(parameter_types))
        if len(promises) != len(parameter_types):
            raise BadText(f"{name} has {len(parameter_types)} parameters and attributes for {len(promises)}")
        for block in blocks:
            last = block.operations[-1]
            if last.name == "tt.return" and last.operand_types != result_types:
                raise BadText(f"{name} returns something else than its type says")
        public = attributes.get("sym_visibility") == "public"
        names = self.parameters or ("",) * len(parameter_types)
        self.functions[name] = Function(name, public, names, blocks, result_types, len(self.types), tuple(promises))


def _form(name: str, attributes: str, more: str, types: str, aliases: dict[str, str]) -> _Form:
    """Returns an operation's attributes, types of operands, and types of results. Raises BadText."""
    form = attributes_of(attributes, aliases)
    for key, value in attributes_of(more, aliases).items():
        if key in form:
            raise BadText(f"the attribute {key} is given twice")
        form[key] = value
    operand_types, result_types = types_of(types)
    check_form(name, form, operand_types, result_types)
    return form, operand_types, result_types


@lru_cache(4096)
def _plain_form(name: str, attributes: str, more: str, types: str) -> _Form:
    """Returns the same as _form, cached for all texts: only for texts that define no names for attributes."""
    return _form(name, attributes, more, types, {})


_LONGEST_KEPT = 500  # characters
_DEPTH = {"builtin.module": 0, "tt.func": 1}


def _successors(operation: Operation, labels: list[str], region: _Region) -> tuple[Successor, ...]:
    """Returns the successors: the number of each block, and its share of the operands. Raises BadText."""
    if operation.name == "cf.br" and len(labels) == 1:
        shares = [operation.operands]
    elif operation.name == "cf.cond_br" and len(labels) == 2:
        _, first, _ = operation.attributes["operandSegmentSizes"]
        shares = [operation.operands[1 : 1 + first], operation.operands[1 + first :]]
    else:
        raise BadText(f"{operation.name} with {len(labels)} successors")
    types = dict(zip(operation.operands, operation.operand_types))
    successors = []
    for label, share in zip(labels, shares):
        block = region.labels.get(label)
        if not block:  # unknown, or the first one, to which nothing leads back
            raise BadText(f"{operation.name} leads to ^{label}, to which it cannot")
        if tuple(types[number] for number in share) != region.blocks[block].types:
            raise BadText(f"{operation.name} gives ^{label} other values than it takes")
        successors.append(Successor(block, share))
    return tuple(successors)


def check_calls(module: Module) -> None:
    """Raises BadText unless each callee exists and takes the given types, and no function calls itself.

    Calls through other functions count too. The module has to hold a single public function.
    """
    if sum(function.public for function in module.functions.values()) != 1:
        raise BadText("the text has to hold one public function")
    calls: dict[str, set[str]] = {}
    for function in module.functions.values():
        calls[function.name] = set()
        for operation in function.walk():
            if operation.name == "tt.call":
                callee = module.functions.get(operation.attributes["callee"])
                if callee is None or callee.public:
                    raise BadText(f"a call of {operation.attributes['callee']!r}, which is no private function")
                if (callee.blocks[0].types, callee.result_types) != (operation.operand_types, operation.result_types):
                    raise BadText(f"a call of {callee.name} with values of other types than it takes or returns")
                calls[function.name].add(callee.name)
    for _ in range(MOST_CALLS):  # take away what calls nothing, until nothing is left
        leaves = {name for name, callees in calls.items() if not callees}
        calls = {name: callees - leaves for name, callees in calls.items() if name not in leaves}
    if calls:
        raise BadText("functions that call themselves, or one another too deep")
