"""AMD GPUs: kernels can be compiled for them, and what the compiler says is told. Speed is judged on NVIDIA GPUs alone.

The text of the machine code ends with metadata: registers, spilled registers, memory per thread. Counts of instructions
are of that text, so the body of a loop counts once. A lane moves at most 16 bytes in one access.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from grader.gpu.compiled_facts import Facts, GlobalAccess, TileSizes
from grader.gpu.models import AmdModel
from grader.wire.launch_abi import MOST_THREADS

ASSEMBLY = "amdgcn"  # the part of a compiler's answer that is read here


COUNT = re.compile(r"^\s*\.(vgpr_count|private_segment_fixed_size):\s*(\d+)", re.MULTILINE)
LINE = re.compile(r"\s*\.loc\s.*;\s*(\S+):(\d+):(\d+)(?: @\[ (\S+):(\d+):(\d+))?")
ACCESS = re.compile(r"\s*(?:global|buffer|flat)_(load|store)_(?:lds_)?([a-z0-9_]+)\b")
MATRIX = re.compile(r"\bv_(s?w?mf?ma\w*?)_")  # v_mfma_f32_..., v_smfmac_..., v_wmma_..., v_swmmac_...
BYTES = {  # of the names that instructions give to what they move; gfx9 says dword where gfx11 says b32
    "byte": 1, "ubyte": 1, "sbyte": 1, "short": 2, "ushort": 2, "sshort": 2,
    "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16,
    "b8": 1, "u8": 1, "i8": 1, "b16": 2, "u16": 2, "i16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16,
}  # fmt: skip


def excess(model: AmdModel, warps: int, shared: int) -> str:
    """Returns what a program of so many warps and bytes of shared memory needs too much of; "" if it fits."""
    if shared > model.shared:
        return f"{shared / 1024:.4g} KiB of shared memory, of {model.shared / 1024:g}"
    if warps * model.lanes > MOST_THREADS:
        return f"{warps * model.lanes} threads, of {MOST_THREADS}"
    return ""


def facts_of(kernel: str, warps: int, shared: int, model: AmdModel, texts: dict[str, str], filename: str) -> Facts:
    """Returns the facts about a kernel's text of machine code. `shared`: bytes of LDS. `texts`: ASSEMBLY and ttgir."""
    assembly, counts = texts[ASSEMBLY], dict(COUNT.findall(texts[ASSEMBLY]))
    tiles = TileSizes(texts.get("ttgir", ""), filename)
    accesses = [replace(access, tile_bytes=tiles.at(place)) for place, access in _accesses(assembly, filename)]
    registers, spilled = (int(counts.get(name, 0)) for name in ("vgpr_count", "private_segment_fixed_size"))
    facts = Facts(kernel, warps, 0, registers, spilled, shared, accesses, lanes=model.lanes)
    facts.tensor_cores = "".join(MATRIX.findall(assembly)[:1])
    return facts


def _accesses(assembly: str, filename: str) -> Iterator[tuple[tuple[int, int], GlobalAccess]]:
    place = (0, 0)
    for text in assembly.splitlines():
        if location := LINE.match(text):
            of_calls = location.groups()[:3], location.groups()[3:]  # of an inlined function, and where it is called
            place = next(((int(line), int(at)) for file, line, at in of_calls if file == filename), place)
        elif (match := ACCESS.match(text)) and (size := _bytes_of(match[2])):
            yield place, GlobalAccess(match[1], size, place[0])


def _bytes_of(moved: str) -> int:
    """Returns the bytes that "dwordx4", "d16_hi_b16" or "short_d16_hi" stand for; 0 for other names."""
    return max((BYTES.get(word, 0) for word in moved.split("_")), default=0)
