"""Floats from their bits, in every format that the text writes in hexadecimal."""

from __future__ import annotations

import math
import struct

_STRUCT = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}
# bits of the exponent, bits of the fraction, bias, what the largest codes are
_SMALL = {
    "f8E5M2": (5, 2, 15, "ieee"),
    "f8E4M3FN": (4, 3, 7, "no infinity"),
    "f8E4M3B11FNUZ": (4, 3, 11, "no negative zero"),
    "f8E4M3FNUZ": (4, 3, 8, "no negative zero"),
    "f8E5M2FNUZ": (5, 2, 16, "no negative zero"),
}
WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64} | dict.fromkeys(_SMALL, 8)


def float_of_bits(bits: int, element: str) -> float:
    """Returns the value of `bits` read as an `element`. Raises OverflowError for more bits than it has."""
    if bits >> WIDTHS[element]:
        raise OverflowError(f"{bits:#x} has more bits than a {element}")
    if element == "bf16":
        bits, element = bits << 16, "f32"
    if element in _STRUCT:
        whole, fraction = _STRUCT[element]
        return struct.unpack(fraction, struct.pack(whole, bits))[0]
    return _small(bits, *_SMALL[element])


def _small(bits: int, exponent_bits: int, fraction_bits: int, bias: int, largest: str) -> float:
    exponent = bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = bits & (1 << fraction_bits) - 1
    full = exponent == (1 << exponent_bits) - 1
    if largest == "no negative zero" and bits == 0x80:
        return math.nan
    if largest == "ieee" and full:
        return math.nan if fraction else math.copysign(math.inf, 0.5 - (bits >> 7))
    if largest == "no infinity" and full and fraction == (1 << fraction_bits) - 1:
        return math.nan
    hidden = 1 << fraction_bits if exponent else 0
    value = math.ldexp(hidden | fraction, max(exponent, 1) - bias - fraction_bits)
    return -value if bits >> 7 else value
