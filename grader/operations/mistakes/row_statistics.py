"""Mistakes in the mean of a row's squares, by whose root a norm divides: the wrong divisor, eps, the root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from grader.operations.hypothesis import Hypothesis, Result
from grader.operations.mistakes.lanes import next_power_of_2
from grader.sentences import Said, Sentence

CAUSES = ("over-block", "eps-outside", "eps-not-used", "no-root")
PLAIN_CAUSES = ("unbiased",)
USUAL_EPS = (1e-5, 1e-6, 1e-8, 1e-12)  # constants that a kernel may use instead of its argument


class RowStatistics(Sentence):
    """Sentences about a norm's mean of squares; {mean} is its name, and {alike} what a row holds where it is 0."""

    OVER_BLOCK = "The sum of {summed} is divided by {block}, the lanes of the block: a row has {N:#number}."
    UNBIASED = "The sum of squares is divided by N - 1: a mean of squares divides by N."
    EPS_LEFT_OUT = (
        "eps is not added to the {mean}: it has to be in every row, or a row of {alike} is divided by 0, and small "
        "rows come out too large."
    )
    ANOTHER_EPS = "eps is taken to be {used:g}, and this call gives {eps:g}: the argument is not used."
    EPS_OUTSIDE = "eps is added outside of the root: it belongs under it, 1 / sqrt({mean} + eps)."
    EPS_AS_LEAST = "eps stands in for smaller {mean}s: it is added to each of them, under the root."
    NO_ROOT = "The root is missing: the rows are divided by the {mean} itself, not by its root."


@dataclass(frozen=True)
class Statistic:
    """The mean of the squares of each of M rows, and what a kernel makes of 1 / its root."""

    name: str  # "mean square"
    alike: str  # what a row holds where the mean is 0
    mean: torch.Tensor  # [M, 1]
    N: int
    eps: float
    result: Callable[[torch.Tensor], Result]  # of 1 / root, [M, 1]


def mistakes(statistic: Statistic) -> Iterator[Hypothesis]:
    """Yields the mistakes that show in the statistic of all rows alike."""
    mean, N, eps, named = statistic.mean, statistic.N, statistic.eps, {"mean": statistic.name}
    block = next_power_of_2(N)
    table: list[tuple[str, Said, torch.Tensor]] = []
    if block > N:
        table.append(("over-block", over_block("squares", N), (mean * N / block + eps).rsqrt()))
    if N > 1:
        table.append(("unbiased", RowStatistics.UNBIASED(), (mean * N / (N - 1) + eps).rsqrt()))
    said = RowStatistics.EPS_LEFT_OUT(**named, alike=statistic.alike)
    table.append(("eps-not-used", said, mean.rsqrt()))
    for used in USUAL_EPS:
        if not eps / 2 < used < 2 * eps:  # a number so near may be the argument, rounded
            said = RowStatistics.ANOTHER_EPS(used=used, eps=eps)
            table.append(("eps-not-used", said, (mean + used).rsqrt()))
    for outside in (1 / (mean.sqrt() + eps), mean.rsqrt() + eps):
        table.append(("eps-outside", RowStatistics.EPS_OUTSIDE(**named), outside))
    if bool((mean < eps).any()):
        table.append(("eps-outside", RowStatistics.EPS_AS_LEAST(**named), mean.clamp(min=eps).rsqrt()))
    table.append(("no-root", RowStatistics.NO_ROOT(**named), 1 / (mean + eps)))
    return (Hypothesis(id, said, statistic.result(rstd)) for id, said, rstd in table)


def over_block(summed: str, N: int) -> Said:
    """Returns what is said of a sum that is divided by the lanes of a row's block."""
    return RowStatistics.OVER_BLOCK(summed=summed, block=next_power_of_2(N), N=N)
