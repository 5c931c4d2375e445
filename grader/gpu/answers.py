"""What a replay process answers, as plain data that both ends know."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

COPY, MATMUL = "copy", "matmul"  # the anchors
KERNEL, ANCHOR, TORCH = "kernel", "anchor", "torch"  # the chains of calls that are timed in turns
LEAST_VALID = 5  # rounds; with fewer a sample says nothing


@dataclass(frozen=True)
class Overrun:
    """Bytes that a kernel changed outside of a buffer: `count`, the nearest of them `distance` bytes away from it.

    side: "before", "after", or "between": in the holes of a strided view.
    """

    buffer: str
    side: str
    distance: int
    count: int


@dataclass
class Replayed:
    """What several runs of one call did beside giving its results.

    `differing`: by result, how many of its elements do not repeat to the bit, where any does not.
    """

    overruns: list[Overrun] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # names of inputs
    differing: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def from_json(data: dict) -> Replayed:
        return Replayed([Overrun(**overrun) for overrun in data["overruns"]], data["changed"], data["differing"])


@dataclass
class Summary:
    """A comparison in a few numbers. `first`: index of the first wrong element; `expected`, `found` there, as text.

    `shape` is the reference's; nothing is compared with a result of another one.
    """

    shape: list[int]
    elements: int
    wrong: int = 0
    largest_error: float = 0.0
    first: list[int] = field(default_factory=list)
    expected: str = ""
    found: str = ""
    unwritten: int = 0


@dataclass
class Round:
    seconds: dict[str, float]  # of one call, by chain
    invalid: str = ""  # why the round says nothing


@dataclass
class Measurement:
    """A sample: the rounds of one process, of a call that moves `bytes` at the least."""

    rounds: list[Round] = field(default_factory=list)
    wrong: str = ""  # a timed output was wrong
    bytes: int = 0
    config: int = 0

    @staticmethod
    def from_json(data: dict) -> Measurement:
        rounds = [Round(**one) for one in data["rounds"]]
        return Measurement(rounds, data["wrong"], data["bytes"], data["config"])

    @property
    def valid(self) -> list[Round]:
        return [one for one in self.rounds if not one.invalid]

    @property
    def share(self) -> float:
        """The anchor's time over the kernel's: the median of the valid rounds; nan if there are too few."""
        ratios = [one.seconds[ANCHOR] / one.seconds[KERNEL] for one in self.valid]
        return statistics.median(ratios) if len(ratios) >= LEAST_VALID else math.nan

    def seconds(self, chain: str) -> float:
        """Of one call: the median of the valid rounds; nan where the chain was not timed."""
        found = [one.seconds[chain] for one in self.valid if chain in one.seconds]
        return statistics.median(found) if found else math.nan

    @property
    def why_invalid(self) -> str:
        return next((one.invalid for one in self.rounds if one.invalid), "")
