"""A kernel that is not the file's own is found in whatever call uses it, though it computes the right values."""

from __future__ import annotations

import pytest

from grader import normal
from grader.explain.verdict import PASS
from tests.conftest import ROOT

CALLS = "import itertools\ncalls = itertools.count()\n\n\ndef masked_add("
FORGE = """
    {kernel}._unsafe_update_src({kernel}.src.replace({old!r}, {new!r}))
    {kernel}.device_caches.clear()
"""


def forged(when: str) -> str:
    """01's solution, whose kernel is replaced by one of the same values where `when` holds."""
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text().replace("def masked_add(", CALLS)
    swap = FORGE.format(kernel="masked_add_kernel", old="x + y", new="y + x").replace("\n    ", "\n        ")
    place = "    grid = (triton.cdiv(N, BLOCK_N),)"
    assert place in text
    return text.replace(place, f"    if {when}:{swap}\n{place}")


@pytest.mark.parametrize("when", ["next(calls) == 0", "next(calls) == 1"])
def test_in_the_first_and_in_the_second_of_two_calls(bench, when):
    judged = bench(forged(when))
    verdict = judged.check(normal(100), normal(100), dtypes=judged.judge.exercise.dtypes[:1])
    assert verdict.id == "foreign-kernel", verdict.lines


def test_of_one_size_only(bench):
    judged = bench(forged("N == 3000"))
    assert judged.check(normal(100), normal(100)).outcome == PASS
    assert judged.check(normal(3000), normal(3000)).id == "foreign-kernel"


def test_in_a_call_that_only_a_choice_of_configurations_makes(bench):
    text = (ROOT / "solutions/19_matmul_epilogue/matmul_epilogue.py").read_text()
    forge = FORGE.format(kernel="linear_leaky_relu_kernel.fn", old="0.01 * acc", new="0.02 * acc")
    place = "    c = torch.empty((M, N), dtype=a.dtype, device=a.device)\n"
    assert place in text
    text = text.replace(place, place + "    if M == 64:" + forge.replace("\n    ", "\n        "))
    judged = bench(text, "19_matmul_epilogue").judge
    calls = [(normal(M, 4096), normal(4096, 4096), normal(4096)) for M in (4096, 64)]
    verdict = judged.tuned("a choice", calls[0], calls[1:], (4, 24))
    assert verdict.id == "foreign-kernel", verdict.lines or verdict.note
