"""Layer norm along the rows of a matrix: x [M, N], weight, bias [N], eps -> z [M, N], mean [M], rstd [M]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """The mean errs by 8 u of mean|x|, which is divided by the spread; then a few roundings of each product.

    Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance, The American Statistician 37 (1983).
    """
    x, weight, bias, eps = inputs
    sizes = (_condition(x, eps)[:, None] + 1) * weight.abs() + bias.abs()
    return sizes.add_((ref - bias).abs_()).mul_(8 * U32)  # |ref - bias| is |weight| |x - mean| rstd


def rounding_of_mean(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Blocked sums err by few u of their terms' size."""
    return inputs[0].abs().mean(dim=1).mul_(8 * U32)


def rounding_of_rstd(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """A variance that is gathered in one walk, mean by mean, errs by u mean|x| / spread, one around the mean by less."""
    x, _, _, eps = inputs
    return (_condition(x, eps) + 1).mul_(8 * U32).mul_(ref)


def _condition(x: torch.Tensor, eps: float) -> torch.Tensor:
    """mean|x| in units of the spread, [M]: what a relative error of the numbers, or of their mean, is multiplied by."""
    return x.abs().mean(dim=1) * (x.var(dim=1, correction=0) + eps).rsqrt()
