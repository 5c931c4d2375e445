"""The compiler's text after its tiles have got layouts: operations in blocks, to follow values through them.

The text is MLIR's generic form of the stage ttgir's result. It is read for layouts and for the ways of values alone.
Everything else is read in the text before it, by grader.ttir.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from grader.gpu.compiled_facts import LineAndColumn as At
from grader.gpu.compiled_facts import mlir_places
from grader.ttir.lines import ALIAS, LABEL, result_names
from grader.ttir.locations import Locations
from grader.ttir.module import BadText, SourcePlace

WARPS = re.compile(r'"ttg\.num-warps" = (\d+) : i32')
SEVERAL_BLOCKS = re.compile(r'"ttg\.num-ctas" = (?!1 : i32)')
ARGUMENT = re.compile(r"(%[\w$.\-]+): ")
LOCATION = re.compile(r"#\w+")
END = r"(?: \{.*\})? : \((?P<operand_types>.*?)\) -> (?P<result_types>.*) loc\((?P<location>.*)\)"
OPERATION = re.compile(
    r' *(?:(?P<results>%[^"=]*) = )?"(?P<name>[\w.]+)"\((?P<operands>[^()"]*)\)(?:\[[^\]"]*\])?'
    r"(?: <\{(?P<attributes>.*?)\}>)?(?:(?P<opens> \(\{)|" + END + ")",
)
CLOSE = re.compile(r" *\}\)" + END)
MOST_ROW = 1 << 14  # characters of an operation; a large constant has more
OPENING, CLOSING = "<([{", ">)]}"


@dataclass(eq=False)
class LaidOutOperation:
    """An operation. Its operands and results are values, and each value is a number."""

    name: str
    operands: list[int]
    results: list[int]
    operand_types: list[str]
    result_types: list[str]
    attributes: str
    place: SourcePlace = SourcePlace()
    at: At = (0, 0)
    regions: list[list[LaidOutBlock]] = field(default_factory=list)


@dataclass(eq=False)
class LaidOutBlock:
    arguments: list[int] = field(default_factory=list)
    steps: list[LaidOutOperation] = field(default_factory=list)


@dataclass
class LaidOut:
    blocks: list[LaidOutBlock]  # of the kernel
    layouts: tuple[tuple[str, str], ...]  # pairs of a name and the layout that it stands for
    warps: int


def read_laid_out(text: str, filename: str) -> LaidOut | None:
    """Returns the kernel of a text; None if it runs in clusters of several thread blocks, or cannot be read.

    `filename`: of the submission. Without exactly one function in the text, the result has no blocks.
    """
    warps = WARPS.search(text)
    if warps is None or SEVERAL_BLOCKS.search(text):
        return None
    try:
        reader = _Reader(text, filename)
        return LaidOut(reader.kernel(), tuple(reader.layouts.items()), int(warps[1]))
    except (BadText, IndexError, KeyError):
        return None


class _Reader:
    def __init__(self, text: str, filename: str) -> None:
        self.rows = text.split("\n")
        aliases = {match[1]: match[2] for row in self.rows if (match := ALIAS.fullmatch(row))}
        self.layouts = {name: alias for name, alias in aliases.items() if not alias.startswith("loc(")}
        places = {name: alias[4:-1] for name, alias in aliases.items() if name not in self.layouts}
        self.locations, self.at = Locations(places, filename), mlir_places(text, filename)
        self.values: dict[str, int] = {}
        self.count = 0

    def kernel(self) -> list[LaidOutBlock]:
        """Returns the blocks of the text's only function; [] unless there is just one. Raises BadText.

        In the generic form, each row is an operation, or begins or ends an operation with regions.
        """
        opened: list[LaidOutOperation] = []
        regions: list[list[LaidOutBlock]] = [[]]
        blocks: list[LaidOutBlock] = [LaidOutBlock()]  # that are being read, the innermost last
        for row in self.rows:
            bare = row.lstrip(" ")
            if bare.startswith('"') or bare.startswith("%"):
                step, opens = self._step(row)
                blocks[-1].steps.append(step)
                if opens:
                    opened.append(step)
                    regions.append([LaidOutBlock()])
                    blocks.append(regions[-1][0])
            elif bare.startswith("^"):
                if blocks[-1].steps:
                    regions[-1].append(LaidOutBlock())
                    blocks[-1] = regions[-1][-1]
                blocks[-1].arguments = self._arguments(row)
            elif bare == "}, {":
                opened[-1].regions.append(regions[-1])
                regions[-1] = [LaidOutBlock()]
                blocks[-1] = regions[-1][0]
            elif match := CLOSE.fullmatch(row):
                step = opened.pop()
                step.regions.append(regions.pop())
                blocks.pop()
                self._type(step, match)
        (module,) = blocks[0].steps
        functions = module.regions[0][0].steps
        return functions[-1].regions[0] if len(functions) == 1 else []

    def _step(self, row: str) -> tuple[LaidOutOperation, bool]:
        match = OPERATION.fullmatch(row) if len(row) <= MOST_ROW else None
        if match is None:
            raise BadText(f"it cannot be read: {row.strip()[:60]!r}")
        operands = [self.values[name] for name in (match["operands"] or "").split(", ") if name]
        names = result_names(match["results"]) if match["results"] else []
        step = LaidOutOperation(
            match["name"], operands, [self._new(name) for name in names], [], [], match["attributes"] or ""
        )
        if not match["opens"]:
            self._type(step, match)
        return step, bool(match["opens"])

    def _type(self, step: LaidOutOperation, match: re.Match[str]) -> None:
        step.operand_types = parts_of(match["operand_types"])
        step.result_types = parts_of(match["result_types"].removeprefix("(").removesuffix(")"))
        location = match["location"]
        step.place = self.locations.place(location)
        step.at = self.at.get(location, (0, 0)) if LOCATION.fullmatch(location) else (0, 0)

    def _arguments(self, row: str) -> list[int]:
        label = LABEL.fullmatch(row)
        if label is None:
            raise BadText(f"a label that cannot be read: {row.strip()[:60]!r}")
        return [self._new(name) for name in ARGUMENT.findall(label[2] or "")]

    def _new(self, name: str) -> int:
        """Returns a new number for a value of this name; sibling regions may use a name again."""
        self.count += 1
        self.values[name] = self.count
        return self.count


def parts_of(text: str) -> list[str]:
    """Returns the types of a list such as `tensor<8xf32, #blocked>, i32`, split at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in OPENING) - (character in CLOSING and text[at - 1] != "-")
        if character == "," and not depth:
            parts.append(text[start:at])
            start = at + 2
    return [*parts, text[start:]] if text else []
