"""Layer norm along the rows of a matrix: x [M, N], weight, bias [N], eps -> z [M, N], mean [M], rstd [M]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from grader.numerics.arguments import Argument, as_number, as_tensors
from grader.numerics.roundoff import U32

FEW = 16  # roundings: twice what right kernels of all kinds need


class LayerNormArguments(NamedTuple):
    """The arguments of a call."""

    x: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor
    eps: float


def given_in(inputs: Sequence[Argument]) -> LayerNormArguments:
    x, weight, bias = as_tensors(inputs[:3])
    (eps,) = inputs[3:]
    return LayerNormArguments(x, weight, bias, as_number(eps))


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of z, [M, N]: the mean errs by few u of mean|x|, and its error is divided by the spread; then each
    product rounds."""
    x, weight, bias, eps = given_in(inputs)
    sizes = (_condition(x, eps)[:, None] + 1) * weight.abs() + bias.abs()
    scaled = (ref - bias).abs_()  # |weight| |x - mean| rstd
    return sizes.add_(scaled.mul_(1 + _first_number(x, eps)[:, None])).mul_(FEW * U32)


def rounding_of_mean(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of the mean, [M]: blocked sums err by few u of their terms' size, and terms may be distances to a
    row's first number."""
    x = given_in(inputs).x
    return (x.abs().mean(dim=1) + _first_distance(x)).mul_(FEW * U32)


def rounding_of_rstd(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of rstd, [M]: the relative error that rounding may give the root of the variance, times rstd."""
    x, _, _, eps = given_in(inputs)
    return (_condition(x, eps) + _first_number(x, eps) + 1).mul_(FEW * U32).mul_(ref)


def _condition(x: torch.Tensor, eps: float) -> torch.Tensor:
    """Returns mean|x| in units of the spread, [M], by which a relative error of the mean is multiplied.

    T. Chan, G. Golub, R. LeVeque, Algorithms for Computing the Sample Variance, The American Statistician 37 (1983): a
    variance errs by less than that factor times u, also where it is gathered in a single pass, mean by mean.
    """
    return x.abs().mean(dim=1) * _rstd(x, eps)


def _first_number(x: torch.Tensor, eps: float) -> torch.Tensor:
    """Returns what is added to the error of rstd, [M], in FEW u, where distances to a row's first number are summed.

    Right kernels do that. In the same paper, if that number lies k spreads away from the mean, the variance errs 1 +
    k^2 times as much as with distances to the mean; k reaches 4 in one of many rows. The root halves the error.
    """
    return (_first_distance(x) * _rstd(x, eps)).square_().div_(2)


def _first_distance(x: torch.Tensor) -> torch.Tensor:
    """Returns how far the first number of each row lies from the row's mean, [M]; 0 where a row is empty."""
    return (x[:, :1] - x.mean(dim=1, keepdim=True)).abs_().sum(dim=1)


def _rstd(x: torch.Tensor, eps: float) -> torch.Tensor:
    if not x.numel():
        return x.new_ones(len(x))  # torch warns of a variance of nothing, and pytest shows it to the learner
    return (x.var(dim=1, correction=0) + eps).rsqrt()
