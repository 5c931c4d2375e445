"""All calls of a run have one budget of operations, and of elements: a call that finds it used up ends the run."""

from __future__ import annotations

import pytest

from grader import normal
from grader.explain.verdict import PASS
from grader.judging import run
from tests.conftest import ROOT

SOLUTION = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()


@pytest.mark.parametrize("budget", ["MOST_STEPS", "MOST_LANES"])
def test_a_call_beyond_the_budget_is_stopped_with_a_sentence(bench, monkeypatch, budget):
    judged = bench(SOLUTION)
    assert judged.check(normal(700), normal(700)).outcome == PASS
    used = {"MOST_STEPS": judged.run._steps, "MOST_LANES": judged.run._lanes}[budget]
    monkeypatch.setattr(run, budget, used)  # not yet beyond it: the first of the next two calls is carried out
    verdict = judged.check(normal(1500), normal(1500), dtypes=("float32",))
    assert verdict.id == "time-limit"
    assert verdict.lines[0].startswith("masked_add was stopped: its kernels have carried out ")
    assert f" {judged.run._steps:,} operations in all calls together" in verdict.lines[0]


def test_the_operations_of_all_launches_of_a_call_count(bench):
    start = SOLUTION.index("    masked_add_kernel[")
    launch = SOLUTION[start : SOLUTION.index("    return", start)]
    spent = []
    for text in (SOLUTION, SOLUTION.replace(launch, launch * 3)):
        judged = bench(text)
        assert judged.check(normal(700), normal(700), dtypes=("float32",)).outcome == PASS
        spent.append((judged.run._steps, judged.run._lanes))
    assert spent[1] == (3 * spent[0][0], 3 * spent[0][1]) and min(spent[0]) > 0


def test_each_round_of_drawn_calls_has_a_budget(bench, monkeypatch):
    judged = bench(SOLUTION)
    assert judged.check(normal(700), normal(700)).outcome == PASS
    monkeypatch.setattr(run, "MOST_STEPS", judged.run._steps // 2)
    judged.run.rounds = 10
    assert judged.check(normal(1500), normal(1500), dtypes=("float32",)).outcome == PASS


@pytest.mark.parametrize(("grid", "is_told"), [("(N,)", True), ("(triton.cdiv(N, BLOCK_N),)", False)])
def test_a_grid_with_a_program_for_each_element_is_told(bench, monkeypatch, grid, is_told):
    judged = bench(SOLUTION.replace("(triton.cdiv(N, BLOCK_N),)", grid))
    assert judged.check(normal(700), normal(700)).outcome == PASS
    monkeypatch.setattr(run, "MOST_STEPS", 1)
    verdict = judged.check(normal(1500), normal(1500), dtypes=("float32",))
    assert verdict.id == "time-limit" and ("grid of line 28 has a program for each" in verdict.lines[0]) == is_told
    assert verdict.line == (28 if is_told else 0)
