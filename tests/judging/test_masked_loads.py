"""Loads with a mask and without `other`: which of them is told, and of which result."""

from __future__ import annotations

from grader import amid, normal
from grader.explain.causes import Cause
from grader.explain.verdict import FAIL
from tests.conftest import ROOT

SOLUTION = (ROOT / "solutions/09_layer_norm/layer_norm.py").read_text(encoding="utf-8")
X = "    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=0.0)"
WEIGHT = "    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)"
STORED = "    tl.store(rstd_ptr + row, rstd)\n"
GUARD, BARE = 'shift = tl.where(largest == -float("inf"), 0.0, largest)', "shift = largest"
DATA = normal(3, 5), normal(5), normal(5), 1e-5


def judged(bench, *changes: tuple[str, str]):
    text = SOLUTION
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return bench(text, "09_layer_norm").check(*DATA, dtypes=("float32",)), text


def test_of_several_such_loads_the_one_that_matters_is_told(bench):
    no_other = X.replace(", other=0.0", "")
    verdict, text = judged(bench, (WEIGHT, "    pass"), (X, f"{WEIGHT}\n{no_other}"))
    assert verdict.id == Cause.NO_OTHER
    line = 1 + text[: text.index(no_other)].count("\n")
    assert verdict.lines[0].startswith(f"The load in line {line} has a mask but no `other`")


def test_a_result_that_nothing_stores_is_told_as_that(bench):
    verdict, _ = judged(bench, (X, X.replace(", other=0.0", "")), (STORED, ""))
    assert (verdict.id, verdict.lines[0].split(":")[0]) == (Cause.UNWRITTEN, "Nothing was written to rstd")


def test_lanes_that_do_harm_with_0_in_them_as_well_are_told(bench):
    """Far below 0 a maximum of 0 makes NaN of a sum, as the infinity does that masked lanes hold at first."""
    text = (ROOT / "solutions/14_split_softmax/split_softmax.py").read_text(encoding="utf-8")
    load = 'maxima = tl.load(max_ptr + parts, mask=parts < P, other=-float("inf"))'
    assert text.count(load) == 1
    line = 1 + text[: text.index(load)].count("\n")
    judged = bench(text.replace(load, "maxima = tl.load(max_ptr + parts, mask=parts < P)"), "14_split_softmax")
    verdict = judged.check(amid(float("-inf"), normal(40000) - 200), dtypes=("float32",))
    assert verdict.id == Cause.NO_OTHER and verdict.line == line, verdict.lines
    assert verdict.lines[0].startswith(f"The load in line {line} has a mask but no `other`")


def test_nan_that_masked_lanes_do_not_make_is_not_put_down_to_them(bench):
    text = (ROOT / "solutions/14_split_softmax/split_softmax.py").read_text(encoding="utf-8")
    last = 'mask=mask, other=-float("inf")'
    assert text.count(last) == 1 and text.count(GUARD) == 1
    judged = bench(text.replace(last, "mask=mask").replace(GUARD, BARE), "14_split_softmax")
    verdict = judged.check(amid(float("-inf"), normal(40000) - 200), dtypes=("float32",))
    assert verdict.outcome == FAIL and verdict.id != Cause.NO_OTHER, verdict.lines
