"""Calls that a lesson does not promise: they have to end in the error that it names, before anything is launched."""

from __future__ import annotations

import pytest

from grader import normal
from grader.explain.verdict import FAIL, PASS
from grader.gpu.models import MODELS
from grader.judging.speed_samples import not_timed
from grader.judging.uses import RaisesUse
from tests.conftest import ROOT

SOLUTION = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
CHECKED = "    if x.numel() < 8:\n        raise ValueError('8 elements are the least')\n    return z"
BEFORE = "    if x.numel() < 8:\n        raise ValueError('8 elements are the least')\n    z = torch.empty"


def judged(bench, old: str, new: str):
    assert SOLUTION.count(old) == 1
    use = RaisesUse.of("test_a_case", normal(7), normal(7), because="x has 7 elements, and 8 are the least")
    return use.verdict(bench(SOLUTION.replace(old, new)).judge)


def test_a_call_that_is_refused_in_time_is_judged_right(bench):
    verdict = judged(bench, "    z = torch.empty", BEFORE)
    assert verdict.outcome == PASS and verdict.note == "ValueError: 8 elements are the least"


def test_a_call_that_is_accepted_is_told_with_what_is_wrong_with_it(bench):
    verdict = judged(bench, "    return z", "    return z")
    assert verdict.id == "not-refused"
    assert verdict.lines[0] == "masked_add accepts what it cannot compute with: x has 7 elements, and 8 are the least."


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    z = torch.empty", "    assert x.numel() > 7\n    z = torch.empty", "raises AssertionError in line"),
        ("    z = torch.empty", "    x[9]\n    z = torch.empty", "raises IndexError in line"),
        ("    return z", CHECKED, "raises ValueError when it has already begun its work"),
    ],
)
def test_another_error_and_one_that_comes_too_late_are_none(bench, old, new, said):
    verdict = judged(bench, old, new)
    assert verdict.outcome == FAIL and verdict.id == "not-refused" and any(said in line for line in verdict.lines)


def test_a_file_that_cannot_be_imported_refuses_nothing(bench):
    verdict = judged(bench, "    return z", "    return z\n\n\nraise ValueError('no')")
    assert verdict.outcome == FAIL and verdict.kind == "file"


def test_a_speed_is_asked_of_no_gpu_before_the_one_that_is_named():
    assert not_timed(MODELS["sm_80"], "matmul", "sm_90") == "needs sm_90, and this GPU is sm_80"
    assert not not_timed(MODELS["sm_90"], "matmul", "sm_90") and not not_timed(MODELS["sm_120"], "matmul", "sm_90")
    assert not not_timed(MODELS["sm_80"], "matmul", "") and not_timed(MODELS["sm_75"], "matmul", "")
