"""A launch takes a kernel that stands in the file, as it stands there; any other is refused."""

from __future__ import annotations

import pytest

from grader import normal
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


@pytest.mark.parametrize(("visible", "swapped"), [("x - y", "x + y"), ("x + y", "x - y")])
def test_a_kernel_whose_text_is_exchanged_is_refused(bench, visible, swapped):
    verdict = bench(with_swap(visible, swapped)).check(normal(100), normal(100))
    assert verdict.id == "foreign-kernel", verdict.lines


ANOTHER = "    masked_add_kernel.fn.__name__ = 'other_kernel'\n"


def test_a_kernel_that_does_not_stand_in_the_file_is_refused(bench):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    verdict = bench(text.replace(PLACE, f"{ANOTHER}{PLACE}")).check(normal(3000), normal(3000))
    assert verdict.id == "foreign-kernel", verdict.lines
    assert verdict.lines[0] == "The kernel other_kernel that is launched does not stand in your file."
