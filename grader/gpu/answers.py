"""The answers of a replay process, as plain data that both ends know."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

COPY, MATMUL = "copy", "matmul"  # the anchors
KERNEL, ANCHOR, TORCH = "kernel", "anchor", "torch"  # the chains of calls that are timed in turns
LEAST_VALID = 5  # rounds; a sample with fewer is worth nothing


@dataclass(frozen=True)
class Overrun:
    """Bytes that a kernel changed outside of a buffer.

    `count`: the number of changed bytes. `distance`: bytes between the buffer and the nearest of them; a byte that
    touches the buffer has distance 0. `side`: "before", "after", or "between": in the holes of a strided view.
    """

    buffer: str
    side: str
    distance: int
    count: int


@dataclass
class Replayed:
    """The side effects of several runs of one call.

    `differing`: by name of a result, the number of its elements whose bits differ between runs, if any differ.
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

    `shape` is the reference's; a result of another shape is not compared. `wrong`, `unwritten`: numbers of elements.
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
    invalid: str = ""  # why the round does not count


@dataclass
class Measurement:
    """A sample of speed: the rounds that one process has timed of a call.

    `bytes`: the least number of bytes that the call has to move. `config`: the configuration that was timed.
    """

    rounds: list[Round] = field(default_factory=list)
    wrong: str = ""  # a timed output was wrong
    bytes: int = 0
    config: int = 0

    @staticmethod
    def from_json(data: dict) -> Measurement:
        rounds = [Round(**fields) for fields in data["rounds"]]
        return Measurement(rounds, data["wrong"], data["bytes"], data["config"])

    @property
    def valid(self) -> list[Round]:
        return [timed for timed in self.rounds if not timed.invalid]

    @property
    def share(self) -> float:
        """The anchor's time over the kernel's, the median of the valid rounds; nan with fewer than LEAST_VALID."""
        ratios = [timed.seconds[ANCHOR] / timed.seconds[KERNEL] for timed in self.valid]
        return statistics.median(ratios) if len(ratios) >= LEAST_VALID else math.nan

    def seconds(self, chain: str) -> float:
        """Returns the seconds of one call of a chain, the median of the valid rounds; nan where none has timed it."""
        seconds = [timed.seconds[chain] for timed in self.valid if chain in timed.seconds]
        return statistics.median(seconds) if seconds else math.nan

    @property
    def why_invalid(self) -> str:
        return next((timed.invalid for timed in self.rounds if timed.invalid), "")
