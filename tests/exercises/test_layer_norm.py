"""Layer norm: how far a right kernel's statistics may lie from the exact ones."""

from __future__ import annotations

import pytest
import torch

from grader.course.folder import Folder, load_test_file
from grader.numerics.comparison import compare
from tests.conftest import ROOT

EPS = 1e-5
BOUNDS = load_test_file(Folder(ROOT / "exercises" / "09_layer_norm")).exercise.bounds


def from_the_first_number(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns z, mean and rstd of the rows of x, in fp32, by a right way: it sums distances to a row's first number."""
    first = x[:, :1]
    distances = x - first
    offset = distances.mean(dim=1)
    var = distances.square().mean(dim=1) - offset.square()
    rstd = (var + EPS).rsqrt()
    return (distances - offset[:, None]) * rstd[:, None], first[:, 0] + offset, rstd


@pytest.mark.parametrize("spreads", [0.0, 3.5, 4.5])
def test_a_row_whose_first_number_lies_far_off_may_round_more(spreads):
    x = torch.randn(2000, 70, generator=torch.Generator().manual_seed(1))
    x[:, 0] = x.mean(dim=1) + spreads * x.std(dim=1)
    z, mean, rstd = from_the_first_number(x)
    exact, weight, bias = x.double(), torch.ones(70, dtype=torch.float64), torch.zeros(70, dtype=torch.float64)
    expected_rstd = (exact.var(dim=1, correction=0) + EPS).rsqrt()
    expected_z = (exact - exact.mean(dim=1, keepdim=True)) * expected_rstd[:, None]
    inputs = [exact, weight, bias, EPS]
    assert compare(mean, exact.mean(dim=1), BOUNDS["mean"], inputs).largest_error <= 0.6
    assert compare(rstd, expected_rstd, BOUNDS["rstd"], inputs).largest_error <= 0.6
    assert compare(z, expected_z, BOUNDS["z"], inputs).largest_error <= 0.6


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(0, 5), (3, 0)])
def test_nobody_is_warned_of_what_is_empty(shape):
    x = torch.empty(shape, dtype=torch.float64)
    weight = bias = torch.ones(shape[1], dtype=torch.float64)
    inputs = [x, weight, bias, EPS]
    assert compare(x.float(), x, BOUNDS["z"], inputs).right
    assert compare(x.new_ones(len(x)).float(), x.new_ones(len(x)), BOUNDS["rstd"], inputs).right
