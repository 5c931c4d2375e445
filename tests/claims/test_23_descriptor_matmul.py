"""Lesson 23: what the TMA moves, also where a tile of b arrives transposed, and what a cluster does not do."""

from __future__ import annotations

from tests.claims.products import DESCRIBED, kernel_of, with_descriptors, with_pointers

ID = "23_descriptor_matmul"
LOAD, STORE = "cp.async.bulk.tensor.2d.shared::", "cp.async.bulk.tensor.2d.global."


def test_nine_copies_where_05_has_48(tmp_path):
    ptx = with_descriptors(kernel_of(ID, tmp_path)).asm["ptx"]
    assert (ptx.count(LOAD), ptx.count(STORE)) == (8, 1)
    assert with_pointers(kernel_of("05_grouped_matmul", tmp_path), "fp16").asm["ptx"].count("cp.async.cg") == 48


def test_four_stages_leave_no_room_for_a_fifth(tmp_path):
    assert with_descriptors(kernel_of(ID, tmp_path)).metadata.shared == 4 * 49152 + 32


def test_tiles_of_a_transposed_b_are_turned_for_nothing(tmp_path):
    turned = kernel_of(ID, tmp_path, "b_desc.load([k, n])", "b_desc.load([n, k]).T")
    texts = with_descriptors(turned, {**DESCRIBED, "b_desc": (256, 64)}).asm
    assert "ttg.memdesc_trans" in texts["ttgir"] and texts["ptx"].count(LOAD) == 8
    assert "ldmatrix" not in texts["ptx"] and "wgmma.mma_async" in texts["ptx"]


def test_two_blocks_of_a_cluster_share_no_load(tmp_path):
    compiled = with_descriptors(kernel_of(ID, tmp_path), stages=3, options={"num_ctas": 2})
    assert compiled.metadata.shared == 98328 and "multicast" not in compiled.asm["ptx"]
