"""What is judged is the kernel that stands in the file, whatever a file does with its kernels when it runs."""

from __future__ import annotations

from grader import normal
from grader.explain.verdict import PASS
from tests.conftest import ROOT

SWAP = """
    {kernel}._unsafe_update_src({kernel}.src.replace({old!r}, {new!r}))
    {kernel}.device_caches.clear()
"""
PLACE = "    grid = (triton.cdiv(N, BLOCK_N),)"


def with_swap(visible: str, swapped: str) -> str:
    """01's solution that computes `visible`, and whose kernel the host function replaces by one of `swapped`."""
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    assert "x + y" in text and PLACE in text
    swap = SWAP.format(kernel="masked_add_kernel", old=visible, new=swapped)
    return text.replace("x + y", visible).replace(PLACE, f"{swap}{PLACE}")


def test_a_wrong_kernel_is_rejected_though_a_right_one_takes_its_place(bench):
    verdict = bench(with_swap("x - y", "x + y")).check(normal(100), normal(100))
    assert verdict.id == "wrong-operation", verdict.lines


def test_a_right_kernel_passes_though_a_wrong_one_takes_its_place(bench):
    assert bench(with_swap("x + y", "x - y")).check(normal(100), normal(100)).outcome == PASS


ANOTHER = "    masked_add_kernel.fn.__name__ = 'other_kernel'\n"


def test_a_kernel_that_does_not_stand_in_the_file_is_refused(bench):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    verdict = bench(text.replace(PLACE, f"{ANOTHER}{PLACE}")).check(normal(3000), normal(3000))
    assert verdict.id == "foreign-kernel", verdict.lines
    assert verdict.lines[0] == "The kernel other_kernel that is launched does not stand in your file."
