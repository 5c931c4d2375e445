"""The bound that torch's own run of a reference makes."""

from __future__ import annotations

import pytest
import torch

from grader.numerics.roundoff import U32
from grader.numerics.torchs_rounding import FLOOR, MULTIPLE, RoundingOfTorch

X = torch.linspace(-3, 5, 40, dtype=torch.float64)


def exactly(x: torch.Tensor) -> list[torch.Tensor]:
    return [x.exp()]


def fails(x: torch.Tensor) -> list[torch.Tensor]:
    raise RuntimeError("out of memory")


def test_it_is_a_multiple_of_what_torch_errs_and_a_floor():
    off = RoundingOfTorch(lambda x: [x.double().exp() + 1e-3], exactly, (0,), torch.float32)
    ref = X.exp()
    expected = MULTIPLE * 1e-3 + FLOOR * U32 * float(ref.max())
    assert float(off(ref, X).min()) == pytest.approx(expected, rel=1e-2)


def test_without_torchs_own_run_there_is_no_bound():
    """The floor alone would refuse right kernels: a sum of many terms is off by more."""
    with pytest.raises(RuntimeError, match="out of memory"):
        RoundingOfTorch(fails, exactly, (0,), torch.float32)(X.exp(), X)


def test_arguments_that_the_reference_does_not_take_leave_the_floor():
    """An explanation may suppose them."""
    bound = RoundingOfTorch(fails, fails, (0,), torch.float32)(X.exp(), X)
    assert float(bound.max()) < 2 * FLOOR * U32 * float(X.exp().max())
