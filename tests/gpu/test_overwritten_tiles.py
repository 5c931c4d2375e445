"""Tiles that are overwritten while a product may read them, by texts as the compiler writes them."""

from __future__ import annotations

import pytest

from grader.gpu.laid_out import read_laid_out
from grader.gpu.overwritten_tiles import OverwrittenTile, overwritten_tile

LOOP = """#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128}>
#loc = loc("/tmp/file.py":1:1)
#loc1 = loc("/tmp/file.py":2:5)
#loc2 = loc("/tmp/file.py":3:5)
"builtin.module"() ({
  "tt.func"() <{function_type = (i32) -> (), sym_name = "kernel", sym_visibility = "public"}> ({
  ^bb0(%n: i32 loc("n"(#loc))):
    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32 loc(#loc)
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32 loc(#loc)
    %p = "arith.constant"() <{value = PLACES : i32}> : () -> i32 loc(#loc)
    %f = "arith.constant"() <{value = FIRST : i32}> : () -> i32 loc(#loc)
    %b = "ttg.local_alloc"() : () -> !ttg.memdesc<PLACESx64xi8, #s, #smem, mutable> loc(#loc)
    %r:3 = "scf.for"(%0, %n, %1, %0, %f, %n) ({
    ^bb0(%i: i32 loc("i"(#loc)), %x: i32 loc("x"(#loc)), %y: i32 loc("y"(#loc)), %z: i32 loc("z"(#loc))):
"""
COPY = """      %to = "ttg.memdesc_index"(%b, %y) : (!ttg.memdesc<PLACESx64xi8>, i32) -> !ttg.memdesc<64xi8> loc(#loc)
      %t = "ttg.async_copy_global_to_local"(%n, %to) : (i32, !ttg.memdesc<64xi8>) -> !ttg.async.token loc(#loc1)
"""
PRODUCT = """      %m = "ttg.memdesc_index"(%b, %x) : (!ttg.memdesc<PLACESx64xi8>, i32) -> !ttg.memdesc<64xi8> loc(#loc)
      %v = "ttg.memdesc_trans"(%m) : (!ttg.memdesc<64xi8>) -> !ttg.memdesc<64xi8> loc(#loc)
      %d = "ttng.warp_group_dot"(%v) <{isAsync = true}> : (!ttg.memdesc<64xi8>) -> i32 loc(#loc2)
"""
WAIT = """      %w = "ttng.warp_group_dot_wait"(%d) <{pendings = LEFT : i32}> : (i32) -> i32 loc(#loc)
"""
END = """      %x1 = "arith.addi"(%x, %1) : (i32, i32) -> i32 loc(#loc)
      %xc = "arith.cmpi"(%x1, %p) <{predicate = 5 : i64}> : (i32, i32) -> i1 loc(#loc)
      %x2 = "arith.select"(%xc, %0, %x1) : (i1, i32, i32) -> i32 loc(#loc)
      %y1 = "arith.addi"(%y, %1) : (i32, i32) -> i32 loc(#loc)
      %yc = "arith.cmpi"(%y1, %p) <{predicate = 5 : i64}> : (i32, i32) -> i1 loc(#loc)
      %y2 = "arith.select"(%yc, %0, %y1) : (i1, i32, i32) -> i32 loc(#loc)
      "scf.yield"(%x2, %y2, %n) : (i32, i32, i32) -> () loc(#loc)
    }) : (i32, i32, i32, i32, i32, i32) -> (i32, i32, i32) loc(#loc)
    "tt.return"() : () -> () loc(#loc)
  }) : () -> () loc(#loc)
}) {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} : () -> () loc(#loc)
"""


def found(*parts: str, places: int, ahead: int, left: int) -> OverwrittenTile | None:
    """The copy fills the place that is read `ahead` iterations later; the wait leaves so many products unfinished."""
    text = "".join((LOOP, *parts, END))
    for name, number in (("PLACES", places), ("FIRST", ahead % places), ("LEFT", left)):
        text = text.replace(name, str(number))
    return overwritten_tile(read_laid_out(text, "file.py"))


@pytest.mark.parametrize(
    ("places", "ahead", "left", "wrong"),
    [
        (1, 1, 0, False),  # the product is over when its tile is overwritten
        (1, 1, 1, True),
        (2, 2, 1, True),  # two places for tiles two iterations ahead: as the compiler has it for mixed products
        (3, 2, 1, False),  # as it has it for wgmma alone
        (3, 2, 2, True),
        (3, 2, 3, True),
        (4, 2, 2, False),
    ],
)
def test_a_product_that_may_be_unfinished_still_reads_its_tile(places, ahead, left, wrong):
    tile = found(PRODUCT, WAIT, COPY, places=places, ahead=ahead, left=left)
    assert (tile is not None) == wrong
    assert tile in (None, OverwrittenTile(load=2, product=3))


def test_a_copy_in_front_of_the_wait_meets_the_product_of_this_iteration_too():
    assert found(PRODUCT, COPY, WAIT, places=2, ahead=1, left=0) is None
    assert found(PRODUCT, COPY, WAIT, places=2, ahead=2, left=0) is not None


def test_products_that_end_before_the_next_step_are_left_out():
    product = PRODUCT.replace("isAsync = true", "isAsync = false")
    assert found(product, COPY, places=1, ahead=1, left=0) is None


def test_a_place_that_cannot_be_followed_is_left_out():
    assert found(PRODUCT, WAIT, COPY.replace("(%b, %y)", "(%b, %z)"), places=2, ahead=2, left=1) is None


def test_one_place_is_known_without_its_number():
    assert found(PRODUCT, WAIT, COPY.replace("(%b, %y)", "(%b, %z)"), places=1, ahead=1, left=1) is not None
