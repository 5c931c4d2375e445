"""An eps that is changed on its way is told by the number that came of it, and not by lost digits."""

from __future__ import annotations

from grader import normal
from tests.conftest import ROOT

ID = "10_rms_norm"
SOLUTION = (ROOT / "solutions/10_rms_norm/rms_norm.py").read_text()


def test_digits_that_are_lost_are_no_other_eps(bench):
    text = SOLUTION.replace("h * rstd * weight", "h.to(tl.bfloat16).to(tl.float32) * rstd * weight")
    small = normal(3, 40) * 1e-8
    verdict = bench(text, ID).check(small, small, normal(40), 1.4e-12, dtypes=("float32",))
    assert "eps" not in verdict.lines[0]
