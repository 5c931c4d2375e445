"""What the compiler made of a kernel: how wide its memory accesses are, what its products run on, what it uses up.

Counts are of the PTX text, so the body of a loop counts once. What a thread moves in one access is at most 16 bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from grader.gpu.plan import Kernel

WIDEST = 16  # bytes
FEW_SPILLED = 32  # bytes per thread, eight registers of 255: releases and GPUs differ by up to six for a right kernel
FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
PLACE = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
ACCESS = re.compile(r"\b(ld|st)\.global\S*?(?:\.v(\d))?\.[a-z]+(\d+)\b")
ASYNC_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global\s*\[[^\]]*\],\s*\[[^\]]*\],\s*(0x[0-9a-f]+|\d+)")
TILE = re.compile(
    r"(?:tt\.load|tt\.store|async_copy_global_to_local)\b.*?tensor<([\dx]+)x!tt\.ptr<[a-z]+(\d+).*loc\((#\w+)\)"
)
NUMBER = re.compile(r"tt\.(?:load|store)\b[^<]*: !tt\.ptr<.*loc\((#\w+)\)")  # one, without a tile
TMA_TILE = re.compile(r"async_tma_copy\w*.*?tensordesc<(?:tensor<)?([\dx]+)x[a-z]+(\d+)")  # to and from memory
TMA_LOAD = re.compile(r"async_tma_copy_global_to_local\b[^\]]*\]\s*(%\w+)")  # and where in shared memory it goes
LOCATION = re.compile(r'^(#loc\w*) = loc\("([^"]*)":(\d+):(\d+)\)', re.MULTILINE)
ALIAS = re.compile(r"^(#loc\w*) = loc\((?:\"[^\"]*\"\(|callsite\()(#loc\w*)(?: at (#loc\w*))?\)\)", re.MULTILINE)
ARRAY = re.compile(r"\.local\s+\.align\s+\d+\s+\.b8\s+\w+\[(\d+)\]")  # what printf's arguments, or sin, are given
Place = tuple[int, int]  # line and column in the submission; 0 if unknown
PRODUCT = re.compile(
    r"\b(?:tt\.dot|ttng\.warp_group_dot|ttng\.tc_gen5_mma)\s.*?:\s*(?:tensor|!ttg\.memdesc)<[\dx]+x([a-z]+\d+)"
)
TENSOR_CORES = {"wgmma": "wgmma.mma_async", "tcgen05": "tcgen05.mma", "mma": "mma.sync"}


@dataclass(frozen=True)
class Access:
    """One instruction of one thread between global memory and registers, or shared memory."""

    kind: str  # "load" or "store"
    bytes: int
    line: int  # in the submission; 0 if unknown
    tile_bytes: int = 0  # of the largest tile that is loaded or stored there; 0: a single number, or not known


@dataclass
class Facts:
    kernel: str
    warps: int
    stages: int
    registers: int  # per thread
    spilled_bytes: int  # per thread, from registers to memory
    shared: int  # bytes per block
    accesses: list[Access] = field(default_factory=list)
    async_copies: int = 0  # of them, straight into shared memory
    tma_copies: int = 0  # whole tiles, moved by the memory accelerator
    tma_tile_bytes: int = 0  # of the largest of them
    tma_loads_ahead: int = 0  # of them, loads into one of several places by turns, while a product reads another
    tensor_cores: str = ""  # the instruction that multiplies tiles: wgmma, tcgen05, mma, or "" for none
    multiplied: frozenset[str] = frozenset()  # the types of the tiles that products multiply, as "f16"
    blocks: int = 1  # of threads, that share a program: num_ctas

    @property
    def spills(self) -> bool:
        """More than one release of the compiler, or one GPU, may add to a kernel that fits elsewhere."""
        return self.spilled_bytes > FEW_SPILLED

    @property
    def tile_bytes(self) -> int:
        """Bytes of the largest tile that the kernel loads or stores."""
        return max(self.tma_tile_bytes, *(access.tile_bytes for access in self.accesses), 0)

    def narrowest(self, least_tile: float = 0) -> Access | None:
        """The narrowest access to a tile of at least `least_tile` bytes; None without a tile of that size.

        Smaller tiles hold what a kernel keeps per row or per program: their width matters little.
        """
        large = [access for access in self.accesses if access.tile_bytes >= least_tile]
        return min(large, key=lambda access: access.bytes, default=None)

    def share_per_thread(self, access: Access) -> float:
        """Bytes of its tile that each thread gets."""
        return access.tile_bytes / (32 * self.warps * self.blocks)

    def blocks_per_multiprocessor(self, shared_per_multiprocessor: int) -> int:
        """How many blocks fit on one multiprocessor: 65536 registers, 64 warps, its shared memory. Triton's limits."""
        registers = -(-self.registers // 8) * 8 or 8
        by_shared = shared_per_multiprocessor // (self.shared + 1024)
        return min(65536 // (registers * 32 * self.warps), by_shared, 64 // self.warps, 32)


def facts_of(kernel: Kernel, filename: str) -> Facts:
    """From a kernel with the texts `ptx` and `ttgir`."""
    ptx, ttgir = kernel.texts.get("ptx", ""), kernel.texts.get("ttgir", "")
    tiles = _Tiles(ttgir, filename)
    accesses = [replace(one, tile_bytes=tiles.at(place)) for place, one in _accesses(ptx, filename)]
    cubin = kernel.cubin
    arrays = max((int(size) for size in ARRAY.findall(ptx)), default=0)
    spilled = max(0, cubin.stack_bytes - arrays)
    facts = Facts(kernel.name, kernel.warps, kernel.stages, cubin.registers, spilled, kernel.shared, accesses)
    facts.async_copies = len(ASYNC_COPY.findall(ptx))
    facts.tma_copies = ptx.count("cp.async.bulk.tensor")
    facts.tma_loads_ahead = sum(f"{place} = ttg.memdesc_index" in ttgir for place in TMA_LOAD.findall(ttgir))
    facts.tma_tile_bytes = max((_bytes(*tile) for tile in TMA_TILE.findall(ttgir)), default=0)
    facts.tensor_cores = next((name for name, opcode in TENSOR_CORES.items() if opcode in ptx), "")
    facts.multiplied = frozenset(PRODUCT.findall(ttgir))
    facts.blocks = kernel.ctas
    return facts


def ptx_lines(ptx: str, filename: str) -> Iterator[tuple[int, str]]:
    """Each row of the text with its line in the submission, 0 if unknown; rows that only tell lines are left out."""
    return ((line, text) for (line, _), text in _ptx_places(ptx, filename))


def _ptx_places(ptx: str, filename: str) -> Iterator[tuple[Place, str]]:
    return ((place, text) for place, _, text in ptx_rows(ptx, filename))


def ptx_rows(ptx: str, filename: str) -> Iterator[tuple[Place, int, str]]:
    """Each row with its place, and the line of the call that led there if it was inlined, else 0."""
    own = {number for number, path in FILE.findall(ptx) if path.rpartition("/")[2] == filename}
    place, caller, places = (0, 0), 0, 0  # places: seen in this piece of inline assembly
    for text in ptx.splitlines():
        if "inline asm" in text:
            places = 1 if "begin" in text else 0
        elif said := PLACE.match(text):
            inner, outer = said.groups()[:3], said.groups()[3:]
            if places < 2:  # the lines of one piece are numbered on, as if the source had them: only the first is right
                mine = [(int(at), int(column)) for file, at, column in (inner, outer) if file in own]
                if mine:
                    place, caller = mine[0], mine[1][0] if len(mine) > 1 else 0
            places += places > 0
        else:
            yield place, caller, text


def without_counted_lines(ptx: str) -> str:
    """The text without the lines that inline assembly counts on by itself, which are none of the submission's."""
    rows, places = [], 0
    for text in ptx.splitlines(keepends=True):
        if "inline asm" in text:
            places = 1 if "begin" in text else 0
        elif places and PLACE.match(text):
            places += 1
        if places < 3 or not PLACE.match(text):
            rows.append(text)
    return "".join(rows)


def _accesses(ptx: str, filename: str) -> Iterator[tuple[Place, Access]]:
    for place, text in _ptx_places(ptx, filename):
        if found := ACCESS.search(text):
            kind = "load" if found[1] == "ld" else "store"
            yield place, Access(kind, int(found[2] or 1) * int(found[3]) // 8, place[0])
        elif found := ASYNC_COPY.search(text):
            yield place, Access("load", int(found[1], 0), place[0])


def mlir_lines(text: str, filename: str) -> dict[str, int]:
    """The line in the submission of each location that a text of Triton's names, such as #loc5; 0 if there is none."""
    return {name: line for name, (line, _) in mlir_places(text, filename).items()}


def mlir_places(text: str, filename: str) -> dict[str, Place]:
    named = ((name, (int(line), int(at)), path) for name, path, line, at in LOCATION.findall(text))
    places = {name: place for name, place, path in named if path.rpartition("/")[2] == filename}
    aliases = {name: (inner, outer) for name, inner, outer in ALIAS.findall(text)}
    return {name: _place_of(name, places, aliases) for name in (*places, *aliases)}


class _Tiles:
    """Bytes of the largest tile that is loaded or stored at a place of the submission.

    One line may load a tile and a single number beside it: then columns tell which is which. Where the compiler has
    moved an access to another column of its line, the line's largest tile is taken.
    """

    def __init__(self, ttgir: str, filename: str) -> None:
        places = mlir_places(ttgir, filename)
        self._at: dict[Place, int] = {places.get(location, (0, 0)): 0 for location in NUMBER.findall(ttgir)}
        self._in_line: dict[int, int] = {}
        for shape, bits, location in TILE.findall(ttgir):
            place, size = places.get(location, (0, 0)), _bytes(shape, bits)
            self._at[place] = max(size, self._at.get(place, 0))
            self._in_line[place[0]] = max(size, self._in_line.get(place[0], 0))

    def at(self, place: Place) -> int:
        return self._at.get(place, self._in_line.get(place[0], 0))


def _bytes(shape: str, bits: str) -> int:
    """Of a tile, from "32x128" and "16"."""
    return math.prod(int(number) for number in shape.split("x")) * int(bits) // 8


def _place_of(location: str, places: dict[str, Place], aliases: dict[str, tuple[str, str]], depth: int = 0) -> Place:
    """The innermost place in the submission that a location stands for; (0, 0) if there is none."""
    if location in places:
        return places[location]
    inner = aliases.get(location, ()) if depth < 64 else ()
    found = (_place_of(part, places, aliases, depth + 1) for part in inner)
    return next((place for place in found if place[0]), (0, 0))
