"""The text of a kernel as something to edit: its operations, each with the line that it has and the values known there.

In MLIR's generic form an operation is a line, so that an edit is one line, or a few, in the place of another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from grader.ttir.lines import CLOSE, LABEL, OPERATION, arguments_of, result_names
from grader.ttir.module import Block, Dense, Function, Operation
from grader.ttir.operation_table import TERMINATORS
from grader.ttir.parser import parse
from grader.ttir.written import UNKNOWN, written

MOST_OPERATIONS = 500  # of a text that is edited
MOST_NEW = 64  # values that an edit adds
NUMBERS = ("arith.constant", "tt.get_program_id", "tt.get_num_programs", "tt.make_range")
FOLDS = ("tt.reduce", "tt.scan", "tt.map_elementwise")
COMBINED = "ab"  # what a fold without a second value combines
SPREADS = ("tt.splat", "tt.broadcast", "tt.expand_dims")  # give the same numbers in another shape
SIZE = "%size."  # begins the names of parameters that were compiled into a kernel
_NAME = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_LOCATION = re.compile(r"loc\(#\w+\)$")
_SNIPPET = """"builtin.module"() ({{
  "tt.func"() <{{function_type = ({types}) -> (), sym_name = "s", sym_visibility = "public"}}> ({{
  ^bb0({arguments}):
{lines}
    "tt.return"() : () -> () loc(unknown)
  }}) : () -> () loc(unknown)
}}) : () -> () loc(unknown)
"""


@dataclass(frozen=True)
class Value:
    """A value that is known at a place. `id`: the same in texts of one kernel for other calls.

    `same`: equal for values that are computed alike. `is_named`: it is a variable of the file, a number, or one of
    these in another shape, and no part of an expression. `is_parameter`: of the kernel, compiled into it or not.
    `written`: as in the file.
    """

    name: str  # with its %
    type: str  # as the text writes it
    number: int  # in its function
    id: str
    same: object
    is_named: bool = True
    is_parameter: bool = False
    written: str = UNKNOWN


@dataclass
class Site:
    """An operation of a text. `of`: the piece of the file that it stands for, which may have become several operations,
    as a function does that is called twice. `id`: the same in texts of one kernel for other calls.

    `known`: the values that may be used there. Types are as the text writes them.
    """

    at: int  # its line of the text, from 0
    line: str
    of: str
    id: str
    operation: Operation
    operands: list[str]  # names
    known: tuple[Value, ...]
    is_in_a_fold: bool  # in the region of a reduction or a scan, which is carried out as a whole
    types: list[str] | None = None  # of the operands
    result: str = ""  # the first one's name
    result_type: str = ""

    @property
    def name(self) -> str:
        return self.operation.name

    @cached_property
    def written(self) -> list[str]:
        """The operands as the file writes them."""
        known = {value.name: value.written for value in self.known}
        return [known.get(name, UNKNOWN) for name in self.operands]

    @property
    def is_read_again(self) -> bool:
        """Returns whether the whole text is read again with a change of it: it is more than a step of a block."""
        return bool(self.operation.regions) or self.is_in_a_fold or self.name in TERMINATORS


@dataclass(frozen=True)
class Change:
    """Lines that stand for an operation's line; or `renamed`: a value that stands for its result from there on."""

    site: Site
    lines: tuple[str, ...]
    renamed: str = ""


class Editable:
    """The text of one kernel. `sizes`: the parameters that were compiled into it as whole numbers, by name.

    They become values again: what has a 1 for a stride in one call reads it from a parameter in another. Raises BadText
    for what is no text.
    """

    def __init__(self, text: str, filename: str, sizes: Mapping[str, int]) -> None:
        self.sizes = {SIZE + name: size for name, size in sizes.items() if size < 1 << 31}
        self.lines = _with_sizes(text.split("\n"), self.sizes)
        self.module = parse("\n".join(self.lines), filename)
        functions = list(self.module.functions.values())
        self.sites = _Sites(self.lines, functions, self.sizes).found if _count(functions) <= MOST_OPERATIONS else []
        self._new = max(function.values for function in functions)  # the first number that no value has
        for function in functions:
            function.values = self._new + MOST_NEW
        self.groups: dict[str, list[Site]] = {}  # of one piece of the file, by Site.of
        for site in self.sites:
            self.groups.setdefault(site.of, []).append(site)

    def text(self, change: Change) -> str:
        site = change.site
        after = self.lines[site.at + 1 :]
        if change.renamed:
            after = [_NAME.sub(lambda m: change.renamed if m[0] == site.result else m[0], line) for line in after]
        return "\n".join([*self.lines[: site.at], *change.lines, *after])

    def operands(self, change: Change) -> tuple[int, ...] | None:
        """Returns the numbers of the site's operands where a change gives it others, and changes nothing else; else
        None."""
        site = change.site
        if change.renamed or len(change.lines) != 1 or site.is_in_a_fold or site.name in TERMINATORS:
            return None
        head, _, rest = change.lines[0].partition('"(')
        old_head, _, old = site.line.partition('"(')
        operands, _, rest = rest.partition(")")
        if head != old_head or rest != old.partition(")")[2]:
            return None
        known = {value.name: value.number for value in site.known}
        names = operands.split(", ")
        return tuple(known[name] for name in names) if all(name in known for name in names) else None

    def operations(self, change: Change) -> list[Operation] | None:
        """Returns the operations that stand for the site's, numbered as in its function; None where the whole text has
        to be read again. Raises BadText."""
        site = change.site
        if change.renamed or site.is_read_again:
            return None
        known = {value.name: value for value in site.known}
        used = [known[name] for name in dict.fromkeys(_NAME.findall("\n".join(change.lines))) if name in known]
        snippet = _SNIPPET.format(
            types=", ".join(value.type for value in used),
            arguments=", ".join(f"{value.name}: {value.type} loc(unknown)" for value in used),
            lines="\n".join(_LOCATION.sub("loc(unknown)", line) for line in change.lines),
        )
        *made, _ = parse(snippet, "").entry.blocks[0].operations
        numbers = dict(enumerate(value.number for value in used))
        for operation in made:
            results = tuple(self._new + result - len(used) for result in operation.results)
            numbers |= zip(operation.results, site.operation.results if operation is made[-1] else results)
            operation.operands = tuple(numbers[operand] for operand in operation.operands)
            operation.results = tuple(numbers[result] for result in operation.results)
            operation.place = site.operation.place
        return made

    @cached_property
    def lines_of_sites(self) -> dict[tuple[int, tuple[int, ...]], list[Site]]:
        """The operations of each line, by its number and those of the calls that lead there."""
        sites: dict[tuple[int, tuple[int, ...]], list[Site]] = {}
        for site in self.sites:
            sites.setdefault((site.operation.place.line, site.operation.place.via), []).append(site)
        return sites

    @cached_property
    def makers(self) -> dict[str, Site]:
        """The operations by the names of their first results, those of functions of the file's own last."""
        return {site.result: site for site in reversed(self.sites) if site.result}

    def root(self, name: str) -> str:
        """Returns the value that another holds in its own shape."""
        while name in self.makers and self.makers[name].name in SPREADS:
            name = self.makers[name].operands[0]
        return name

    @cached_property
    def uses(self) -> Counter[str]:
        """How often each value is used, in any shape."""
        return Counter(self.root(one) for site in self.sites if site.name not in SPREADS for one in site.operands)

    def is_mistakable(self, site: Site, at: int, value: Value) -> bool:
        """Returns whether a name may well have been written in this place, an operand, for that of a value.

        A name that is used by mistake is used elsewhere too. The size of a block may be the step of a loop.
        """
        name = site.operands[at]
        is_name = site.written[at].isidentifier() and self.uses[self.root(name)] > 1
        return is_name and value.written.isidentifier() and (value.name not in self.sizes or site.name == "scf.for")

    def is_used_stride(self, value: Value) -> bool:
        """Returns whether a value is by its name a stride, and is used: it is hardly used twice."""
        return value.is_parameter and "stride" in value.written and self.uses[self.root(value.name)] > 0

    @cached_property
    def constants(self) -> dict[str, float | int]:
        """The numbers that values hold, where all elements are the same, by name."""
        constants = {}
        for site in self.sites:
            if site.name == "arith.constant":
                value = site.operation.attributes["value"]
                numbers = value.values if isinstance(value, Dense) else (value,)
                if len(numbers) == 1:
                    constants[site.result] = numbers[0]
        return constants


def _with_sizes(lines: list[str], sizes: Mapping[str, int]) -> list[str]:
    """Returns the lines of a text whose kernel begins with these constants."""
    kernel = next((at for at, line in enumerate(lines) if 'sym_visibility = "public"' in line), len(lines)) + 2
    made = (
        f'    {name} = "arith.constant"() <{{value = {size} : i32}}> : () -> i32 loc(unknown)'
        for name, size in sizes.items()
    )
    return [*lines[:kernel], *made, *lines[kernel:]]


def _count(functions: list[Function]) -> int:
    return sum(1 for function in functions for _ in function.walk())


@dataclass
class _Open:
    """A function, or an operation with regions, whose regions are being read. `count`: of the values known outside."""

    site: Site | None
    regions: tuple[tuple[Block, ...], ...]
    count: int
    region: int = 0
    block: int = 0


class _Sites:
    """Goes through a text that has been read already, line by line."""

    def __init__(self, lines: list[str], functions: list[Function], sizes: Mapping[str, int]) -> None:
        self.found: list[Site] = []
        self._operations = [operation for function in functions for operation in function.walk()]
        self._last = _last(self._operations)
        self._named = _named(self._operations, self._last)
        counts = Counter(sizes.values())
        self._sizes = {size: name.removeprefix(SIZE) for name, size in sizes.items() if counts[size] == 1 < size}
        self._known: list[Value] = []
        self._opened: list[_Open] = []
        self._alike: dict[object, str] = {}  # how values are computed -> the first that is computed so
        self._counts: Counter[str] = Counter()
        waiting = iter(functions)
        for at, line in enumerate(lines):
            if (match := OPERATION.fullmatch(line)) is not None:
                if match["name"] == "tt.func":
                    self._opened.append(_Open(None, (next(waiting).blocks,), len(self._known)))
                elif match["name"] != "builtin.module":
                    self._operation(at, line, match)
            elif (match := LABEL.fullmatch(line)) is not None:
                self._label(match[2] or "")
            elif line.lstrip(" ") == "}, {":
                now = self._opened[-1]
                del self._known[now.count :]
                now.region, now.block = now.region + 1, 0
            elif (match := CLOSE.fullmatch(line)) is not None and self._opened:
                self._close(match["types"])

    def _operation(self, at: int, line: str, match: re.Match[str]) -> None:
        operation = self._operations[len(self.found)]
        place = operation.place
        of = f"{place.line}:{place.column} {place.variable} {operation.name}"
        self._counts[of] += 1
        operands = match["operands"].split(", ") if match["operands"] else []
        in_a_fold = any(opened.site is not None and opened.site.name in FOLDS for opened in self._opened)
        site = Site(at, line, of, f"{of}#{self._counts[of]}", operation, operands, tuple(self._known), in_a_fold)
        self.found.append(site)
        if match["opens"]:
            self._opened.append(_Open(site, operation.regions, len(self._known)))
        else:
            self._typed(site, match["types"], match["results"])

    def _label(self, arguments: str) -> None:
        now = self._opened[-1]
        names, _, _ = arguments_of(arguments)
        types = [part.partition(": ")[2].partition(" loc(")[0] for part in arguments.split("%")[1:]]
        block = now.regions[now.region][now.block]
        of, is_parameter = now.site.id if now.site is not None else "", now.site is None and now.block == 0
        for at, (name, type, number) in enumerate(zip(names, types, block.arguments)):
            # Which parameters a kernel has differs by call; what they are called does not.
            id = name.removeprefix("%") if is_parameter else f"{of} {now.block} {at}"
            written = id if is_parameter else block.places[at].variable or UNKNOWN
            if now.site is not None and now.site.name in FOLDS:
                written = COMBINED[at] if at < len(COMBINED) else UNKNOWN
            self._known.append(Value(name, type, number, id, name, is_parameter=is_parameter, written=written))
        now.block += 1

    def _close(self, types: str) -> None:
        now = self._opened.pop()
        del self._known[now.count :]
        if now.site is not None:
            head = OPERATION.fullmatch(now.site.line)
            self._typed(now.site, types, head["results"] if head is not None else None)

    def _typed(self, site: Site, types: str, results: str | None) -> None:
        """Adds the types of an operation, and its results to what is known."""
        before, _, after = types.partition(" -> ")
        site.types = _listed(before)
        classes = {value.name: value.same for value in site.known}
        for at, (name, type) in enumerate(zip(result_names(results) if results else [], _listed(after))):
            if name.startswith(SIZE):
                number, id = site.operation.results[at], name.removeprefix(SIZE)
                self._known.append(Value(name, type, number, id, name, is_parameter=True, written=id))
                return
            same = name
            if not site.operation.regions and site.name not in ("tt.load", "tt.call"):
                attributes = site.line.partition(") <{")[2].partition("}> : ")[0]
                form = site.name, tuple(classes.get(one, one) for one in site.operands), attributes, at, type
                same = self._alike.setdefault(form, name)
            is_named = site.operation in self._named
            number, id = site.operation.results[at], f"{site.id} {at}"
            self._known.append(Value(name, type, number, id, same, is_named, written=self._written(site, at)))
            if at == 0:
                site.result, site.result_type = name, type

    def _written(self, site: Site, at: int) -> str:
        """Returns one of an operation's results as the file writes it."""
        operation, place = site.operation, site.operation.place
        if operation.name == "scf.for":
            return operation.regions[0][0].places[at + 1].variable or UNKNOWN
        if place.variable and operation in self._last and not site.is_in_a_fold:
            return place.variable
        expression = written(operation.name, site.written, operation.attributes)
        if operation.name == "arith.constant" and expression.isdecimal():
            return self._sizes.get(int(expression), expression)
        return expression


def _listed(types: str) -> list[str]:
    bare = types.removeprefix("(").removesuffix(")")
    return bare.split(", ") if bare else []


def _last(operations: list[Operation]) -> set[Operation]:
    """Returns the last operation of each assignment, which gives the variable's value."""
    return {*{(one.place.line, one.place.variable): one for one in operations if one.place.variable}.values()}


def _named(operations: list[Operation], last: set[Operation]) -> set[Operation]:
    """Returns the operations whose results a variable of the file holds, numbers, and these in another shape."""
    named = {operation for operation in operations if operation.name in NUMBERS} | last
    known = {result for operation in named for result in operation.results}
    for operation in operations:
        if operation.name in SPREADS and operation.operands[0] in known:
            named.add(operation)
            known.update(operation.results)
    return named
