"""What a kernel's machine code says of itself. The parent gets cubins from the child, so every length is checked.

A cubin is an ELF file. Besides code it holds lists of attributes, `.nv.info` for the file and `.nv.info.NAME` for each
kernel: parameters with their sizes, registers, stack. The numbers of formats and attributes are those that the tool
`cuobjdump -elf` prints by name.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

HEADER = struct.Struct("<4sBBBBB7xHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
CUDA_MACHINE, BITS, NO_BITS, SYMBOLS, WRITABLE, GLOBAL = 190, 1, 8, 2, 0b11, 1  # as the ELF format numbers them
SIZED = 4  # format of an attribute with a length; the other formats hold two bytes
PARAMETER, FRAME_SIZE, REGISTERS = 0x17, 0x11, 0x2F
UNUSED_TEXT = b"__CUDA_FTZ\0"  # left over where a library function asks the compiler whether subnormals are flushed
MOST_SECTIONS = 4096
RUNTIME_FUNCTIONS = {"vprintf", "__assertfail"}  # what tl.device_print and tl.device_assert call


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
    """Raises BadCubin."""
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
        _note(cubin, section, sections)
    return cubin


class _Section:
    def __init__(self, data: bytes, at: int):
        self.name_at, self.type, self.flags, _, offset, self.size, self.link, *_ = SECTION.unpack_from(data, at)
        self.name = ""
        self.bytes = b"" if self.type == NO_BITS else data[offset : offset + self.size]
        if self.type != NO_BITS and len(self.bytes) != self.size:
            raise BadCubin("it is cut short")


def _note(cubin: Cubin, section: _Section, sections: list[_Section]) -> None:
    name = section.name
    if name.startswith(".text."):
        cubin.kernels.append(name.removeprefix(".text."))
    elif name.startswith(".nv.shared.") and not name.startswith(".nv.shared.reserved"):
        cubin.static_shared += section.size
    elif _survives_a_launch(section):
        cubin.writable_globals += section.size
    elif name == ".nv.info" or name.startswith(".nv.info."):
        _note_attributes(cubin, section.bytes)
    elif section.type == SYMBOLS:
        cubin.undefined += _undefined(section.bytes, sections[section.link].bytes)


def _survives_a_launch(section: _Section) -> bool:
    """Memory that kernels may write, whatever its name; what is not shared memory is global."""
    in_memory = section.type in (BITS, NO_BITS) and section.flags & WRITABLE == WRITABLE
    return in_memory and not section.name.startswith(".nv.shared.") and section.bytes != UNUSED_TEXT


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


def _undefined(symbols: bytes, names: bytes) -> list[str]:
    found = []
    for at in range(SYMBOL.size, len(symbols), SYMBOL.size):  # the first symbol of an ELF file is empty
        name_at, kind, _, section, _, _ = SYMBOL.unpack_from(symbols, at)
        if section == 0 and kind >> 4 == GLOBAL:
            found.append(_text(names, name_at))
    return [name for name in found if name not in RUNTIME_FUNCTIONS]


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode() if at < len(names) else ""
