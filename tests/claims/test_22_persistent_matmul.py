"""Lesson 22: a flattened loop stores a tile between the products of two, and what lies in shared memory meanwhile."""

from __future__ import annotations

import pytest

from tests.claims.products import kernel_of, with_descriptors

ID = "22_persistent_matmul"


def loop_with_products(ttgir: str) -> str:
    """Returns the innermost loop that multiplies."""
    lines = ttgir.splitlines()
    product = next(number for number, line in enumerate(lines) if "warp_group_dot" in line)
    indent = len(lines[product]) - len(lines[product].lstrip())
    is_outside = [len(line) - len(line.lstrip()) < indent for line in lines]
    first = max(number for number in range(product) if is_outside[number])
    last = next(number for number in range(product, len(lines)) if is_outside[number])
    assert "scf.for" in lines[first]
    return "\n".join(lines[first:last])


@pytest.mark.parametrize("change, stores", [((), True), ((", flatten=True", ""), False)], ids=["flattened", "plain"])
def test_only_a_flattened_loop_stores_between_products(tmp_path, change, stores):
    ttgir = with_descriptors(kernel_of(ID, tmp_path, *change), stages=3, NUM_SMS=132).asm["ttgir"]
    assert ("async_tma_copy_local_to_global" in loop_with_products(ttgir)) is stores


def test_three_stages_and_a_tile_of_c_fit_and_four_do_not(tmp_path):
    kernel = kernel_of(ID, tmp_path)
    shared = [with_descriptors(kernel, stages=stages, NUM_SMS=132).metadata.shared for stages in (3, 4)]
    assert 212992 <= shared[0] < 213100 and shared[1] > 232448
