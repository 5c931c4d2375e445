"""Collects what the memory checker has seen: each mistake once for a kind, an argument and a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from grader.interpreter.buffers import Argument, Buffer
from grader.ttir.module import Operation
from grader.wire.messages import Finding

MOST_REPORTS = 64

Turn = tuple[int, ...]  # when an access takes place: launch, batch, program's position in it, number of the access


@dataclass
class Seen:
    """The first place where a mistake showed. Its argument gets its final name when the entry function has returned.

    `argument` is None where a pointer belongs to no parameter. `sharing` are the launch's other arguments on the same
    buffer.
    """

    argument: Argument | None
    offset: int  # bytes from the buffer's first one
    program: list[int]
    other_program: list[int] | None
    lanes: int  # of this program, in this access, masked ones left out
    astray: int  # of these, those that make the mistake
    operation: Operation  # the access
    lane: int  # how many lanes of its row of the tile come before the lane that shows it
    row_start: int  # where the first of these leads, in bytes from the buffer's first one
    sharing: list[Argument] = field(default_factory=list)


@dataclass
class FindingReport:
    kind: str
    line: int
    turn: Turn
    seen: Seen
    count: int = 0
    programs: set[int] = field(default_factory=set)

    def finding(self, buffers: Iterable[Buffer]) -> Finding:
        seen, argument = self.seen, self.seen.argument
        finding = Finding(self.kind, "", self.line, seen.program)
        finding.other_program, finding.count, finding.programs = seen.other_program, self.count, len(self.programs)
        finding.lanes, finding.astray = seen.lanes, seen.astray
        if argument is None:
            return finding
        outside = self.kind.startswith("out-of-bounds")
        finding.argument, whole = argument.buffer.part_at(argument.view.offset if outside else seen.offset)
        if outside:
            finding.linear = argument.view.linear(seen.offset)
            finding.lane, finding.row_start = seen.lane, argument.view.linear(seen.row_start)
            finding.between = argument.view.is_between(seen.offset)
            finding.neighbour = _neighbour(argument.buffer, seen, buffers)
        else:  # an element of the argument, whichever view of it the kernel was given
            finding.element, finding.linear = whole.element(seen.offset), whole.linear(seen.offset)
        return finding


def _neighbour(own: Buffer, seen: Seen, buffers: Iterable[Buffer]) -> str:
    """Returns the name of the memory that an address out of bounds really lies in, "" if it lies in none.

    This is another buffer, or the part of its own buffer that belongs to another parameter.
    """
    address = own.address + seen.offset
    for other in buffers:
        if other is not own and other.address <= address < other.address + other.nbytes:
            return other.part_at(address - other.address)[0]
    return next((other.name.removesuffix("_ptr") for other in seen.sharing if other.view.holds(seen.offset)), "")


class Reports:
    def __init__(self) -> None:
        self._reports: dict[tuple, FindingReport] = {}

    def needs(self, kind: str, buffer: Buffer | None, line: int, turn: Turn) -> bool:
        """Returns whether a mistake at this turn has to be shown: it is the first of its kind, argument and line.

        No new mistake is shown after MOST_REPORTS.
        """
        known = self._reports.get((kind, id(buffer), line))
        return turn < known.turn if known else len(self._reports) < MOST_REPORTS

    def show(self, kind: str, buffer: Buffer | None, line: int, turn: Turn, seen: Seen) -> None:
        report = self._reports.setdefault((kind, id(buffer), line), FindingReport(kind, line, turn, seen))
        report.turn, report.seen = turn, seen

    def count(self, kind: str, buffer: Buffer | None, line: int, count: int, programs: Iterable[int]) -> None:
        report = self._reports.get((kind, id(buffer), line))
        if report is not None:
            report.count += count
            report.programs.update(programs)

    def first(self) -> FindingReport | None:
        """Returns the report that programs which run one after another would have met first; None without any."""
        return min(self._reports.values(), key=lambda report: report.turn, default=None)

    def findings(self, buffers: Iterable[Buffer]) -> list[tuple[Finding, Operation]]:
        """Returns the findings, each with its access, in the order in which programs that run one after another would
        have met them."""
        reports = sorted(self._reports.values(), key=lambda report: report.turn)
        return [(report.finding(buffers), report.seen.operation) for report in reports]
