"""The numpy type that holds each of the compiler's types, and the shapes that arrays of values take."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np

from grader.ttir.module import Type


class Unsupported(Exception):
    """The text holds something that no table of the interpreter knows; the message names it.

    `line`: of the file, once the operation is known; 0 before.
    """

    line = 0


F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)

# The compiler's name of a type -> numpy's. `index` has 64 bits here.
DTYPES: dict[str, np.dtype] = {
    "i1": np.dtype(bool),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": F32,
    "tf32": F32,
    "f64": F64,
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8E4M3B11FNUZ": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
}

BYTES = frozenset(dtype for name, dtype in DTYPES.items() if name.startswith("f8"))  # floats of 8 bits
NARROW = BYTES | {DTYPES["f16"], DTYPES["bf16"]}  # computed in float32, rounded after each operation

# The value of each byte, 256 entries per type: reading a table is six times as fast as ml_dtypes' conversion.
_WIDE_BYTES = {dtype: np.arange(256, dtype=np.uint8).view(dtype).astype(F32) for dtype in BYTES}


def dtype_of(type: Type) -> np.dtype:
    """Returns the dtype of an array that holds values of this type; pointers are int64. Raises Unsupported."""
    if type.kind == "pointer":
        return DTYPES["i64"]
    dtype = DTYPES.get(type.element) if type.kind == "number" else None
    if dtype is None:
        raise Unsupported(f"type {type.element} ({type.kind}) is not known here yet")
    return dtype


def is_float(dtype: np.dtype) -> bool:
    return dtype in NARROW or dtype.kind == "f"


def wide(x: np.ndarray) -> np.ndarray:
    """Returns floats of 8 and 16 bits as float32, and any other array as it is."""
    dtype = x.dtype
    if dtype not in NARROW:
        return x
    table = _WIDE_BYTES.get(dtype)
    return x.astype(F32) if table is None else np.take(table, x.view(np.uint8))


def narrowed(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns float32 rounded to a narrow type, to nearest even; 8 bits saturate, as with the hardware's `satfinite`.

    NaN stays NaN. A number that is too large for 16 bits becomes infinite.
    """
    if dtype not in BYTES:
        return x.astype(dtype)
    bits = x.view(np.uint32)
    odd = (bits >> 16) | ((bits & 0xFFFF) != 0)  # bf16, its last bit set where bits that are cut off were set
    return np.take(_bytes_of_bf16(dtype), odd)


@cache
def _bytes_of_bf16(dtype: np.dtype) -> np.ndarray:
    """Returns a table of the 65536 bf16 numbers, each rounded to 8 bits.

    bf16 has enough additional bits that rounding float32 to odd in bf16, then to 8 bits, equals rounding once.
    """
    every = np.arange(1 << 16, dtype=np.uint16).view(DTYPES["bf16"]).astype(F32)
    largest = float(ml_dtypes.finfo(dtype).max)
    with np.errstate(invalid="ignore"):
        out = np.clip(every, -largest, largest).astype(dtype)
    if dtype in (DTYPES["f8E4M3FN"], DTYPES["f8E5M2"]):  # the hardware has one NaN
        out.view(np.uint8)[np.isnan(every)] = 0x7F
    return out


def unsigned(x: np.ndarray) -> np.ndarray:
    """Returns the same bits of integers, read as unsigned; an i1 becomes 0 or 1 in uint8."""
    return x.view(_UNSIGNED[x.dtype.itemsize])


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def spelled_out(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Returns x, whose axes of the tensor may have length 1, as [P, *shape]. The axis of programs stays as it is."""
    return x if x.shape[1:] == shape else np.broadcast_to(x, (x.shape[0], *shape))


def over(x: np.ndarray, rank: int) -> np.ndarray:
    """Returns x, a number per program [P], as [P, 1, 1 ...]: it broadcasts over tensors of `rank` dimensions."""
    return x.reshape(x.shape[0], *(1,) * rank)


def constant(x: np.ndarray) -> np.ndarray:
    """Returns the same array, made read-only: all programs and launches share it."""
    x.setflags(write=False)
    return x
