"""The warps that hold each element of a tile, from the layout that Triton's text gives it.

A layout works by bits: each bit of the number of a register, of a lane (a thread of a warp) and of a warp adds an
offset to the index in the tile, by XOR. A bit that adds nothing new makes copies: if a tile has fewer elements than
there are threads, several threads hold each element, and with yet fewer elements several warps. All of these threads
load the element, and only the thread in whose numbers all bits that make copies are 0 stores it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

Offset = tuple[int, ...]  # in the tile, one number for each axis
MOST_ELEMENTS = 1 << 20  # registers, lanes and warps together
WARP_THREADS = 32
TENSOR = re.compile(r"tensor<((?:\d+x)+)(.*)>")
LISTS = re.compile(r"(\w+) = (\[[\d\[\], ]*\])")
SLICE = re.compile(r"#ttg\.slice<\{dim = (\d+), parent = (.*)\}>")


@dataclass(frozen=True)
class TileLayout:
    """The offset that each bit of a register's, a lane's and a warp's number adds, the lowest bit first."""

    registers: tuple[Offset, ...]
    lanes: tuple[Offset, ...]
    warps: tuple[Offset, ...]


@dataclass(frozen=True, eq=False)
class Holders:
    """The warps that hold and that store each element of a tile; elements are counted row by row."""

    holds: np.ndarray  # [elements, warps], bool: has the warp a copy?
    storing: np.ndarray  # [elements]: the warp that stores it


def shape_of(text: str) -> tuple[int, ...]:
    """Returns the shape of a type such as tensor<8x4xf32, #blocked>; () for a single number's."""
    match = TENSOR.fullmatch(text)
    return tuple(int(size) for size in match[1].split("x")[:-1]) if match else ()


def holders_of(text: str, aliases: tuple[tuple[str, str], ...], warps: int) -> Holders | None:
    """Returns the holders of a type such as tensor<8xf32, #blocked>, or a single number's; None for an unknown layout.

    `aliases`: pairs of a layout's name in the text, without the #, and the layout that it stands for. `warps`: of the
    kernel. Each warp holds a single number, and the first one stores it.
    """
    if "tensor<" not in text:
        storing = np.zeros(1, np.int64)  # by the first thread
        return Holders(np.ones((1, warps), bool), storing)
    return _holders_of(text, aliases, warps)


@lru_cache(512)
def _holders_of(text: str, aliases: tuple[tuple[str, str], ...], warps: int) -> Holders | None:
    _, _, encoding = text.removesuffix(">").partition(", ")
    shape = shape_of(text)
    layout = layout_of(encoding, dict(aliases), shape) if shape and encoding else None
    return holders(layout, shape) if layout is not None and 1 << len(layout.warps) == warps else None


def layout_of(encoding: str, aliases: dict[str, str], shape: tuple[int, ...]) -> TileLayout | None:
    text = aliases.get(encoding.removeprefix("#"), encoding)
    if match := SLICE.fullmatch(text):
        axis = int(match[1])
        parent = layout_of(match[2], aliases, (*shape[:axis], 1, *shape[axis:]))
        return parent and TileLayout(
            *(_without_axis(axis, bits) for bits in (parent.registers, parent.lanes, parent.warps))
        )
    lists = {name: _numbers(value) for name, value in LISTS.findall(text)}
    if text.startswith("#ttg.linear<"):
        parts = (lists.get(name, ()) for name in ("register", "lane", "warp"))
        return TileLayout(*parts) if not lists.get("block") else None
    if text.startswith("#ttg.blocked<"):
        return _blocked(lists, shape)
    return None


def _numbers(text: str) -> tuple:
    """Returns the numbers of a text such as "[1, 32]" or "[[0, 1], [2, 0]]", in tuples of the same nesting."""
    if text.startswith("[["):
        return tuple(_numbers(f"[{part}]") for part in text[2:-2].split("], ["))
    return tuple(int(number) for number in text[1:-1].split(", ") if number)


def _without_axis(axis: int, bits: Sequence[Offset]) -> tuple[Offset, ...]:
    return tuple((*bit[:axis], *bit[axis + 1 :]) for bit in bits)


def _blocked(lists: dict[str, tuple], shape: tuple[int, ...]) -> TileLayout:
    """Returns a blocked layout by its bits.

    A thread holds `sizePerThread` adjacent elements. Along each axis, threads follow each other, then warps. Further
    registers cover a tile that is longer; a tile that is shorter has copies.
    """
    reached = [1] * len(shape)

    def bits(sizes: Sequence[int]) -> tuple[Offset, ...]:
        steps = []
        for axis in lists["order"]:
            for _ in range(sizes[axis].bit_length() - 1):
                step = reached[axis] if reached[axis] < shape[axis] else 0
                steps.append(tuple(step * (number == axis) for number in range(len(shape))))
                reached[axis] *= 2
        return tuple(steps)

    registers, lanes, warps = (bits(lists[name]) for name in ("sizePerThread", "threadsPerWarp", "warpsPerCTA"))
    more = bits([max(1, size // had) for size, had in zip(shape, reached)])
    return TileLayout(registers + more, lanes, warps)


def holders(layout: TileLayout, shape: tuple[int, ...]) -> Holders | None:
    registers, lanes, warps = layout.registers, layout.lanes, layout.warps
    if 1 << len(registers) + len(lanes) + len(warps) > MOST_ELEMENTS:
        return None
    of_warp = _places(registers + lanes, shape)
    of_warps = _places(warps, shape)
    holds = np.zeros((int(np.prod(shape)), of_warps.size), bool)
    for warp, place in enumerate(of_warps.tolist()):
        holds[of_warp ^ place, warp] = True
    free = _free(registers + lanes, warps, shape)
    storing = np.full(holds.shape[0], -1)
    for warp in range(of_warps.size):
        if not warp & free:
            storing[holds[:, warp]] = warp
    return Holders(holds, storing) if (storing >= 0).all() else None


def _places(bits: Sequence[Offset], shape: tuple[int, ...]) -> np.ndarray:
    """Returns the index of the element for each number that these bits make; elements are counted row by row.

    Sizes of tiles are powers of two, so that flat indices, too, combine by XOR.
    """
    places = np.zeros(1, np.int64)
    for place in _flat(bits, shape):
        places = np.concatenate([places, places ^ place])
    return places


def _flat(bits: Sequence[Offset], shape: tuple[int, ...]) -> list[int]:
    return [int(np.ravel_multi_index(bit, shape)) for bit in bits]


def _free(first: Sequence[Offset], warps: Sequence[Offset], shape: tuple[int, ...]) -> int:
    """Returns a mask of the bits of a warp's number that make copies: the bits before them reach the same elements.

    `first`: the offsets of the bits of registers and lanes, which come before the warps'.
    """
    reached: list[int] = []  # independent; no two have the same highest bit
    free = 0
    for number, place in enumerate(_flat([*first, *warps], shape), -len(first)):
        for one in reached:
            place = min(place, place ^ one)
        if place:
            reached.append(place)
            reached.sort(reverse=True)
        elif number >= 0:
            free |= 1 << number
    return free
