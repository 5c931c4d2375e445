"""A call that has no result: whichever fixture asks for it, the failure is the same."""

from __future__ import annotations

import pytest

from grader import normal
from grader.explain.verdict import FAIL, PASS
from grader.judging.uses import CheckUse, CompiledUse
from tests.conftest import ROOT

SOLUTION = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
FIRST = "    z = torch.empty_like(x)\n"
DATA = (normal(9), normal(9))


WARMUP = """    made = masked_add_kernel.warmup(x, y, z, 16, BLOCK_N=BLOCK_N, grid=(1,))
    made[(triton.cdiv(x.numel(), BLOCK_N), 1, 1)](x, y, z, x.numel(), BLOCK_N)
"""


def test_a_launch_with_other_numbers_than_its_kernel_was_compiled_for_is_not_carried_out(bench):
    start = SOLUTION.index("    masked_add_kernel[")
    text = SOLUTION.replace(SOLUTION[start : SOLUTION.index("    return", start)], WARMUP)
    judge = bench(text).judge
    assert CheckUse.of("test", normal(32), normal(32)).verdict(judge).outcome == PASS
    verdict = CheckUse.of("test", *DATA).verdict(judge)
    assert verdict.outcome == FAIL and "was compiled for multiples of 16 as N, and this launch" in verdict.lines[0]


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
