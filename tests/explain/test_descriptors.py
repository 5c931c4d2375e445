"""Descriptors: what their corners, shapes and missing memory lead to is told in their own words."""

from __future__ import annotations

import pytest

from grader import normal
from grader.compiler.machine_code import MachineCode
from grader.explain.compiled_code import Expectations
from grader.explain.verdict import PASS
from grader.gpu.models import MODELS
from tests.conftest import ROOT, mutant

ID = "23_descriptor_matmul"
SOLUTION = (ROOT / f"solutions/{ID}/descriptor_matmul.py").read_text()
BLOCKS = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
SAID = {
    (("a.load([m, k])", "a.load([k, m])"),): ("corner-swapped", "The corner of a's tiles is given as column, row"),
    (("b.load([k, n])", "b.load([n, k])"),): ("corner-swapped", "The corner of b's tiles is given as column, row"),
    (("range(0, K, BLOCK_K)", "range(0, tl.cdiv(K, BLOCK_K))"),): ("step-as-corner", "Tiles along K begin at 0, 1, 2"),
    (("c_ptr, shape=[M, N]", "c_ptr, shape=[M + 1, N]"),): ("oob-store", "The store in line"),
    (("shape=[M, K]", "shape=[M, K + 8]"),): ("oob-load", "The load in line"),
    (("% rows_in_group) * BLOCK_M", "% rows_in_group)"),): ("double-write", "Programs overlap: corners in line"),
}


@pytest.mark.parametrize("changes", SAID)
def test_a_mistake_with_a_corner_or_a_shape_is_named(bench, changes):
    text = SOLUTION
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    id, said = SAID[changes]
    verdict = bench(text, ID).check(normal(67, 104).padded(8), normal(104, 72), **BLOCKS)
    assert verdict.id == id and verdict.lines[0].startswith(said)


def test_a_launch_without_memory_for_descriptors_says_who_has_to_provide_it(bench):
    verdict = bench(mutant(f"{ID}/no_allocator"), ID).check(normal(64, 64), normal(64, 64), **BLOCKS)
    assert verdict.id == "host" and "call triton.set_allocator" in verdict.lines[0]


@pytest.mark.parametrize(("target", "moved_by_pointers"), [("sm_90", "no-descriptors"), ("sm_80", "")])
def test_tiles_that_are_moved_by_pointers_count_where_there_is_another_way(bench, target, moved_by_pointers):
    wanted = Expectations(tensor_cores=True, descriptors=True)
    for text, id in ((SOLUTION, ""), (mutant(f"{ID}/pointers"), moved_by_pointers)):
        judged = bench(text, ID)
        judged.run.model = judged.run.recorder.model = MODELS[target]
        judged.run.machine_code = MachineCode(MODELS[target])
        verdict = judged.judge.compiled("test", (normal(256, 256), normal(256, 256)), wanted)
        assert verdict.id == id
        assert (verdict.outcome == PASS) == (not id)
        assert verdict.note.endswith("pointers in place of descriptors") == (target == "sm_80")
