"""Which warps hold what: as Triton itself lays tiles out, and as its machine code stores them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from triton._C.libtriton import ir

from grader.gpu.tile_layouts import TileLayout, holders, holders_of, layout_of

gluon = pytest.importorskip("triton.experimental.gluon.language", reason="this Triton tells no layouts")
gluon_ir = pytest.importorskip("triton._C.libtriton.gluon_ir")


def powers(numbers: random.Random, total: int, parts: int) -> list[int]:
    """Returns `parts` powers of two whose product is `total`."""
    found = [1] * parts
    while np.prod(found) < total:
        found[numbers.randrange(parts)] *= 2
    return found


def drawn(seed: int) -> tuple[list[int], dict[str, list[int]]]:
    """A shape and a blocked layout for it, in one to three dimensions."""
    numbers = random.Random(seed)
    axes = numbers.randint(1, 3)
    order = numbers.sample(range(axes), axes)
    layout = {
        "sizePerThread": powers(numbers, numbers.choice([1, 2, 4]), axes),
        "threadsPerWarp": powers(numbers, 32, axes),
        "warpsPerCTA": powers(numbers, numbers.choice([1, 2, 4, 8]), axes),
        "order": order,
    }
    return [1 << numbers.randint(0, 12 // axes) for _ in range(axes)], layout


def text_of(layout: dict[str, list[int]]) -> str:
    return f"#ttg.blocked<{{{', '.join(f'{name} = {value}' for name, value in layout.items())}}}>"


@pytest.fixture(scope="module")
def of_triton():
    """of_triton(layout of gluon's, shape) -> its bits."""
    context = ir.context()  # the builder does not keep it
    ir.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)

    def of_triton(layout, shape: list[int]) -> TileLayout:
        linear = builder.to_linear_layout(layout._to_ir(builder), shape)
        return TileLayout(
            *(tuple(map(tuple, bits)) for bits in (linear.reg_bases, linear.lane_bases, linear.warp_bases))
        )

    yield of_triton  # until then the context stays


@pytest.mark.parametrize("seed", range(40))
def test_blocked_layouts_are_triton_s(of_triton, seed):
    shape, layout = drawn(seed)
    theirs = of_triton(gluon.BlockedLayout(*layout.values()), shape)
    ours = layout_of(text_of(layout), {}, tuple(shape))
    assert (ours.lanes, ours.warps) == (theirs.lanes, theirs.warps)
    assert [bit for bit in ours.registers if any(bit)] == [bit for bit in theirs.registers if any(bit)]


@pytest.mark.parametrize("seed", range(40))
def test_slices_are_triton_s(of_triton, seed):
    shape, layout = drawn(seed)
    if len(shape) > 1:
        axis = seed % len(shape)
        left = [size for at, size in enumerate(shape) if at != axis]
        theirs = of_triton(gluon.SliceLayout(axis, gluon.BlockedLayout(*layout.values())), left)
        ours = layout_of(f"#ttg.slice<{{dim = {axis}, parent = #b}}>", {"b": text_of(layout)}, tuple(left))
        same = holders(ours, tuple(left)), holders(theirs, tuple(left))
        assert (same[0].holds == same[1].holds).all() and (same[0].storing == same[1].storing).all()


def test_a_tile_that_is_short_has_copies_and_the_first_is_stored():
    blocked = {"b": "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>"}
    aliases = tuple(blocked.items())
    few = holders_of("tensor<8x!tt.ptr<f32>, #b>", aliases, 8)
    assert few.holds.all() and (few.storing == 0).all()
    more = holders_of("tensor<64xf32, #b>", aliases, 8)
    assert (more.holds == (np.arange(64)[:, None] // 32 == np.arange(8) % 2)).all()
    assert (more.storing == np.arange(64) // 32).all()
    all_of_it = holders_of("tensor<1024xf32, #b>", aliases, 8)
    assert (all_of_it.holds.sum(1) == 1).all() and (all_of_it.storing == np.arange(1024) // 32 % 8).all()


def test_a_linear_layout_says_its_bits_by_itself():
    lanes, warps = "[[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]]", "[[0, 2], [1, 0]]"
    text = f"#ttg.linear<{{register = [[0, 1]], lane = {lanes}, warp = {warps}, block = []}}>"
    held = holders_of("tensor<16x4xf32, #linear>", (("linear", text),), 4)
    columns = np.tile(np.arange(4), 16)
    assert (held.holds == (columns[:, None] // 2 == np.arange(4) % 2)).all()
    assert (held.storing == columns // 2).all()


@pytest.mark.parametrize("text", ["tensor<8xf32, #a>", "tensor<8xf32>", "tensor<8xf32, #ttg.nvidia_mma<{m = [2]}>>"])
def test_other_layouts_are_not_known(text):
    assert holders_of(text, (), 4) is None


def test_a_number_is_every_warp_s_and_the_first_stores_it():
    held = holders_of("!tt.ptr<f32>", (), 4)
    assert held.holds.tolist() == [[True] * 4] and held.storing.tolist() == [0]
