"""tt.reduce, tt.scan and tt.map_elementwise: known combinations and any others, axes of 1, trees of sums."""

from __future__ import annotations

import functools
import weakref

import numpy as np
import pytest

from grader.interpreter.dtypes import DTYPES, Unsupported
from grader.interpreter.frame import Frame
from grader.interpreter.program import _Fold
from tests.interpreter.made import combining, kind, operation, prepare

RANDOM = np.random.default_rng(7)
KNOWN = {
    "arith.addf": ("f32 f16 bf16 f64", lambda x, y: x + y),
    "arith.mulf": ("f32 f64", lambda x, y: x * y),
    "arith.maxnumf": ("f32 f16 bf16", np.fmax),
    "arith.minimumf": ("f32 bf16", np.minimum),
    "arith.addi": ("i32 i64 i8 i1", None),
    "arith.muli": ("i32", None),
    "arith.maxsi": ("i32 i1", None),
    "arith.minui": ("i32", None),
    "arith.andi": ("i32 i1", np.bitwise_and),
    "arith.ori": ("i32 i1", np.bitwise_or),
    "arith.xori": ("i32 i1", np.bitwise_xor),
}
CASES = [(name, element) for name, (elements, _) in KNOWN.items() for element in elements.split()]


def never(arguments: list) -> list:
    raise AssertionError("a known combination asks nobody")


def values(shape: tuple[int, ...], element: str) -> np.ndarray:
    if element == "i1":
        return RANDOM.random(shape) < 0.5
    if element.startswith("i"):
        return RANDOM.integers(-100, 100, shape).astype(DTYPES[element])
    return (RANDOM.standard_normal(shape) + 1).astype(DTYPES[element])


def pairwise(name: str, element: str):
    """The operation itself on two arrays: tested by itself elsewhere."""
    return prepare(operation(name, f"{element} {element}", element))


def tree(function, parts: list) -> np.ndarray:
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [function(x, y) for x, y in zip(parts[:half], parts[half:])]
    return parts[0]


@pytest.mark.parametrize("name, element", CASES)
@pytest.mark.parametrize("axis", [0, 1])
def test_known_reductions(name, element, axis):
    shape, rest = (4, 8), (8, 4)[axis]
    made = operation("tt.reduce", f"4x8x{element}", f"{rest}x{element}", [combining(name, element)], axis=axis)
    reduce = prepare(made, never)
    for ones in np.ndindex(2, 2, 2):
        x = values(tuple(1 if one else size for one, size in zip(ones, (3, *shape))), element)
        spelled = np.broadcast_to(x, (3, *shape))
        expected = tree(pairwise(name, element), [spelled.take(n, axis + 1) for n in range(shape[axis])])
        out = reduce(x)
        assert out.dtype == DTYPES[element] and out.ndim == 2
        np.testing.assert_array_equal(np.broadcast_to(out, (3, rest)), expected)


def test_sums_of_floats_fold_as_a_tree():
    """One after the other would lose every 1: 2^24 + 1 is 2^24 in float32."""
    x = np.ones((1, 1024), np.float32)
    x[0, 0] = 2**24
    made = operation("tt.reduce", "1024xf32", "f32", [combining("arith.addf", "f32", swapped=True)], axis=0)
    assert prepare(made, never)(x)[0] > 2**24 + 900


def test_sums_of_16_bits_round_at_each_step():
    x = np.full((1, 4096), 1.001, np.float16)
    made = operation("tt.reduce", "4096xf16", "f16", [combining("arith.addf", "f16")], axis=0)
    assert prepare(made, never)(x)[0] == np.float16(1.001) * 4096
    x = np.float16([[2048, 1, 1, 1]])  # 2048 + 1 is rounded to 2048
    made = operation("tt.reduce", "4xf16", "f16", [combining("arith.addf", "f16")], axis=0)
    assert prepare(made, never)(x)[0] == 2050


def any_region(pack: int = 1) -> list:
    """A region that no table knows."""
    return [()] if pack else []


def test_any_other_reduction_asks_the_region_for_flat_arrays():
    seen = []

    def largest(arguments: list) -> list:
        seen.append([x.shape for x in arguments])
        x, i, y, j = arguments
        first = (x > y) | ((x == y) & (i < j))
        return [np.where(first, x, y), np.where(first, i, j)]

    made = operation("tt.reduce", "4x8xf32 4x8xi32", "4xf32 4xi32", any_region(), axis=1)
    x = RANDOM.integers(0, 5, (3, 4, 8)).astype(np.float32)
    index = np.arange(8, dtype=np.int32).reshape(1, 1, 8)
    value, place = prepare(made, largest)(x, index)
    np.testing.assert_array_equal(value, x.max(axis=2))
    np.testing.assert_array_equal(place, x.argmax(axis=2))
    assert seen == [[(3 * 4 * half,)] * 4 for half in (4, 2, 1)]


def test_a_region_may_yield_what_is_the_same_everywhere():
    made = operation("tt.reduce", "8xf32", "f32", any_region(), axis=0)
    out = prepare(made, lambda arguments: [np.float32([7])])(np.ones((3, 1), np.float32))
    assert out.tolist() == [7, 7, 7]


@pytest.mark.parametrize("name, element", CASES)
@pytest.mark.parametrize("backward", [False, True])
def test_known_scans(name, element, backward):
    made = operation(
        "tt.scan", f"4x8x{element}", f"4x8x{element}", [combining(name, element)], axis=1, reverse=backward
    )
    scan, function = prepare(made, never), pairwise(name, element)
    for shape in ((3, 4, 8), (1, 4, 1), (3, 1, 8)):
        x = values(shape, element)
        if not element.startswith("i"):
            x = np.rint(x.astype(np.float32)).clip(-2, 2).astype(x.dtype)  # exact in any order
        spelled = np.broadcast_to(x, (shape[0], shape[1], 8))
        parts = [spelled[..., n] for n in range(8)]
        expected = np.stack(
            [functools.reduce(function, parts[n:] if backward else parts[: n + 1]) for n in range(8)], -1
        )
        out = scan(x)
        assert out.dtype == x.dtype
        np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))


@pytest.mark.parametrize("backward", [False, True])
def test_a_scan_keeps_the_order_of_what_does_not_commute(backward):
    """x -> a x + b after another: associative, but not the other way round."""

    def after(arguments: list) -> list:
        a, b, c, d = arguments
        return [a * c, b * c + d]

    made = operation("tt.scan", "8x2xi64 8x2xi64", "8x2xi64 8x2xi64", any_region(), axis=0, reverse=backward)
    a, b = RANDOM.integers(-3, 4, (2, 3, 8, 2))
    out = prepare(made, after)(a, b)
    order = range(7, -1, -1) if backward else range(8)
    slope, offset = np.ones_like(a[:, 0]), np.zeros_like(a[:, 0])
    for n in order:
        slope, offset = after([slope, offset, a[:, n], b[:, n]])
        np.testing.assert_array_equal(out[0][:, n], slope)
        np.testing.assert_array_equal(out[1][:, n], offset)


def test_axes_that_are_no_power_of_two_are_refused():
    for shape, axis in (("6xf32", 0), ("8xf32", 1), ("8xf32", -1)):
        with pytest.raises(Unsupported):
            prepare(operation("tt.reduce", shape, "f32", any_region(), axis=axis), never)
    with pytest.raises(Unsupported):
        prepare(operation("tt.fold", "8xf32", "f32", any_region()), never)


def test_element_by_element():
    made = operation("tt.map_elementwise", "4x8xf32 4x8xf32", "4x8xf32 4x8xi32", any_region(), pack=1)
    x, y = RANDOM.standard_normal((3, 1, 8)).astype(np.float32), RANDOM.standard_normal((1, 4, 1)).astype(np.float32)
    total, sign = prepare(made, lambda a: [a[0] + a[1], (a[0] < a[1]).astype(np.int32)])(x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(sign, x < y)
    lanes = []
    made = operation("tt.map_elementwise", "4x8xf32", "4x8xf32", any_region(), pack=1)
    prepare(made, lambda a: lanes.append(a[0].shape) or a)(np.ones((1, 4, 1), np.float32))
    assert lanes == [(4,)]  # once for what is equal


def test_several_elements_at_once():
    def swapped(arguments: list) -> list:
        x0, x1, y0, y1 = arguments
        return [x1, x0, y0 + y1, y0 - y1]

    made = operation("tt.map_elementwise", "4xi32 4xi32", "4xi32 4xi32", any_region(), pack=2)
    x, y = np.int32([[1, 2, 3, 4]]), np.int32([[5], [6]])
    out = prepare(made, swapped)(x, y)
    assert out[0].tolist() == [[2, 1, 4, 3]] * 2
    assert out[1].tolist() == [[10, 0, 10, 0], [12, 0, 12, 0]]
    assert kind("4xi32").lanes == 4


def test_a_kernel_that_is_kept_ready_holds_nothing_of_a_call():
    """Its region sees the values of the function around it, and with them all memory of the call."""
    made = operation("tt.reduce", "8xf32", "f32", [combining("arith.addf", "f32")], axis=0)
    fold = _Fold(made, (), lambda op, evaluate: lambda values: values.sum())
    frame = Frame(None, [])
    held = weakref.ref(frame)
    assert fold(frame, np.ones(8, np.float32)) == 8
    del frame
    assert held() is None
