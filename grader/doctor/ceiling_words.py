"""A GPU's ceilings, and whether speed can be judged on it, from samples of several processes.

Each sample is an anchor timed against a copy of itself, so its share should be 1. The spread of the shares between
processes is the noise of a verdict here.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from grader.gpu.answers import ANCHOR, COPY, MATMUL, Measurement

MOST_SPREAD = {COPY: 0.003, MATMUL: 0.015}  # of a share between processes; the sequential rule allows no more
LEAST_SAMPLES = 3


@dataclass
class Ceiling:
    """An anchor timed against itself.

    `rates`: bytes or FLOP per second, by process. `shares`: the time of one copy over the time of the other, by
    process.
    """

    name: str
    rates: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    useless: list[str] = field(default_factory=list)  # why samples were of no use

    def add(self, answer: dict) -> None:
        """Adds the sample in a process's answer to a request of the kind "ceilings"."""
        sample, flops = Measurement.from_json(answer[self.name]["sample"]), answer[self.name]["flops"]
        if math.isnan(sample.share):
            self.useless.append(sample.why_invalid or "too few rounds were sound")
            return
        self.rates.append((flops if self.name == MATMUL else sample.bytes) / sample.seconds(ANCHOR))
        self.shares.append(sample.share)

    @property
    def rate(self) -> float:
        return statistics.median(self.rates) if self.rates else math.nan

    @property
    def rate_text(self) -> str:
        if self.name == COPY:
            return f"{self.rate / 1e9:,.0f} GB/s".replace(",", " ")
        return f"{self.rate / 1e12:.0f} TFLOP/s"

    @property
    def spread(self) -> float:
        """The standard deviation of the shares' logarithms between processes; nan for fewer than two shares."""
        return statistics.stdev(math.log(share) for share in self.shares) if len(self.shares) > 1 else math.nan

    @property
    def offset(self) -> float:
        """The distance of the median share from 1, as a logarithm; nan without shares.

        Only a fault of the method can cause a distance.
        """
        return abs(math.log(statistics.median(self.shares))) if self.shares else math.nan

    @property
    def complaint(self) -> str:
        """The reason why a verdict on speed cannot be trusted here; "" if nothing speaks against it."""
        most = MOST_SPREAD[self.name]
        if len(self.shares) < LEAST_SAMPLES:
            return f"{len(self.useless)} of {len(self.useless) + len(self.shares)} samples were useless: " + (
                self.useless[0] if self.useless else "there were too few"
            )
        if self.spread > most:
            return f"the {self.name}'s speed differs by {percent(self.spread)} between processes, against itself"
        if self.offset > most:
            return f"the {self.name} seems {percent(self.offset)} off its own speed, so the clock favours one of two"
        return ""


def percent(share: float) -> str:
    """Returns a share in percent, as in "0.05 %"."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
