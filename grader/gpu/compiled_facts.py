"""Facts about a kernel's machine code: the width of its memory accesses, its tensor core instructions, its resources.

Counts are of the PTX text, so the body of a loop counts once. A thread moves at most 16 bytes in one access.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from grader.gpu.plan import PlannedKernel

WIDEST = 16  # bytes
FEW_SPILLED = 32  # bytes per thread, eight registers of 255: releases and GPUs differ by up to six for a right kernel
FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
PLACE = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
ACCESS = re.compile(r"\b(ld|st)\.global\S*?(?:\.v(\d))?\.[a-z]+(\d+)\b")
ASYNC_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global\s*\[[^\]]*\],\s*\[[^\]]*\],\s*(0x[0-9a-f]+|\d+)")
TILE = re.compile(
    r"(?:tt\.load|tt\.store|async_copy_global_to_local)\b.*?tensor<([\dx]+)x!tt\.ptr<[a-z]+(\d+).*loc\((#\w+)\)"
)
AMD_TILE = re.compile(r"\bamdg(?:pu)?\.buffer_(?:load|store)\w*\b.*?tensor<([\dx]+)x[a-z]+(\d+).*loc\((#\w+)\)")
NUMBER = re.compile(r"tt\.(?:load|store)\b[^<]*: !tt\.ptr<.*loc\((#\w+)\)")  # an access to a single number
TMA_TILE = re.compile(r"async_tma_copy\w*.*?tensordesc<(?:tensor<)?([\dx]+)x[a-z]+(\d+)")  # to and from memory
TMA_LOAD = re.compile(r"async_tma_copy_global_to_local\b[^\]]*\]\s*(%\w+)")  # the group: its target in shared memory
LOCATION = re.compile(r'^(#loc\w*) = loc\("([^"]*)":(\d+):(\d+)\)', re.MULTILINE)
ALIAS = re.compile(r"^(#loc\w*) = loc\((?:\"[^\"]*\"\(|callsite\()(#loc\w*)(?: at (#loc\w*))?\)\)", re.MULTILINE)
ARRAY = re.compile(r"\.local\s+\.align\s+\d+\s+\.b8\s+\w+\[(\d+)\]")  # local memory for arguments of printf, or for sin
LineAndColumn = tuple[int, int]  # line and column in the submission; 0 if unknown
PRODUCT = re.compile(
    r"\b(?:tt\.dot|ttng\.warp_group_dot|ttng\.tc_gen5_mma)\s.*?:\s*(?:tensor|!ttg\.memdesc)<[\dx]+x([a-z]+\d+)"
)
TENSOR_CORES = {"wgmma": "wgmma.mma_async", "tcgen05": "tcgen05.mma", "mma": "mma.sync"}


@dataclass(frozen=True)
class GlobalAccess:
    """An instruction of a thread that moves `bytes` between global memory and registers, or shared memory."""

    kind: str  # "load" or "store"
    bytes: int
    line: int  # in the submission; 0 if unknown
    tile_bytes: int = 0  # of the largest tile that is loaded or stored there; 0: a single number, or unknown


@dataclass
class Facts:
    kernel: str
    warps: int
    stages: int
    registers: int  # per thread
    spilled_bytes: int  # per thread, from registers to memory
    shared: int  # bytes per block
    accesses: list[GlobalAccess] = field(default_factory=list)
    async_copies: int = 0  # accesses (cp.async) straight into shared memory
    tma_copies: int = 0  # copies of whole tiles by the tensor memory accelerator
    tma_tile_bytes: int = 0  # of the largest tile that TMA copies
    tma_loads_ahead: int = 0  # TMA loads into several slots in turn, while a product reads another slot
    tensor_cores: str = ""  # the instruction that multiplies tiles: wgmma, tcgen05, mma, or "" for none
    multiplied: frozenset[str] = frozenset()  # the types of the tiles that products multiply, as "f16"
    blocks: int = 1  # thread blocks that share a program: num_ctas
    lanes: int = 32  # of a warp

    @property
    def spills(self) -> bool:
        """True where more than FEW_SPILLED bytes per thread spill.

        Fewer may come from one release of the compiler, or from one GPU, for a kernel that fits elsewhere.
        """
        return self.spilled_bytes > FEW_SPILLED

    @property
    def tile_bytes(self) -> int:
        """Bytes of the largest tile that the kernel loads or stores."""
        return max(self.tma_tile_bytes, *(access.tile_bytes for access in self.accesses), 0)

    def narrowest(self, least_tile: float = 0) -> GlobalAccess | None:
        """Returns the narrowest access to a tile of at least `least_tile` bytes; None without a tile of that size.

        Smaller tiles hold values per row or per program, for which the width of an access matters little.
        """
        large = [access for access in self.accesses if access.tile_bytes >= least_tile]
        return min(large, key=lambda access: access.bytes, default=None)

    def share_per_thread(self, access: GlobalAccess) -> float:
        """Returns the bytes of the access's tile that fall to each thread."""
        return access.tile_bytes / (self.lanes * self.warps * self.blocks)

    def blocks_per_multiprocessor(self, shared_per_multiprocessor: int) -> int:
        """Returns the number of blocks that fit on one multiprocessor, with Triton's limits.

        A multiprocessor has 65536 registers, 64 warps, and room for 32 blocks. `shared_per_multiprocessor`: in bytes.
        """
        registers = -(-self.registers // 8) * 8 or 8
        by_shared = shared_per_multiprocessor // (self.shared + 1024)
        return min(65536 // (registers * 32 * self.warps), by_shared, 64 // self.warps, 32)


def facts_of(kernel: PlannedKernel, filename: str) -> Facts:
    """Returns the facts about a kernel that has the texts `ptx` and `ttgir`. `filename`: of the submission."""
    ptx, ttgir = kernel.texts.get("ptx", ""), kernel.texts.get("ttgir", "")
    tiles = TileSizes(ttgir, filename)
    accesses = [replace(access, tile_bytes=tiles.at(place)) for place, access in _accesses(ptx, filename)]
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
    """Yields (line, text) for each row but .loc rows; `line`: in the submission, 0 if unknown."""
    return ((line, text) for (line, _), text in _ptx_places(ptx, filename))


def _ptx_places(ptx: str, filename: str) -> Iterator[tuple[LineAndColumn, str]]:
    return ((place, text) for place, _, text in ptx_rows(ptx, filename))


def ptx_rows(ptx: str, filename: str) -> Iterator[tuple[LineAndColumn, int, str]]:
    """Yields (place, caller, text) for each row that is more than a .loc or a bracket of inline assembly.

    `caller`: the line of the call where the row comes from an inlined function, else 0.
    """
    own = {number for number, path in FILE.findall(ptx) if path.rpartition("/")[2] == filename}
    place, caller, places = (0, 0), 0, 0  # places: seen in this piece of inline assembly
    for text in ptx.splitlines():
        if "inline asm" in text:
            places = 1 if "begin" in text else 0
        elif location := PLACE.match(text):
            inner, outer = location.groups()[:3], location.groups()[3:]
            if places < 2:  # the lines of one piece are numbered on, as if the source had them: only the first is right
                mine = [(int(at), int(column)) for file, at, column in (inner, outer) if file in own]
                if mine:
                    place, caller = mine[0], mine[1][0] if len(mine) > 1 else 0
            places += places > 0
        else:
            yield place, caller, text


def without_counted_lines(ptx: str) -> str:
    """Returns the text without the .loc rows that inline assembly counts on by itself, all but the first of each piece.

    These rows name lines that are not lines of the submission.
    """
    rows, places = [], 0
    for text in ptx.splitlines(keepends=True):
        if "inline asm" in text:
            places = 1 if "begin" in text else 0
        elif places and PLACE.match(text):
            places += 1
        if places < 3 or not PLACE.match(text):
            rows.append(text)
    return "".join(rows)


def _accesses(ptx: str, filename: str) -> Iterator[tuple[LineAndColumn, GlobalAccess]]:
    for place, text in _ptx_places(ptx, filename):
        if match := ACCESS.search(text):
            kind = "load" if match[1] == "ld" else "store"
            yield place, GlobalAccess(kind, int(match[2] or 1) * int(match[3]) // 8, place[0])
        elif match := ASYNC_COPY.search(text):
            yield place, GlobalAccess("load", int(match[1], 0), place[0])


def mlir_lines(text: str, filename: str) -> dict[str, int]:
    """Returns the line in the submission of each location of Triton's text, by its name, #loc5; 0 if it has none."""
    return {name: line for name, (line, _) in mlir_places(text, filename).items()}


def mlir_places(text: str, filename: str) -> dict[str, LineAndColumn]:
    named = ((name, (int(line), int(at)), path) for name, path, line, at in LOCATION.findall(text))
    places = {name: place for name, place, path in named if path.rpartition("/")[2] == filename}
    aliases = {name: (inner, outer) for name, inner, outer in ALIAS.findall(text)}
    return {name: _place_of(name, places, aliases) for name in (*places, *aliases)}


class TileSizes:
    """The bytes of the largest tile that is loaded or stored at each place of the submission.

    A line may load both a tile and a single number: then their columns tell them apart. If the compiler has moved an
    access to another column of its line, the line's largest tile is taken.
    """

    def __init__(self, ttgir: str, filename: str) -> None:
        places = mlir_places(ttgir, filename)
        self._at: dict[LineAndColumn, int] = {places.get(location, (0, 0)): 0 for location in NUMBER.findall(ttgir)}
        self._in_line: dict[int, int] = {}
        for shape, bits, location in (*TILE.findall(ttgir), *AMD_TILE.findall(ttgir)):
            place, size = places.get(location, (0, 0)), _bytes(shape, bits)
            self._at[place] = max(size, self._at.get(place, 0))
            self._in_line[place[0]] = max(size, self._in_line.get(place[0], 0))

    def at(self, place: LineAndColumn) -> int:
        return self._at.get(place, self._in_line.get(place[0], 0))


def _bytes(shape: str, bits: str) -> int:
    """Returns the bytes of a tile, from the texts of its shape and of an element's bits: "32x128" and "16"."""
    return math.prod(int(number) for number in shape.split("x")) * int(bits) // 8


def _place_of(
    location: str, places: dict[str, LineAndColumn], aliases: dict[str, tuple[str, str]], depth: int = 0
) -> LineAndColumn:
    """Returns the innermost place in the submission that a location stands for; (0, 0) if there is none."""
    if location in places:
        return places[location]
    inner = aliases.get(location, ()) if depth < 64 else ()
    places_inside = (_place_of(part, places, aliases, depth + 1) for part in inner)
    return next((place for place in places_inside if place[0]), (0, 0))
