"""A call that has no result: whichever fixture asks for it, the failure is the same."""

from __future__ import annotations

import pytest

from grader import normal
from grader.explain.verdict import FAIL
from grader.judge.uses import CheckUse, CompiledUse
from tests.conftest import ROOT

SOLUTION = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
FIRST = "    z = torch.empty_like(x)\n"
DATA = (normal(9), normal(9))


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("    if x.numel() == 9:\n        raise ValueError('9 elements are odd')\n", "raises ValueError"),
        ("    return x + y\n", "does work that your kernel has to do"),
    ],
    ids=["an error of the host", "what the host may not do"],
)
def test_machine_code_is_not_refused_for_what_the_host_does(bench, before, said):
    judge = bench(SOLUTION.replace(FIRST, before + FIRST)).judge
    code, values = CompiledUse.of("test", *DATA).verdict(judge), CheckUse.of("test", *DATA).verdict(judge)
    assert code.outcome == FAIL and said in values.lines[0]
    assert (code.id, code.lines) == (values.id, values.lines)
