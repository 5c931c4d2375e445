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
FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
PLACE = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+))?")
ACCESS = re.compile(r"\b(ld|st)\.global\S*?(?:\.v(\d))?\.[a-z]+(\d+)\b")
ASYNC_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global\s*\[[^\]]*\],\s*\[[^\]]*\],\s*(0x[0-9a-f]+|\d+)")
TILE = re.compile(
    r"(?:tt\.load|tt\.store|async_copy_global_to_local)\b.*?tensor<([\dx]+)x!tt\.ptr<[a-z]+(\d+).*loc\((#\w+)\)"
)
TMA_TILE = re.compile(r"async_tma_copy\w*.*?tensordesc<(?:tensor<)?([\dx]+)x[a-z]+(\d+)")  # to and from memory
LOCATION = re.compile(r'^(#loc\w*) = loc\("([^"]*)":(\d+):\d+\)', re.MULTILINE)
ALIAS = re.compile(r"^(#loc\w*) = loc\((?:\"[^\"]*\"\(|callsite\()(#loc\w*)(?: at (#loc\w*))?\)\)", re.MULTILINE)
ARRAY = re.compile(r"\.local\s+\.align\s+\d+\s+\.b8\s+\w+\[(\d+)\]")  # what printf's arguments, or sin, are given
TENSOR_CORES = {"wgmma": "wgmma.mma_async", "tcgen05": "tcgen05.mma", "mma": "mma.sync"}


@dataclass(frozen=True)
class Access:
    """One instruction of one thread between global memory and registers, or shared memory."""

    kind: str  # "load" or "store"
    bytes: int
    line: int  # in the submission; 0 if unknown
    tile_bytes: int = 0  # of the largest tile that this line loads or stores; 0: a single number, or not known


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
    tensor_cores: str = ""  # the instruction that multiplies tiles: wgmma, tcgen05, mma, or "" for none

    @property
    def tile_bytes(self) -> int:
        """Bytes of the largest tile that the kernel loads or stores."""
        return max(self.tma_tile_bytes, *(access.tile_bytes for access in self.accesses), 0)

    def narrowest(self, least_tile: float = 0) -> Access | None:
        """Of the accesses to tiles of so many bytes; what a kernel keeps per row or per program matters little."""
        large = [access for access in self.accesses if access.tile_bytes >= least_tile]
        return min(large, key=lambda access: access.bytes, default=None)

    def share_per_thread(self, access: Access) -> float:
        """Bytes of its tile that each thread gets."""
        return access.tile_bytes / (32 * self.warps)

    def blocks_per_multiprocessor(self, shared_per_multiprocessor: int) -> int:
        """How many blocks fit on one multiprocessor: 65536 registers, 64 warps, its shared memory. Triton's limits."""
        registers = -(-self.registers // 8) * 8 or 8
        by_shared = shared_per_multiprocessor // (self.shared + 1024)
        return min(65536 // (registers * 32 * self.warps), by_shared, 64 // self.warps, 32)


def facts_of(kernel: Kernel, filename: str) -> Facts:
    """From a kernel with the texts `ptx` and `ttgir`."""
    ptx, ttgir = kernel.texts.get("ptx", ""), kernel.texts.get("ttgir", "")
    tiles = _tile_bytes_by_line(ttgir, filename)
    accesses = [replace(access, tile_bytes=tiles.get(access.line, 0)) for access in _accesses(ptx, filename)]
    cubin = kernel.cubin
    arrays = max((int(size) for size in ARRAY.findall(ptx)), default=0)
    spilled = max(0, cubin.stack_bytes - arrays)
    facts = Facts(kernel.name, kernel.warps, kernel.stages, cubin.registers, spilled, kernel.shared, accesses)
    facts.async_copies = len(ASYNC_COPY.findall(ptx))
    facts.tma_copies = ptx.count("cp.async.bulk.tensor")
    facts.tma_tile_bytes = max((_bytes(*tile) for tile in TMA_TILE.findall(ttgir)), default=0)
    facts.tensor_cores = next((name for name, opcode in TENSOR_CORES.items() if opcode in ptx), "")
    return facts


def ptx_lines(ptx: str, filename: str) -> Iterator[tuple[int, str]]:
    """Each row of the text with its line in the submission, 0 if unknown; rows that only tell lines are left out."""
    own = {number for number, path in FILE.findall(ptx) if path.rpartition("/")[2] == filename}
    line, places = 0, 0  # places: seen in this piece of inline assembly
    for text in ptx.splitlines():
        if "inline asm" in text:
            places = 1 if "begin" in text else 0
        elif place := PLACE.match(text):
            inner, outer = (place[1], place[2]), (place[3], place[4])
            if places < 2:  # the lines of one piece are numbered on, as if the source had them: only the first is right
                line = next((int(at) for number, at in (inner, outer) if number in own), line)
            places += places > 0
        else:
            yield line, text


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


def _accesses(ptx: str, filename: str) -> Iterator[Access]:
    for line, text in ptx_lines(ptx, filename):
        if found := ACCESS.search(text):
            yield Access("load" if found[1] == "ld" else "store", int(found[2] or 1) * int(found[3]) // 8, line)
        elif found := ASYNC_COPY.search(text):
            yield Access("load", int(found[1], 0), line)


def mlir_lines(text: str, filename: str) -> dict[str, int]:
    """The line in the submission of each location that a text of Triton's names, such as #loc5; 0 if there is none."""
    lines = {name: int(line) for name, path, line in LOCATION.findall(text) if path.rpartition("/")[2] == filename}
    aliases = {name: (inner, outer) for name, inner, outer in ALIAS.findall(text)}
    return {name: _line_of(name, lines, aliases) for name in (*lines, *aliases)}


def _tile_bytes_by_line(ttgir: str, filename: str) -> dict[int, int]:
    lines = mlir_lines(ttgir, filename)
    found: dict[int, int] = {}
    for shape, bits, location in TILE.findall(ttgir):
        line = lines.get(location, 0)
        found[line] = max(_bytes(shape, bits), found.get(line, 0))
    return found


def _bytes(shape: str, bits: str) -> int:
    """Of a tile, from "32x128" and "16"."""
    return math.prod(int(number) for number in shape.split("x")) * int(bits) // 8


def _line_of(location: str, lines: dict[str, int], aliases: dict[str, tuple[str, str]], depth: int = 0) -> int:
    """The innermost line in the submission that a location stands for; 0 if there is none."""
    if location in lines:
        return lines[location]
    inner = aliases.get(location, ()) if depth < 64 else ()
    return next((line for part in inner if (line := _line_of(part, lines, aliases, depth + 1))), 0)
