"""Constants, and tensors in another shape: with axes of 1 spelled out or not, the result is the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from grader.interpreter.batch import Batch
from grader.interpreter.dtypes import DTYPES, Unsupported
from grader.interpreter.frame import Frame
from grader.interpreter.memory import CheckedMemory
from grader.ttir.module import Dense
from grader.wire.messages import GATHER
from tests.interpreter.made import compute, kind, operation, prepare

RANDOM = np.random.default_rng(5)


def constant(type: str, value) -> np.ndarray:
    return compute("arith.constant", "", type, value=value)


def test_constants():
    assert constant("i32", -5).tolist() == [-5]
    assert constant("i1", True).tolist() == [True]
    assert constant("f32", 0.1).tolist() == [np.float32(0.1)]
    assert constant("f32", 0xFF800000).tolist() == [-math.inf]  # MLIR writes what has no decimal form as bits
    assert math.isnan(constant("bf16", 0x7FC0)[0])
    assert constant("4x8xf16", Dense((1.5,))).shape == (1, 1, 1)
    assert constant("2x2xi32", Dense((1, 2, 3, 4))).tolist() == [[[1, 2], [3, 4]]]
    assert constant("2xi1", Dense((True, False))).tolist() == [[True, False]]
    assert constant("i8", 255).tolist() == [-1]
    assert compute("ub.poison", "", "4xf32", value="poison").tolist() == [[0]]


def test_one_constant_is_shared_and_cannot_be_written_to():
    prepared = prepare(operation("arith.constant", "", "8xf32", value=Dense((1.0,))))
    assert prepared() is prepared()
    with pytest.raises(ValueError, match="read-only"):
        prepared()[...] = 2


@pytest.mark.parametrize("type, value", [("4xi32", Dense((1, 2))), ("i32", 1.5), ("f32", "one"), ("f32", None)])
def test_a_constant_that_does_not_fit_its_type_is_refused(type, value):
    with pytest.raises(Unsupported):
        prepare(operation("arith.constant", "", type, value=value))


def test_range():
    assert compute("tt.make_range", "", "4xi32", start=2, end=6).tolist() == [[2, 3, 4, 5]]
    with pytest.raises(Unsupported):
        prepare(operation("tt.make_range", "", "4xi32", start=0, end=1 << 40))


def test_splat_and_unsplat():
    x = np.float32([1, 2, 3])
    out = compute("tt.splat", "f32", "4x8xf32", x)
    assert out.shape == (3, 1, 1)
    assert compute("tt.unsplat", "1x1xf32", "f32", out).tolist() == [1, 2, 3]


def spelled(x: np.ndarray, programs: int, type: str) -> np.ndarray:
    return np.broadcast_to(x, (programs, *kind(type).shape))


def full(programs: int, type: str) -> np.ndarray:
    return RANDOM.integers(-100, 100, (programs, *kind(type).shape)).astype(DTYPES[kind(type).element])


RESHAPES = [
    ("expand_dims", "4x8xi32", "4x1x8xi32", {"axis": 1}, lambda x: x[:, :, None, :]),
    ("expand_dims", "8xi32", "1x8xi32", {"axis": 0}, lambda x: x[:, None]),
    ("reshape", "4x8xi32", "8x4xi32", {"allow_reorder": True}, lambda x: x.reshape(3, 8, 4)),
    ("reshape", "4x8xi32", "32xi32", {}, lambda x: x.reshape(3, 32)),
    ("reshape", "4x8xi32", "1x4x1x8xi32", {}, lambda x: x.reshape(3, 1, 4, 1, 8)),
    ("reshape", "4x1x8xi32", "4x8xi32", {}, lambda x: x.reshape(3, 4, 8)),
    ("trans", "4x8x2xi32", "2x4x8xi32", {"order": [2, 0, 1]}, lambda x: x.transpose(0, 3, 1, 2)),
    ("broadcast", "4x1xi32", "4x8xi32", {}, lambda x: np.broadcast_to(x, (3, 4, 8))),
]


@pytest.mark.parametrize("name, old, new, attributes, expected", RESHAPES)
def test_another_shape(name, old, new, attributes, expected):
    shape = (3, *kind(old).shape)
    for ones in np.ndindex(*(2,) * len(shape)):  # which axes are 1
        x = RANDOM.integers(0, 100, [1 if one else size for one, size in zip(ones, shape)]).astype(np.int32)
        out = compute(f"tt.{name}", old, new, x, **attributes)
        assert out.ndim == 1 + len(kind(new).shape)
        np.testing.assert_array_equal(spelled(out, 3, new), expected(spelled(x, 3, old)))


def test_what_is_equal_along_an_axis_is_not_spelled_out():
    assert compute("tt.reshape", "4x8xi32", "1x4x8xi32", np.ones((2, 1, 8), np.int32)).shape == (2, 1, 1, 8)
    assert compute("tt.reshape", "4x8xi32", "32xi32", np.ones((2, 1, 1), np.int32)).shape == (2, 1)


@pytest.mark.parametrize("x_shape", [(3, 4, 8), (1, 4, 1), (1, 1, 1)])
def test_join_and_split_are_each_others_inverse(x_shape):
    x, y = RANDOM.integers(0, 9, x_shape), RANDOM.integers(0, 9, (3, 1, 8))
    joined = compute("tt.join", "4x8xi64 4x8xi64", "4x8x2xi64", x, y)
    back = compute("tt.split", "4x8x2xi64", "4x8xi64 4x8xi64", joined)
    for given, out in zip((x, y), back):
        np.testing.assert_array_equal(spelled(out, 3, "4x8xi64"), spelled(given, 3, "4x8xi64"))
    equal = compute("tt.split", "4x2xi64", "4xi64 4xi64", np.ones((1, 4, 1), np.int64))
    assert [one.tolist() for one in equal] == [[[1] * 4]] * 2


def test_cat():
    out = compute("tt.cat", "2xi32 2xi32", "4xi32", np.int32([[1], [2]]), np.int32([[3, 4]]))
    assert out.tolist() == [[1, 1, 3, 4], [2, 2, 3, 4]]


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis):
    source, index = full(1, "4x8xi32"), RANDOM.integers(0, 4, (3, 4, 8)).astype(np.int32)
    batch = Batch(CheckedMemory(), (3, 1, 1), programs=np.arange(3, dtype=np.int32))
    frame = Frame(batch, [], count=3)
    out = compute("tt.gather", "4x8xi32 4x8xi32", "4x8xi32", frame, source, index, axis=axis)
    expected = np.take_along_axis(np.broadcast_to(source, (3, 4, 8)), index.astype(np.int64), axis + 1)
    np.testing.assert_array_equal(out, expected)
    assert batch.broken == []
    indices = np.int32([[1, 0, 3, 2], [-9, 0, 3, 99], [0, 0, 0, 0]])
    outside = compute("tt.gather", "4xi32 4xi32", "4xi32", frame, np.int32([[5, 6, 7, 8]]), indices, axis=0)
    assert outside[1].tolist() == [5, 5, 8, 8]
    (noted,) = batch.broken
    assert (noted.what, noted.program) == (GATHER, 1)


@pytest.mark.parametrize("element", ["i8", "i32", "i64"])
def test_histogram(element):
    x = RANDOM.integers(-2, 10, (3, 64)).astype(DTYPES[element])
    mask = RANDOM.random((1, 64)) < 0.5
    out = compute("tt.histogram", f"64x{element}", "8xi32", x)
    assert out.dtype == np.int32
    assert out.tolist() == [[int((row == n).sum()) for n in range(8)] for row in x]
    out = compute("tt.histogram", f"64x{element} 64xi1", "8xi32", x, mask)
    assert out.tolist() == [[int((row[mask[0]] == n).sum()) for n in range(8)] for row in x]
    alike = compute("tt.histogram", f"64x{element} 64xi1", "4xi32", x[:1, :1] * 0 + 3, np.array([[True], [False]]))
    assert alike.tolist() == [[0, 0, 0, 64], [0, 0, 0, 0]]
