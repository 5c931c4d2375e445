"""Products of matrices: tt.dot and tt.dot_scaled, summed in float32 as tensor cores do.

Shapes are [P, ..., M, K] times [P, ..., K, N] plus [P, ..., M, N], where P, the programs, may be 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grader.interpreter.dtypes import DTYPES, F32, F64, Unsupported, dtype_of, is_float, narrowed, spelled_out, wide
from grader.interpreter.registry import Computed, carries_out
from grader.ttir.module import Operation, Type

BF16 = DTYPES["bf16"]


# ---- how float32 operands are rounded ---------------------------------------------------------------------------


def to_tf32(x: np.ndarray) -> np.ndarray:
    """Returns float32 with 10 bits of mantissa left; tensor cores ignore the other bits. NaN stays NaN."""
    bits = x.view(np.uint32) & np.uint32(0xFFFFE000)
    out, no_number = bits.view(F32), np.isnan(x)
    if no_number.any():
        np.copyto(out, x, where=no_number)
    return out


def to_two_bf16(x: np.ndarray) -> np.ndarray:
    """Returns float32 rounded to the sum of two bf16, the operands of bf16x3.

    bf16x3 multiplies their parts, and leaves out the product of the small parts.
    """
    high = x.astype(BF16).astype(F32)
    rest = np.where(np.isfinite(x), x - high, 0)
    return high + rest.astype(BF16).astype(F32)


def _unchanged(x: np.ndarray) -> np.ndarray:
    return x


# inputPrecision by number: tf32, tf32x3, ieee, bf16x3, bf16x6. tf32x3 and bf16x6 reach float32's precision.
_PRECISIONS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    to_tf32,
    _unchanged,
    _unchanged,
    to_two_bf16,
    _unchanged,
)
IEEE = 2


# ---- the product ------------------------------------------------------------------------------------------------


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns a @ b, [P, ..., M, N]: a single large product where the second matrix is the same for all programs."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if a.ndim == 3 and b.shape[0] == 1 < a.shape[0]:
        return np.matmul(a.reshape(-1, a.shape[2]), b[0]).reshape(*a.shape[:2], b.shape[2])
    return np.matmul(a, b)


def _check_shapes(op: Operation, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    c = op.result_types[0].shape
    if not (a[:-2] == b[:-2] == c[:-2] and a[-1] == b[-2] and c[-2:] == (a[-2], b[-1])):
        raise Unsupported(f"operation {op.name} of {a} and {b} to {c} is not known here")


@carries_out("tt.dot")
def _dot(op: Operation) -> Computed:
    a_type, b_type = op.operand_types[:2]
    target = dtype_of(op.result_types[0])
    _check_shapes(op, a_type.shape, b_type.shape)
    if not is_float(target):
        return _integer_dot(a_type, b_type)
    prepare_a, prepare_b = (_float_operand(op, type) for type in (a_type, b_type))
    if target == F64:
        return lambda a, b, c: _product(prepare_a(a), prepare_b(b)) + c
    return lambda a, b, c: narrowed(_product(prepare_a(a), prepare_b(b)) + wide(c), target)


def _float_operand(op: Operation, type: Type) -> Callable[[np.ndarray], np.ndarray]:
    shape = type.shape
    precision = op.attributes.get("inputPrecision", IEEE)
    if precision not in range(len(_PRECISIONS)):
        raise Unsupported(f"inputPrecision {precision} of operation {op.name} is not known here yet")
    if dtype_of(type) != F32 or _PRECISIONS[precision] is _unchanged:
        return lambda x: wide(spelled_out(x, shape))
    rounded = _PRECISIONS[precision]
    return lambda x: spelled_out(rounded(x), shape)


def _integer_dot(a_type: Type, b_type: Type) -> Computed:
    """Returns the function that computes a product of i8, exactly. Raises Unsupported for larger integers.

    It works in floats, whose products are a hundred times as fast as numpy's of integers. A product of two i8 is at
    most 2^14: sums of 2^10 are exact in float32, sums of 2^39 in float64.
    """
    if dtype_of(a_type).itemsize > 1 or dtype_of(b_type).itemsize > 1:
        raise Unsupported(f"operation tt.dot of {a_type.element} is not known here yet")
    exact = F32 if a_type.shape[-1] <= 1 << 10 else F64

    def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        a, b = spelled_out(a, a_type.shape).astype(exact), spelled_out(b, b_type.shape).astype(exact)
        return _product(a, b).astype(c.dtype) + c

    return dot


# ---- with a scale for each group along K ------------------------------------------------------------------------

# Element types by number. The front end does not offer 2 and 3, floats of 6 bits.
_ELEMENTS = {0: "f8E4M3FN", 1: "f8E5M2", 4: "e2m1", 5: "bf16", 6: "f16"}
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], F32)
_E8M0 = np.append(np.ldexp(np.ones(255), np.arange(255) - 127), np.nan).astype(F32)  # a byte is a power of 2, or NaN


def _unpacked(x: np.ndarray, axis: int) -> np.ndarray:
    """Returns both numbers of 4 bits in each byte, the lower bits first, in float32.

    `axis` (negative) becomes twice as long.
    """
    bits = x.view(np.uint8)
    both = np.stack([np.take(_E2M1, bits & 15), np.take(_E2M1, bits >> 4)], axis=x.ndim + axis + 1)
    return both.reshape(*x.shape[:axis], 2 * x.shape[axis], *x.shape[x.ndim + axis + 1 :])


def _decoder(op: Operation, side: str, type: Type, packed_axis: int) -> Callable[[np.ndarray], np.ndarray]:
    """Returns the function that converts an operand to float32, with all axes spelled out. Raises Unsupported.

    `packed_axis`: the axis along which two numbers of 4 bits share a byte.
    """
    element = _ELEMENTS.get(op.attributes[f"{side}_elem_type"])
    shape = type.shape
    if element == "e2m1":
        return lambda x: _unpacked(spelled_out(x, shape), packed_axis)
    if element is None or DTYPES[element].itemsize != dtype_of(type).itemsize:
        raise Unsupported(f"operation {op.name} of {type.element} is not known here yet")
    dtype = DTYPES[element]
    return lambda x: wide(spelled_out(x, shape).view(dtype))


def _scales(type: Type, depth: int) -> Callable[[np.ndarray], np.ndarray]:
    """Returns the function that turns scales [P, ..., rows, groups] into float32 factors [P, ..., rows, depth].

    Each element along K gets the scale of its group.
    """
    shape = type.shape
    group = depth // shape[-1]

    def factors(x: np.ndarray) -> np.ndarray:
        x = np.take(_E8M0, x.view(np.uint8)) if x.dtype == np.int8 else wide(x)
        return np.repeat(spelled_out(x, shape), group, axis=-1)

    return factors


@carries_out("tt.dot_scaled")
def _dot_scaled(op: Operation) -> Computed:
    """Returns the function that computes tt.dot_scaled. Operands: a, b, c, and a scale of a, of b, or of both.

    The scales are [rows of a, groups along K] and [columns of b, groups along K].
    """
    segments = op.attributes.get("operandSegmentSizes", [1] * len(op.operand_types))
    if len(segments) != 5 or list(segments[:3]) != [1, 1, 1]:
        raise Unsupported(f"operation {op.name} with operands {segments} is not known here")
    a_type, b_type = op.operand_types[:2]
    decode_a = _decoder(op, "a", a_type, -1 if op.attributes.get("lhs_k_pack", True) else -2)
    decode_b = _decoder(op, "b", b_type, -2 if op.attributes.get("rhs_k_pack", True) else -1)
    a_is_packed = _ELEMENTS[op.attributes["a_elem_type"]] == "e2m1" and op.attributes.get("lhs_k_pack", True)
    depth = a_type.shape[-1] * (2 if a_is_packed else 1)
    scale_types = list(op.operand_types[3:])
    a_factors = _scales(scale_types.pop(0), depth) if segments[3] else None
    b_factors = _scales(scale_types.pop(0), depth) if segments[4] else None
    target = dtype_of(op.result_types[0])

    def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray, *scales: np.ndarray) -> np.ndarray:
        a, b = decode_a(a), decode_b(b)
        if a_factors:
            a = a * a_factors(scales[0])
        if b_factors:
            b = b * np.swapaxes(b_factors(scales[-1]), -1, -2)
        return narrowed(_product(a, b) + wide(c), target)

    return dot
