"""Descriptors: what their corners, blocks, shapes and missing memory lead to is told in their own words."""

from __future__ import annotations

import pytest

from grader import normal
from grader.compiler.machine_code import MachineCode
from grader.explain.verdict import PASS
from grader.gpu.models import MODELS
from grader.judging.uses import CompiledUse
from tests.conftest import ROOT, mutant

ID = "23_descriptor_matmul"
SOLUTION = (ROOT / f"solutions/{ID}/descriptor_matmul.py").read_text()
MADE_IN_THE_KERNEL = (ROOT / f"solutions/{ID}/accepted/made_in_the_kernel.py").read_text()
BLOCKS = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
A = "TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K])"
B = "TensorDescriptor.from_tensor(b, [BLOCK_K, columns])"
C = "TensorDescriptor.from_tensor(c, [BLOCK_M, columns])"

# The change, what it is called, how the sentence begins, and the text whose line is shown as the place.
BY_THE_HOST = {
    ("a_desc.load([m, k])", "a_desc.load([k, m])"): ("corner-swapped", "The corner of a's tiles is given as col", ""),
    ("b_desc.load([k, n])", "b_desc.load([n, k])"): ("corner-swapped", "The corner of b's tiles is given as col", ""),
    ("range(0, K, BLOCK_K)", "range(0, tl.cdiv(K, BLOCK_K))"): ("step-as-corner", "Tiles along K begin at 0, 1, 2", ""),
    ("% rows_in_group) * BLOCK_M", "% rows_in_group)"): ("double-write", "Programs overlap: corners in l", ""),
    (C, "TensorDescriptor(c, [M + 1, N], c.stride(), [BLOCK_M, columns])"): ("oob-store", "The store in line", "M + 1"),
    (A, "TensorDescriptor(a, [M, K + 8], a.stride(), [BLOCK_M, BLOCK_K])"): ("oob-load", "The load in line", "K + 8"),
    (A, "TensorDescriptor(a, [M, K], [K, 1], [BLOCK_M, BLOCK_K])"): ("stride-ignored", "The strides of a are not", ""),
    (A, "a"): ("does-not-compile", "The compiler refuses line 29: .load is a descriptor's", "a_desc"),
}  # fmt: skip
IN_THE_KERNEL = {
    ("c_ptr, shape=[M, N]", "c_ptr, shape=[M + 1, N]"): ("oob-store", "The store in line", "M + 1"),
    ("shape=[M, K]", "shape=[M, K + 8]"): ("oob-load", "The load in line", "K + 8"),
    ("shape=[M, K]", "shape=[K, M]"): ("oob-load", "The load in line", "shape=[K, M]"),
    ("strides=[stride_am, 1]", "strides=[K, 1]"): ("stride-ignored", "The strides of a are not used", ""),
    ("strides=[stride_am, 1]", "strides=[1, stride_am]"): ("does-not-compile", "The compiler refuses line", "[1,"),
    ("lambda size, alignment, stream:", "lambda size:"): ("host", "matmul raises TypeError", "matmul_kernel["),
    ("dtype=torch.int8, device=a.device", "dtype=torch.int8"): ("host", "matmul raises TypeError", "matmul_kernel["),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [(SOLUTION, *one) for one in BY_THE_HOST.items()] + [(MADE_IN_THE_KERNEL, *one) for one in IN_THE_KERNEL.items()],
)
def test_a_mistake_with_a_corner_or_a_part_of_a_descriptor_is_named_where_it_is_written(bench, text, change, expected):
    old, new = change
    assert text.count(old) == 1
    text = text.replace(old, new)
    id, said, place = expected
    verdict = bench(text, ID).check(normal(67, 104).padded(8), normal(104, 72), **BLOCKS)
    assert verdict.id == id and verdict.lines[0].startswith(said), verdict.lines
    assert not place or place in text.splitlines()[verdict.line - 1], verdict.lines


@pytest.mark.parametrize(
    ("old", "new", "said", "blocks"),
    [
        (A, "TensorDescriptor.from_tensor(a, [BLOCK_K, BLOCK_M])",
         "line 29: tl.dot multiplies [m, k] by [k, n], and these tiles are [16, 64] and [16, 32].",
         "[BLOCK_K, BLOCK_M] of a in line 65, [BLOCK_K, columns] of b in line 66, [BLOCK_M, columns] of c in line 67."),
        (B, "TensorDescriptor(b, b.shape, b.stride(), block_shape=[BLOCK_K, columns // 2])",
         "line 29: tl.dot(a, b, acc) makes a tile of [64, 16] here, and this accumulator is [64, 32].",
         "[BLOCK_M, BLOCK_K] of a in line 65, [BLOCK_K, columns // 2] of b in line 66, [BLOCK_M, columns] of c in li"),
        (C, "TensorDescriptor.from_tensor(c, [BLOCK_M, BLOCK_K])",
         "line 30: c_desc stores tiles as large as its block, [64, 16], and this one is [64, 32].",
         "[BLOCK_M, BLOCK_K] of a in line 65, [BLOCK_K, columns] of b in line 66, [BLOCK_M, BLOCK_K] of c in line 67."),
    ],
)  # fmt: skip
def test_a_block_of_another_size_is_told_with_all_blocks(bench, old, new, said, blocks):
    assert SOLUTION.count(old) == 1
    verdict = bench(SOLUTION.replace(old, new), ID).check(
        normal(64, 64), normal(64, 64), BLOCK_M=64, BLOCK_N=32, BLOCK_K=16
    )
    assert verdict.id == "does-not-compile"
    assert verdict.lines[0] == f"The compiler refuses {said}"
    assert verdict.lines[1].startswith(f"A descriptor's tiles are as large as its block: {blocks}")


def test_shapes_that_do_not_go_together_are_told_without_descriptors_too(bench):
    text = (ROOT / "solutions/05_grouped_matmul/grouped_matmul.py").read_text()
    assert text.count("tl.dot(a, b, acc,") == 1
    verdict = bench(text.replace("tl.dot(a, b, acc,", "tl.dot(b, a,"), "05_grouped_matmul").check(
        normal(64, 64), normal(64, 64), BLOCK_M=64, BLOCK_N=32, BLOCK_K=16
    )
    said = "tl.dot multiplies [m, k] by [k, n], and these tiles are [16, 32] and [64, 16]."
    assert verdict.id == "does-not-compile" and verdict.lines[0].endswith(said)
    assert verdict.lines[1].startswith("Line ")


def test_a_launch_without_memory_for_descriptors_says_who_has_to_provide_it(bench):
    verdict = bench(mutant(f"{ID}/no_allocator"), ID).check(normal(64, 64), normal(64, 64), **BLOCKS)
    assert verdict.id == "host" and "call triton.set_allocator" in verdict.lines[0]


@pytest.mark.parametrize(("target", "moved_by_pointers"), [("sm_90", "no-descriptors"), ("sm_80", "")])
def test_tiles_that_are_moved_by_pointers_count_where_there_is_another_way(bench, target, moved_by_pointers):
    use = CompiledUse.of("test", normal(256, 256), normal(256, 256), tensor_cores=True, descriptors=True)
    for text, id in ((SOLUTION, ""), (mutant(f"{ID}/pointers"), moved_by_pointers)):
        judged = bench(text, ID)
        judged.run.model = judged.run.process.model = MODELS[target]
        judged.run.machine_code = MachineCode(MODELS[target])
        verdict = use.verdict(judged.judge)
        assert verdict.id == id
        assert (verdict.outcome == PASS) == (not id)
        assert verdict.note.endswith("pointers in place of descriptors") == (target == "sm_80")
