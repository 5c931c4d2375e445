"""Fast enough, too slow, or inconclusive: the rule that decides from a few noisy samples.

A sample is x = ln(gate) - ln(share), where share is the anchor's time divided by the kernel's, both measured in one
process; x <= 0 means fast enough. Noise between processes is what counts, and more rounds inside one process do not
show it, so each sample of a call comes from another process. The rule draws two samples, and more only if these are
close to the gate. It promises: at the gate it never fails wrongly, and GRACE below the gate it never passes wrongly.
Between them, and where samples spread too much, it may decide either way, or be inconclusive.

A kernel that did not pass and is run again, unchanged, goes on with the samples that it has: a rule that could be
started anew would be asked until it errs.

The promise rests on independent samples; `benchmarks/speed_rule.py` prints the error rates, of a run and of 20 runs of
one kernel.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import Protocol

GRACE = 0.04  # below the gate, as a logarithm: about 4 %
CLEARLY_FAST, CLEARLY_SLOW = -0.06, 0.15  # two samples beyond these decide at once
STAGES = (5, 9, 15)  # numbers of samples after which the rule looks again
WIDTH = 3.3  # standard errors between the median and the middle of the grace
LEAST_SPREAD = 0.002  # no machine is quieter; keeps a few equal samples from looking certain
MEDIAN_ERROR = 1.2533  # standard error of a median over that of a mean: sqrt(pi / 2)
MAD_TO_SIGMA = 1.4826  # of a normal distribution

FAST, SLOW, INCONCLUSIVE, MORE = "fast enough", "too slow", "inconclusive", "more samples"


@dataclass(frozen=True)
class Decision:
    """`outcome`: FAST, SLOW, INCONCLUSIVE or MORE. `distance`: median of x. `spread`: of processes, as a logarithm."""

    outcome: str
    distance: float
    spread: float
    samples: int


class EarlierShares(Protocol):
    """The shares of the anchor's speed that the same kernel reached in earlier runs, kept between runs."""

    def of(self, measured: str) -> list[float]:
        """Returns the shares that are kept for `measured`: the call and the GPU, in any words."""

    def keep(self, measured: str, shares: list[float]) -> None:
        """Keeps these shares instead of the earlier shares; [] removes them."""


def distance_of(share: float, gate: float) -> float:
    """Returns x of one sample: how far the kernel is from its gate, as a logarithm; more than 0 is too slow."""
    return math.log(gate) - math.log(share)


def decide(samples: list[float]) -> Decision:
    """Returns the decision that these samples allow; MORE asks for another sample."""
    count = len(samples)
    median = statistics.median(samples) if samples else math.nan
    spread = _spread(samples, median)

    def decided(outcome: str) -> Decision:
        return Decision(outcome, median, spread, count)

    if count == 2 and max(samples) <= CLEARLY_FAST:
        return decided(FAST)
    if count == 2 and min(samples) >= CLEARLY_SLOW:
        return decided(SLOW)
    if count not in STAGES:
        return decided(MORE)
    margin, half = WIDTH * MEDIAN_ERROR * spread / math.sqrt(count), GRACE / 2
    side = FAST if median < half else SLOW
    if abs(median - half) > margin:
        return decided(side)
    if count < STAGES[-1]:
        return decided(MORE)
    return decided(side if margin <= half else INCONCLUSIVE)


def decide_again(earlier: list[float], samples: list[float]) -> Decision:
    """Returns the decision from earlier samples and this run's: from the latest, as many as one decision takes.

    Two clearly slow samples still decide at once. If earlier samples were too noisy, or slow while today's are not, new
    samples are drawn until today's can decide alone.
    """
    together, today = decide([*earlier, *samples][-STAGES[-1] :]), decide(samples)
    if today.outcome == SLOW:
        return today
    disputed = together.outcome == SLOW and today.distance < GRACE / 2
    if (disputed or together.outcome == INCONCLUSIVE) and len(samples) < STAGES[-1]:
        return replace(together, outcome=MORE)
    return together


def _spread(samples: list[float], median: float) -> float:
    """Returns a robust standard deviation: one burst of a neighbour's work does not widen it."""
    if len(samples) < 2:
        return LEAST_SPREAD
    return max(MAD_TO_SIGMA * statistics.median(abs(x - median) for x in samples), LEAST_SPREAD)


# ---- where an author puts the gate --------------------------------------------------------------------------------

LEAST_GAP = 1.35  # between the solution and the best unwanted version; with less, speed cannot tell them apart
ROOM = 0.85  # of the solution's own share: so a right solution passes with two samples on a noisy machine


def gate_between(solution: float, unwanted: float) -> float | None:
    """Returns the gate, as a share of the anchor: between the solution's worst run and the unwanted version's best.

    None where they are too close for a gate: judge traffic, launches or machine code instead.
    """
    if solution < LEAST_GAP * unwanted:
        return None
    return math.floor(100 * min(math.sqrt(solution * unwanted), ROOM * solution)) / 100
