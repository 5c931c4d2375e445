"""Reads facts about a kernel from its machine code. The parent gets cubins from the child, so every length is checked.

A cubin is an ELF file. In addition to code it holds lists of attributes, `.nv.info` for the file and `.nv.info.NAME`
for each kernel: parameters with their sizes, registers, stack. The numbers of formats and attributes are as the tool
`cuobjdump -elf` prints them by name.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

HEADER = struct.Struct("<4sBBBBB7xHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
CUDA_MACHINE, NO_BITS, SYMBOLS, WRITABLE = 190, 8, 2, 0b11  # as the ELF format numbers them
LOCAL, OBJECT = 0, 1  # a symbol that only this file knows; a symbol that stands for memory
SIZED = 4  # format of an attribute with a length; the other formats hold two bytes
PARAMETER, FRAME_SIZE, REGISTERS = 0x17, 0x11, 0x2F
MOST_SECTIONS = 4096
RUNTIME_FUNCTIONS = {"vprintf", "__assertfail"}  # what tl.device_print and tl.device_assert call
COPIES = "__cuda_syscall_cp_async_bulk_tensor_"  # of the driver: the assembler of Triton 3.6 copies tiles so on sm_120
RESERVED_SHARED = ".nv.reservedSmem."  # places in the shared memory that the driver keeps for itself

# Triton's constants that lie in writable memory for want of another place: it puts nothing else there.
QUESTIONS = re.compile(r"_\$_str(_\$_\d+)?")  # with these, libdevice asks the compiler how to round; they are left over
ASKED = {b"__CUDA_FTZ\0", b"__CUDA_ARCH\0", b"__CUDA_PREC_SQRT\0"}
TABLES = {  # of libdevice, in bytes
    "__cudart_i2opi_f": 24,  # 2 / pi, with which sin, cos and tan of large fp32 arguments are reduced
    "__cudart_i2opi_d": 144,  # the same for fp64
    "__cudart_sin_cos_coeffs": 128,  # the polynomials of sin and cos, fp64
}
DEBUG_TEXTS = re.compile(r"printfFormat_\d+|assert(Message|File|Func)_\d+")  # of tl.device_print and tl.device_assert
MOST_TEXT = 4096  # bytes
SAME_AGAIN = ".nv.merc"  # from sm_100 on, a section may stand in the file a second time under this name


class BadCubin(ValueError):
    """Machine code that is cut short, damaged, or does what Triton's never does."""


@dataclass
class Cubin:
    arch: int = 0  # 90 is sm_90
    kernels: list[str] = field(default_factory=list)
    registers: int = 0  # per thread, of the kernel that needs most
    stack_bytes: int = 0  # per thread; more than 0: registers were spilled to memory, or there is a local array
    parameters: list[int] = field(default_factory=list)  # bytes of each, in order
    static_shared: int = 0  # bytes; what a launch asks for comes on top
    writable_globals: int = 0  # bytes of memory that would survive a launch
    undefined: list[str] = field(default_factory=list)  # functions it calls and does not hold


def read_cubin(data: bytes) -> Cubin:
    """Returns the facts that a cubin states. Raises BadCubin."""
    try:
        return _read(data)
    except BadCubin:
        raise
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise BadCubin(f"it is damaged ({error})") from None


def _read(data: bytes) -> Cubin:
    header = HEADER.unpack_from(data)
    abi, machine, flags, sections_at, section_size, count, names_at = (header[i] for i in (5, 7, 12, 11, 16, 17, 18))
    if header[0] != b"\x7fELF" or machine != CUDA_MACHINE or section_size != SECTION.size or count > MOST_SECTIONS:
        raise BadCubin("it is not machine code of an NVIDIA GPU")
    sections = [_Section(data, sections_at + number * SECTION.size) for number in range(count)]
    for section in sections:
        section.name = _text(sections[names_at].bytes, section.name_at)
    cubin = Cubin(arch=flags >> 8 & 0xFF if abi >= 8 else flags & 0xFF)
    for section in sections:
        _note(cubin, section)
    symbols = _symbols(sections)
    cubin.undefined = [symbol.name for symbol in symbols if symbol.section == 0 and not _is_of_the_runtime(symbol.name)]
    cubin.writable_globals = _state(sections, symbols)
    return cubin


class _Section:
    def __init__(self, data: bytes, at: int):
        self.name_at, self.type, self.flags, _, offset, self.size, self.link, *_ = SECTION.unpack_from(data, at)
        self.name = ""
        self.bytes = b"" if self.type == NO_BITS else data[offset : offset + self.size]
        if self.type != NO_BITS and len(self.bytes) != self.size:
            raise BadCubin("it is cut short")


def _note(cubin: Cubin, section: _Section) -> None:
    name = section.name
    if name.startswith(".text."):
        cubin.kernels.append(name.removeprefix(".text."))
    elif name.startswith(".nv.shared.") and not name.startswith(".nv.shared.reserved"):
        cubin.static_shared += section.size
    elif name == ".nv.info" or name.startswith(".nv.info."):
        _note_attributes(cubin, section.bytes)


def _is_of_the_runtime(name: str) -> bool:
    return not name or name in RUNTIME_FUNCTIONS or name.startswith((COPIES, RESERVED_SHARED))


def _state(sections: list[_Section], symbols: list[_Symbol]) -> int:
    """Returns the bytes of memory that survive a launch, and could hold anything."""
    within: dict[int, list[_Symbol]] = {}
    for symbol in symbols:
        within.setdefault(symbol.section, []).append(symbol)
    bodies = {section.name: section.bytes for section in sections}
    return sum(
        section.size - _known_bytes(section, within.get(number, []))
        for number, section in enumerate(sections)
        if _survives_a_launch(section) and not _is_there_twice(section, bodies)
    )


def _survives_a_launch(section: _Section) -> bool:
    """Returns whether kernels may write this memory and it is not shared memory, whatever its name."""
    name = section.name.removeprefix(SAME_AGAIN)
    if name.startswith(".nv.shared."):
        return False
    return section.flags & WRITABLE == WRITABLE or name.startswith(".nv.global")


def _is_there_twice(section: _Section, bodies: dict[str, bytes]) -> bool:
    """Returns whether this is the second description of memory that is counted already."""
    first = section.name.removeprefix(SAME_AGAIN)
    return first != section.name and first in bodies and bodies[first] == section.bytes and bool(section.bytes)


def _known_bytes(section: _Section, symbols: list[_Symbol]) -> int:
    """Returns how many bytes at the start of a section are constants of Triton's, without a gap between them."""
    end = 0
    for symbol in sorted(symbols, key=lambda symbol: symbol.start):
        if symbol.start == end and symbol.binding == LOCAL and symbol.kind == OBJECT:
            data = section.bytes[end : end + symbol.size]
            if section.type == NO_BITS and end + symbol.size <= min(section.size, MOST_TEXT):
                data = bytes(symbol.size)
            if data and len(data) == symbol.size and _is_constant(symbol.name, data):
                end += symbol.size
    return end


def _is_constant(name: str, data: bytes) -> bool:
    """Returns whether Triton, or a library of its, puts a constant of this name and kind into machine code."""
    if QUESTIONS.fullmatch(name):
        return data in ASKED
    if DEBUG_TEXTS.fullmatch(name):
        return len(data) <= MOST_TEXT and data.find(b"\0") == len(data) - 1
    return TABLES.get(name) == len(data)


def _note_attributes(cubin: Cubin, data: bytes) -> None:
    at, sizes = 0, {}
    while at < len(data):
        layout, attribute, length = struct.unpack_from("<BBH", data, at)
        at += 4
        if layout != SIZED:
            continue
        value = data[at : at + length]
        at += length
        if attribute == PARAMETER:
            ordinal, packed = struct.unpack_from("<4xHxxI", value)
            sizes[ordinal] = packed >> 18
        elif attribute == REGISTERS:
            cubin.registers = max(cubin.registers, struct.unpack_from("<4xI", value)[0])
        elif attribute == FRAME_SIZE:
            cubin.stack_bytes = max(cubin.stack_bytes, struct.unpack_from("<4xI", value)[0])
    cubin.parameters = cubin.parameters or [sizes[ordinal] for ordinal in sorted(sizes)]


@dataclass
class _Symbol:
    name: str
    binding: int
    kind: int
    section: int  # number of the section that it lies in, 0 if it is elsewhere
    start: int  # bytes from the section's first one
    size: int  # bytes


def _symbols(sections: list[_Section]) -> list[_Symbol]:
    tables = [section for section in sections if section.type == SYMBOLS]
    if len(tables) > 1:
        raise BadCubin("it has several tables of symbols")
    symbols = []
    for table in tables:
        names = sections[table.link].bytes
        for at in range(SYMBOL.size, len(table.bytes), SYMBOL.size):  # the first symbol of an ELF file is empty
            name_at, info, _, number, start, size = SYMBOL.unpack_from(table.bytes, at)
            symbols.append(_Symbol(_text(names, name_at), info >> 4, info & 0xF, number, start, size))
    return symbols


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode() if at < len(names) else ""
