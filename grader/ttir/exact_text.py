"""The text of a kernel with every float in 64 bits: what it computes then was not rounded anywhere.

A kernel whose exact run is right has a right formula, and rounding is to blame; one whose exact run is wrong computes
something else. So formula and rounding are told apart for any kernel, whatever it computes.
"""

from __future__ import annotations

import math
import re
import struct
from enum import StrEnum

from grader.ttir.floats import float_of_bits
from grader.ttir.module import Module, Operation, Type

ROUNDED = ("f32", "f16", "bf16")
FLOATS = (*ROUNDED, "f64")
FEW_BITS = 12  # of a numerator: a power of 2 and its like is meant as it is
READS_BITS = ("tt.bitcast", "arith.bitcast", "tt.ptr_to_int", "tt.int_to_ptr")
_DIRECTED = re.compile(r"_r[nduz]$")  # functions of the library that round in a stated direction

# Numbers that kernels write with the digits of fp32, and mean with all of theirs.
MEANT = (1 / math.log(2), math.log(2), math.pi, math.sqrt(2), math.sqrt(0.5), math.sqrt(2 / math.pi))

_ELEMENT = rf"(?P<{{}}>{'|'.join(ROUNDED)})"
_NUMBER = r"0x[0-9A-F]++|-?\d++\.\d*+(?:[eE][+-]?\d++)?"
_TENSOR = r"tensor<(?:\d++x)++"
_TOKEN = re.compile(
    rf"""
      dense<"0x(?P<bytes>[0-9A-F]*+)">(?P<as_bytes>\ :\ {_TENSOR}){_ELEMENT.format("of_bytes")}
    | dense<(?P<list>[^<>"]*+)>(?P<as_list>\ :\ {_TENSOR}){_ELEMENT.format("of_list")}
    | (?P<number>{_NUMBER})\ :\ {_ELEMENT.format("of_number")}
    | (?P<left>"(?:[^"\\]++|\\.)*+"|[%#@^][\w$.\-]++)
    | (?<![\w$.])(?:(?P<dimensions>(?:\d++x)*+)){_ELEMENT.format("type")}(?![\w$.])
    """,
    re.VERBOSE | re.ASCII,
)
_NUMBERS = re.compile(_NUMBER, re.ASCII)


class Why(StrEnum):
    """Why there is no exact run."""

    CODES = "codes"  # floats of 8 bits or less, which are codes and no rounded numbers
    BITS = "bits"  # the bits of a float are read, or its address as a number
    DIRECTED = "directed"  # a function of the library that asks for a rounding
    MEMORY = "memory"  # one memory is used as several dtypes
    SIZE = "size"  # the tensors are too large
    ENDED = "ended"  # it has not come to its end


class NoExactRun(Exception):
    """A call has no exact run. `line`: of the kernel, 0 where no line says so. `what`: a name to tell, or ""."""

    def __init__(self, why: Why, line: int = 0, what: str = "") -> None:
        super().__init__(f"{why} {line} {what}")
        self.why, self.line, self.what = why, line, what


def exact_text(text: str, module: Module) -> str:
    """Returns the text with 64 bits for every float. `module`: the text as it was read. Raises NoExactRun."""
    for function in module.functions.values():
        for operation in function.walk():
            _refuse(operation)
    return _TOKEN.sub(_exact_token, text)


def _refuse(operation: Operation) -> None:
    """Raises NoExactRun for an operation that means something else where floats have 64 bits."""
    types, line = [*operation.operand_types, *operation.result_types], operation.place.line
    if any(type.element.startswith("f8") for type in types) or operation.name == "tt.dot_scaled":
        raise NoExactRun(Why.CODES, line)
    if operation.name in READS_BITS and any(map(_is_float, types)):
        raise NoExactRun(Why.BITS, line)
    if operation.name == "tt.extern_elementwise":
        symbol = str(operation.attributes.get("symbol"))
        if not all(map(_is_float, types)) or _DIRECTED.search(symbol):
            raise NoExactRun(Why.DIRECTED, line, symbol.removeprefix("__nv_"))


def _is_float(type: Type) -> bool:
    """Returns whether this is a type of floats, or of pointers to floats."""
    return type.element in FLOATS


def _exact_token(token: re.Match[str]) -> str:
    if token["left"]:
        return token["left"]
    if token["type"]:
        return f"{token['dimensions']}f64"
    if token["number"]:
        return f"{_number_of_64(token['number'], token['of_number'])} : f64"
    if token["list"] is not None:
        element = token["of_list"]
        return f"dense<{_NUMBERS.sub(lambda one: _number_of_64(one[0], element), token['list'])}>{token['as_list']}f64"
    return f'dense<"0x{_bytes_of_64(token["bytes"], token["of_bytes"])}">{token["as_bytes"]}f64'


def _number_of_64(text: str, element: str) -> str:
    """Returns a constant by its bits as 64 hold it: 0x7FF0000000000000 for 0x7F800000, and the number that a decimal
    means."""
    number = float_of_bits(int(text, 16), element) if text.startswith("0x") else _meant(float(text), element)
    return f"0x{_bits(number):016X}"


def _bits(number: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", number))[0]


def _meant(held: float, element: str) -> float:
    """Returns the number that a rounded constant stands for: 0.01 for 0.00999999977, log2(e) with all its digits."""
    if held.as_integer_ratio()[0].bit_length() <= FEW_BITS:
        return held  # 1 / 4096, as it is
    rounded, decimals = _as_held(held, element), (float(f"{held:.{digits}g}") for digits in range(1, 10))
    candidates = (*(math.copysign(size, held) for size in MEANT), *decimals)
    return next((candidate for candidate in candidates if _as_held(candidate, element) == rounded), held)


def _as_held(number: float, element: str) -> int:
    """Returns the bits of a number that is rounded to fp32, fp16 or bf16, to nearest even."""
    try:
        if element == "f16":
            return struct.unpack("<H", struct.pack("<e", number))[0]
        bits = struct.unpack("<I", struct.pack("<f", number))[0]
    except OverflowError:
        return -1
    return bits if element == "f32" else bits + 0x7FFF + (bits >> 16 & 1) >> 16


def _bytes_of_64(digits: str, element: str) -> str:
    """Returns the bytes of several floats, the lowest byte of each first, as floats of 64 bits have them."""
    size, raw = 4 if element == "f32" else 2, bytes.fromhex(digits)
    numbers = (int.from_bytes(raw[at : at + size], "little") for at in range(0, len(raw), size))
    return b"".join(struct.pack("<d", float_of_bits(number, element)) for number in numbers).hex().upper()
