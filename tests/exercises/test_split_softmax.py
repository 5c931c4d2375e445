"""Softmax of one vector by several programs: what is said of results that are right but for few digits."""

from __future__ import annotations

import pytest

from grader import normal
from tests.conftest import mutant

ID = "14_split_softmax"


@pytest.mark.parametrize("seed", range(1, 6))
def test_digits_that_exponents_lose_are_not_put_down_to_the_divisor(bench, seed):
    """The logarithm of the sum is added to a maximum of -300: the sum of all is off by no more than that rounds."""
    verdict = bench(mutant(f"{ID}/log_sum_exp"), ID, seed).check(normal(20000) - 300)
    assert verdict.id == "low-precision"
    assert "The error of an exponent is the relative error of the result" in " ".join(verdict.lines)
