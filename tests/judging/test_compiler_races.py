"""Right kernels that the compiler makes wrong code of."""

from __future__ import annotations

import pytest

from grader import normal
from grader.explain.causes import Cause
from grader.explain.verdict import FAIL, PASS
from grader.judging.uses import CheckUse, CompiledUse
from tests.conftest import ROOT

KERNEL = (ROOT / "tests" / "judging" / "split_tile.py").read_text(encoding="utf-8")
NARROW = ("BLOCK_N = 256", "BLOCK_N = 128")  # so that nothing is spilled
DATA = normal(96, 128), normal(128, 128)


def judge_of(bench, *changes: tuple[str, str]):
    text = KERNEL
    for old, new in (NARROW, *changes):
        assert old in text
        text = text.replace(old, new)
    return bench(text, "05_grouped_matmul").judge


def test_a_tile_that_is_overwritten_too_early_is_named(bench):
    verdict = CompiledUse.of("test", *DATA).verdict(judge_of(bench))
    assert (verdict.outcome, verdict.id) == (FAIL, Cause.COMPILER_RACE)
    product, load = (1 + KERNEL[: KERNEL.index(part)].count("\n") for part in ("above = tl.dot", "b = tl.load"))
    assert f"a product in line {product} may still read the tile that line {load} has loaded" in verdict.lines[0]
    assert verdict.lines[2].startswith("Launch it with num_stages=1, where no load runs ahead; or give every product")
    assert verdict.lines[-1] == f"Line {product}:  above = tl.dot(a_top, b, above)"


@pytest.mark.parametrize("change", [("STAGES = 3", "STAGES = 1"), ("LOW = 32", "LOW = 64")], ids=str)
def test_both_ways_out_that_it_states_are_right(bench, change):
    judge = judge_of(bench, change)
    assert CompiledUse.of("test", *DATA).verdict(judge).outcome == PASS
    assert CheckUse.of("test", *DATA).verdict(judge).outcome == PASS
