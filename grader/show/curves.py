"""Throughput over size, as plain data and in words: measured by `course plot`, drawn here, kept for the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grader.explain.medal_words import LEAST_OF_SOLUTION

if TYPE_CHECKING:
    from grader.numerics.data_sets import Data

UNITS = {"copy": ("GB/s", 1e9), "matmul": ("TFLOP/s", 1e12)}  # by anchor
CEILINGS = {"copy": "copy", "matmul": "cuBLAS"}
YOURS, SOLUTION, TORCH = "yours", "solution", "torch"


@dataclass
class Curves:
    """Rates by name and size, for the kernels and their ceiling; None: not measured."""

    exercise: str
    gpu: str
    l2_bytes: int
    shape: str  # of the first argument: "n x 4096, fp32"
    unit: str
    ceiling: str  # a key of `rates`
    sizes: list[int] = field(default_factory=list)  # n
    rates: dict[str, list[float | None]] = field(default_factory=dict)

    def share(self, name: str, place: int) -> float | None:
        """Returns a kernel's share of the ceiling at the size of this index; None if either was not measured."""
        rate, ceiling = self.rates[name][place], self.rates[self.ceiling][place]
        return rate / ceiling if rate and ceiling else None

    @property
    def highest(self) -> float:
        return max((rate for rates in self.rates.values() for rate in rates if rate), default=0.0)

    @property
    def kernels(self) -> list[str]:
        """The names of all that was timed but the ceiling; the submission's name is the first."""
        return [name for name in self.rates if name != self.ceiling]

    @property
    def medal_rates(self) -> dict[str, float]:
        """The rates that silver and gold ask for at the largest size; {} if no solution was timed there."""
        solution = self.rates.get(SOLUTION, [None])[-1]
        if not solution or self.kernels[0] == SOLUTION:
            return {}
        return {name: least * solution for name, least in LEAST_OF_SOLUTION.items()}

    @property
    def medals_told(self) -> str:
        """The medal rates: "At n = 32 768 silver begins at 3 762 GB/s and gold at 4 055 GB/s; ...", or ""."""
        begins = " and ".join(f"{name} {'at' if place else 'begins at'} {rate_text(rate, self.unit)}"
                            for place, (name, rate) in enumerate(self.medal_rates.items()))  # fmt: skip
        return f"At n = {number_text(self.sizes[-1])} {begins}; pytest gives the medal." if begins else ""

    @property
    def summary(self) -> str:
        """The rates at the largest size: "At n = 32 768: yours 4 173 GB/s, solution 4 180 GB/s, copy 4 260 GB/s."."""
        if not self.sizes:
            return "Nothing was measured."
        fastest = (f"{name} {rate_text(rates[-1], self.unit)}" for name, rates in self.rates.items())
        return f"At n = {number_text(self.sizes[-1])}: {', '.join(fastest)}."

    @property
    def caption(self) -> str:
        """Sentences that say what was timed, and how."""
        return (
            f"The first argument is {self.shape}. Each figure is the median of 7 rounds in a process of "
            "its own. A round is a chain of calls in one CUDA graph, each on data of its own, after the L2 cache "
            f"({self.l2_bytes >> 20} MiB) was flushed: every input comes from memory. What a small call writes may "
            "stay in the cache. Each timed output was compared with the reference."
        )


def rate_text(rate: float | None, unit: str) -> str:
    if rate is None:
        return "not measured"
    return f"{rate:,.0f} {unit}".replace(",", " ") if rate >= 10 else f"{rate:.2g} {unit}"


def number_text(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def shape_text(data: Data) -> str:
    """Returns "n x 4096", or "n elements" for a vector; n stands for the first axis and each axis as long."""
    if len(data.shape) == 1:
        return "n elements"
    return " x ".join("n" if axis == data.shape[0] else str(axis) for axis in data.shape)
