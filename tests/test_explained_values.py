"""Of several explanations that fit wrong values, the one that is told is the one that holds."""

from __future__ import annotations

from grader import normal, output, special
from grader.verdict import FAIL, PASS
from tests.conftest import ROOT


def test_a_special_value_in_a_strided_tensor_is_not_blamed_on_the_strides(bench):
    """Random numbers that round to -0.0 are rare, but there: one in 84 million in fp16."""
    judged = bench((ROOT / "tests/mutants/02_strided_blocks/adds_zero.py").read_text(), "02_strided_blocks")
    assert judged.check(normal(64, 64), output(64, 64)).outcome == PASS
    verdict = judged.check(special(normal(37, 153)), output(37, 153).padded())
    assert verdict.outcome == FAIL and "special values are changed on the way" in verdict.lines[0]


def test_rows_that_are_all_but_one_value_0_are_not_taken_for_one_another(bench):
    """Where one probability is 1 and the others are lost, the row looks like any other of that kind."""
    judged = bench((ROOT / "tests/mutants/03_softmax/half_exponentials.py").read_text(), "03_softmax")
    verdict = judged.check(normal(200, 4) * 60)
    assert verdict.outcome == FAIL and verdict.id != "misplaced-tile"
