"""The texts that a kernel passes through on its way to machine code, each instruction with its line of the kernel.

Every level keeps debug information in its own way. An instruction without any, or of Triton's own library without a
place in the learner's file, belongs to line 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LEVELS = ("ttir", "ttgir", "llir", "ptx", "sass")

READING = {
    "ttir": "Triton IR: your kernel as Triton understood it. One operation for each of yours, on whole tiles: "
    "tensor<1024xf32> is a tile of 1024 numbers. tt.load and tt.store show whether a mask and an `other` are "
    "there; tt.reduce is a sum or a maximum; scf.for is a loop that runs on the GPU. What you computed from "
    "constexpr arguments has become numbers. No thread appears yet.",
    "ttgir": "Triton GPU IR: the same operations, with a layout for each tile. #blocked says which thread holds which "
    "elements: sizePerThread is how many neighbours one thread holds along each axis, and 4 of fp32 or 8 of "
    "fp16 in the direction of memory make 16-byte accesses. ttg.convert_layout moves a tile between layouts, "
    "often through shared memory. ttg.async_copy_global_to_local is a load that runs ahead; ttng.warp_group_dot "
    "is a product on tensor cores.",
    "llir": "LLVM IR: the work of one thread. A tile has become the few values that this thread holds, one variable "
    "each. llvm.nvvm.read.ptx.sreg.tid.x is the thread's number, ctaid.x the program's. Loads and stores are "
    "already inline PTX; shfl.sync passes values between the 32 threads of a warp, as a reduction does; "
    "bar.sync waits for all warps of the program.",
    "ptx": "PTX: assembly for an ideal GPU, with as many registers as it likes. ld.global.v4.b32 loads 16 bytes at "
    "once, ld.global.b32 only 4. A leading @%p1 means that the instruction runs only where the mask %p1 is "
    "true. wgmma or mma multiply tiles on tensor cores; cp.async copies to shared memory while other work goes "
    "on; shfl.sync.bfly is one step of a reduction in a warp.",
    "sass": "SASS: the machine code of this GPU, registers assigned (R0 to R254). LDG.E.128 loads 16 bytes, LDG.E only "
    "4; STG stores. LDL and STL are registers spilled to memory: there should be none. HGMMA or HMMA are "
    "products on tensor cores, LDGSTS an asynchronous copy, MUFU.EX2 the hardware's power of 2, BAR.SYNC a wait "
    "for all warps.",
}  # fmt: skip


@dataclass(frozen=True)
class Instruction:
    line: int  # in the learner's file; 0: none, or not known
    text: str


def instructions(level: str, text: str, filename: str) -> list[Instruction]:
    """Returns the instructions in a text of this level, in order, without the rows that only serve debuggers."""
    reader = {"ttir": _mlir, "ttgir": _mlir, "llir": _llvm, "ptx": _ptx, "sass": _sass}[level]
    return list(reader(text, filename))


# ---- Triton's two levels ------------------------------------------------------------------------------------------

MLIR_PLACE = re.compile(r"\s*loc\((?:(#loc\w*)|(?:[^()]|\([^()]*\))*)\)")


def _mlir(text: str, filename: str) -> Iterator[Instruction]:
    from grader.gpu.compiled_facts import mlir_lines  # imports torch, which the command's help can do without

    lines = mlir_lines(text, filename)
    for row in text.splitlines():
        if row.startswith("#loc") or not row.strip():
            continue
        named = [match[1] for match in MLIR_PLACE.finditer(row) if match[1]]
        yield Instruction(lines.get(named[-1], 0) if named else 0, MLIR_PLACE.sub("", row).rstrip())


# ---- LLVM ---------------------------------------------------------------------------------------------------------

DEBUG = re.compile(r",? !dbg !(\d+)")
PLACES = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+).*?scope: !(\d+)(?:, inlinedAt: !(\d+))?", re.M)
SCOPES = re.compile(r"^!(\d+) = (?:distinct )?!DI(?:Subprogram|LexicalBlock\w*)\(.*?file: !(\d+)", re.M)
FILES = re.compile(r'^!(\d+) = !DIFile\(filename: "([^"]*)"', re.M)
LLVM_NOISE = ("!", "attributes ", "declare ", "source_filename", "target ", "; ModuleID", "^")


def _llvm(text: str, filename: str) -> Iterator[Instruction]:
    own = {number for number, name in FILES.findall(text) if name == filename}
    own_scopes = {number for number, file in SCOPES.findall(text) if file in own}
    places = {number: (int(line), scope in own_scopes, outer) for number, line, scope, outer in PLACES.findall(text)}
    for row in text.splitlines():
        if row.strip() and not row.startswith(LLVM_NOISE):
            match = DEBUG.search(row)
            yield Instruction(_llvm_line(places, match[1]) if match else 0, DEBUG.sub("", row).rstrip())


def _llvm_line(places: dict[str, tuple[int, bool, str]], number: str) -> int:
    """Returns the place's line in the learner's file, or the line there that it was inlined at; 0 if there is none."""
    for _ in range(64):
        line, is_own, outer = places.get(number, (0, True, ""))
        if is_own or not outer:
            return line if is_own else 0
        number = outer
    return 0


# ---- PTX and SASS -------------------------------------------------------------------------------------------------


def _ptx(text: str, filename: str) -> Iterator[Instruction]:
    from grader.gpu.compiled_facts import ptx_lines

    for line, row in ptx_lines(text, filename):
        if row.strip().startswith(".section"):  # the rest serves debuggers
            return
        if row.strip() and not row.strip().startswith(("//", ".file", "$L__tmp", "$L__func")):
            yield Instruction(line, row.split("// ")[0].rstrip())


SASS_PLACE = re.compile(r'//## File "([^"]*)", line (\d+)')
SASS_LABEL = re.compile(r"^\.L_x_\d+:")
SASS_CODE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*$")


def _sass(text: str, filename: str) -> Iterator[Instruction]:
    line = 0
    for row in text.splitlines():
        if place := SASS_PLACE.search(row):
            line = int(place[2]) if place[1].rpartition("/")[2] == filename else line
        elif code := SASS_CODE.match(row):
            yield Instruction(line, f"{code[1]}  {code[2]}")
        elif label := SASS_LABEL.match(row):
            yield Instruction(0, label[0])
