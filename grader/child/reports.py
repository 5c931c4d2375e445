"""What the memory checker has seen, each mistake once for a kind, an argument and a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from grader.child.geometry import Geometry
from grader.child.shadow import Shadow
from grader.protocol import Finding

MOST_REPORTS = 64


@dataclass
class Report:
    """A finding to be. Its argument gets its final name when the entry function has returned."""

    kind: str
    line: int
    program: list[int]
    other_program: list[int] | None
    shadow: Shadow | None  # None: a pointer that belongs to no argument
    view: Geometry | None  # of the kernel's argument
    address: int
    count: int = 0
    programs: set[int] = field(default_factory=set)

    def finding(self, shadows: Iterable[Shadow]) -> Finding:
        name = self.shadow.label if self.shadow else ""
        finding = Finding(self.kind, name, self.line, self.program, self.other_program, count=self.count)
        finding.programs = len(self.programs)
        if self.kind.startswith("out-of-bounds"):
            finding.linear, finding.between = self.view.linear(self.address), self.view.is_between(self.address)
            neighbours = (s.label for s in shadows if s is not self.shadow and s.holds(self.address))
            finding.neighbour = next(neighbours, "")
        elif self.shadow:  # an element of the argument, whichever view of it the kernel was given
            whole = self.shadow.geometry
            finding.element, finding.linear = whole.element(self.address), whole.linear(self.address)
        return finding


class Reports:
    def __init__(self):
        self._reports: dict[tuple, Report] = {}

    def add(self, report: Report, count: int, program: int) -> None:
        key = (report.kind, report.shadow.base if report.shadow else 0, report.line)
        if key in self._reports or len(self._reports) < MOST_REPORTS:
            known = self._reports.setdefault(key, report)
            known.count += count
            known.programs.add(program)

    def findings(self, shadows: Iterable[Shadow]) -> list[Finding]:
        return [report.finding(shadows) for report in self._reports.values()]
