"""An eps that is changed on its way is told by the number that came of it, and not by lost digits."""

from __future__ import annotations

import pytest

from grader import normal
from tests.conftest import ROOT

ID = "10_rms_norm"
SOLUTION = (ROOT / "solutions/10_rms_norm/rms_norm.py").read_text()


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("changed", ["round(eps, 12)", "eps * 0.8"])
def test_an_eps_that_is_rounded_is_told_by_what_came_of_it(bench, rows, changed):
    text = SOLUTION.replace("    M, N = x.shape", f"    M, N = x.shape\n    eps = {changed}")
    small = normal(rows, 40) * 1e-8
    verdict = bench(text, ID).check(small, small, normal(40), 1.4e-12, dtypes=("float32",))
    used = "1e-12" if "round" in changed else "1.12e-12"
    assert verdict.lines[0] == (
        f"z is what eps = {used} gives, and this call gives 1.4e-12: eps has to be taken as it is."
    )


def test_digits_that_are_lost_are_no_other_eps(bench):
    text = SOLUTION.replace("h * rstd * weight", "h.to(tl.bfloat16).to(tl.float32) * rstd * weight")
    small = normal(3, 40) * 1e-8
    verdict = bench(text, ID).check(small, small, normal(40), 1.4e-12, dtypes=("float32",))
    assert "eps" not in verdict.lines[0]
