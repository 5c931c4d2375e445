"""Kernels that depend on the order of their warps, by texts as the compiler writes them."""

from __future__ import annotations

import pytest

from grader.gpu.laid_out import parts_of, read_laid_out
from grader.gpu.warp_order import WarpOrderReader, may_matter
from grader.wire.messages import Meeting, Met

HEAD = """#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#loc = loc("/tmp/file.py":1:1)
#loc1 = loc("/tmp/file.py":2:5)
#loc2 = loc("/tmp/file.py":3:5)
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>) -> (), sym_name = "kernel", sym_visibility = "public"}> ({
  ^bb0(%p: !tt.ptr<f32> loc("p"(#loc))):
    %0 = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<TxP, #b> loc(#loc)
    %1 = "tt.load"(%0) <{isVolatile = false}> : (tensor<TxP, #b>) -> tensor<Txf32, #b> loc(#loc1)
"""
STORE = """    "tt.store"(%0, %1) : (tensor<TxP, #b>, tensor<Txf32, #b>) -> () loc(#loc2)
"""
SUM = """    %2 = "tt.reduce"(%1) <{axis = 0 : i32}> ({
    ^bb0(%a: f32 loc("a"(#loc)), %b: f32 loc("b"(#loc))):
      %3 = "arith.addf"(%a, %b) : (f32, f32) -> f32 loc(#loc)
      "tt.reduce.return"(%3) : (f32) -> () loc(#loc)
    }) : (tensor<Txf32, #b>) -> f32 loc(#loc)
"""
STORED_SUM = """    "tt.store"(%p, %2) : (!tt.ptr<f32>, f32) -> () loc(#loc)
"""
LARGE = """    %4 = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<128xP, #b> loc(#loc)
    %5 = "tt.splat"(%2) : (f32) -> tensor<128xf32, #b> loc(#loc)
    "tt.store"(%4, %5) : (tensor<128xP, #b>, tensor<128xf32, #b>) -> () loc(#loc)
"""
END = """    "tt.return"() : () -> () loc(#loc)
  }) : () -> () loc(#loc)
}) {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} : () -> () loc(#loc)
"""


def order(*parts: str, tile: int) -> WarpOrderReader:
    text = "".join((HEAD, *parts, END)).replace("xP", "x!tt.ptr<f32>").replace("<Tx", f"<{tile}x")
    return WarpOrderReader(read_laid_out(text, "file.py"), "file.py")


def meeting(tile: int, shift: int = 0, loads_first: bool = True, in_one_turn: bool = True) -> Meeting:
    """Line 2 loads, and line 3 stores what lies so far in front."""
    lanes = list(range(shift, tile))
    load, store = Met(2, [], [tile], lanes), Met(3, [], [tile], [lane - shift for lane in lanes])
    return Meeting("x", 0, loads_first, in_one_turn, load, store)


@pytest.mark.parametrize(
    ("parts", "tile", "copies"),
    [
        ((STORE,), 32, 0),  # all warps load, the first stores all
        ((STORE, SUM, STORED_SUM), 32, 0),
        ((STORE, SUM, LARGE), 32, 4),  # each warp stores a part of what its own values come to
        ((STORE, SUM, STORED_SUM), 64, 2),  # warps 2 and 3 add to the sum of all
        ((STORE, SUM, LARGE), 128, 0),  # no element has copies
    ],
)
def test_a_warp_that_loads_late_matters_where_its_value_is_stored(parts, tile, copies):
    found = order(*parts, tile=tile).conflict(meeting(tile))
    assert (found.copies if found else 0) == copies


def test_a_tile_that_is_moved_is_stored_by_other_warps_than_load_it():
    assert order(STORE, tile=128).conflict(meeting(128, shift=1)).copies == 1
    assert order(STORE, tile=32).conflict(meeting(32, shift=1)) is None


PTX = """
	.file	1 "/tmp/file.py"
	.loc	1 2 5
	ld.global.b32 {{ %r1 }}, [ %rd1 + 0 ];
	{between}
	.loc	1 3 5
	st.global.b32 [ %rd1 + 0 ], {{ %r1 }};
	{after}
"""


@pytest.mark.parametrize(
    ("between", "after", "turn", "lacks"),
    [
        ("", "", True, True),
        ("bar.sync \t0;", "", True, False),
        ("bar.warp.sync \t-1;", "", True, True),
        ("", "bar.sync \t0;", True, True),
        ("", "bar.sync \t0;", False, False),  # the loop comes by it before the next turn's store
        ("", "", False, True),
    ],
)
def test_a_barrier_stands_between_a_load_and_a_store(between, after, turn, lacks):
    ptx = PTX.format(between=between, after=after)
    assert order(STORE, tile=32).lacks_barrier(meeting(32, in_one_turn=turn), ptx) == lacks


def test_where_the_machine_code_shows_no_such_access_nothing_is_said():
    assert not order(STORE, tile=32).lacks_barrier(meeting(32), "")
    back = meeting(32, loads_first=False)  # in the text the load stands first: a loop leads to it
    assert order(STORE, tile=32).lacks_barrier(back, PTX.format(between="", after=""))
    assert not order(STORE, tile=32).lacks_barrier(back, PTX.format(between="", after="bar.sync \t0;"))


def test_the_compiler_is_asked_only_where_lanes_may_be_those_of_two_warps():
    assert may_matter(meeting(64), 4) and not may_matter(meeting(128), 4) and not may_matter(meeting(8), 1)
    assert may_matter(meeting(128, shift=1), 4)


def test_texts_that_are_no_kernel_of_one_block_are_not_read():
    assert read_laid_out("", "file.py") is None
    assert read_laid_out(HEAD + '"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32', "file.py") is None
    assert read_laid_out(HEAD + "%9 = strange\n" + END, "file.py") is None


def test_types_are_told_apart_at_the_commas_between_them():
    assert parts_of("tensor<8xf32, #ttg.slice<{dim = 0, parent = #b}>>, i32") == [
        "tensor<8xf32, #ttg.slice<{dim = 0, parent = #b}>>", "i32",
    ]  # fmt: skip
    assert parts_of("") == []


def test_a_barrier_that_a_branch_leads_by_does_not_count():
    """As a loop's does where the loop takes no turn."""
    skipped = "@%p1 bra $L__BB0_2;\n\tbar.sync \t0;\n$L__BB0_2:"
    assert order(STORE, tile=32).lacks_barrier(meeting(32), PTX.format(between=skipped, after=""))
    passed = "@%p1 bra $L__BB0_2;\n$L__BB0_2:\n\tbar.sync \t0;"
    assert not order(STORE, tile=32).lacks_barrier(meeting(32), PTX.format(between=passed, after=""))


OTHER = """    %6 = "tt.splat"(%q) : (!tt.ptr<f32>) -> tensor<TxP, #b> loc(#loc)
    %7 = "tt.load"(%6) <{isVolatile = false}> : (tensor<TxP, #b>) -> tensor<Txf32, #b> loc(#loc1)
"""


def test_another_load_in_the_same_line_is_not_taken_for_the_one_that_meets():
    """Values from q go between warps, and no warp stores to q."""
    text = "".join((HEAD, OTHER, SUM.replace("%1)", "%7)"), STORE, LARGE, END))
    text = text.replace('loc("p"(#loc))):', 'loc("p"(#loc)), %q: !tt.ptr<f32> loc("q"(#loc))):')
    text = text.replace("xP", "x!tt.ptr<f32>").replace("<Tx", "<32x")
    laid_out = read_laid_out(text, "file.py")
    assert laid_out is not None and WarpOrderReader(laid_out, "file.py").conflict(meeting(32)) is None
