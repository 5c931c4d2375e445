"""arith.*: wrapping, C's division, comparisons by number, rounding after each operation."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from grader.interpreter.dtypes import DTYPES, Unsupported
from tests.interpreter.made import compute, operation, prepare

RANDOM = np.random.default_rng(1)


def on(name: str, element: str, *values, result: str | None = None, **attributes):
    types = " ".join([f"8x{element}"] * len(values))
    return compute(name, types, f"8x{result or element}", *[np.atleast_2d(value) for value in values], **attributes)


@pytest.mark.parametrize("name", ["arith.addi", "arith.subi", "arith.muli"])
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
def test_integers_wrap(name, element):
    bits = int(element[1:])
    x, y = RANDOM.integers(-1 << bits - 1, 1 << bits - 1, (2, 100))
    function = {"arith.addi": int.__add__, "arith.subi": int.__sub__, "arith.muli": int.__mul__}[name]
    out = on(name, element, x.astype(DTYPES[element]), y.astype(DTYPES[element]))
    wrapped = [(function(int(a), int(b)) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for a, b in zip(x, y)]
    assert out.dtype == DTYPES[element]
    assert out[0].tolist() == wrapped


EVERY = np.repeat(np.arange(-128, 128), 256), np.tile(np.arange(-128, 128), 256)  # all pairs of i8


def every_pair(function, *names: str, unsigned: bool = False) -> None:
    """All pairs of i8 with another divisor than 0, against Python's unbounded integers."""
    pairs = [(int(x), int(y)) for x, y in zip(*EVERY) if y]
    x, y = np.array(pairs, np.int8).T
    if unsigned:
        pairs = [(x & 255, y & 255) for x, y in pairs]
    expected = [[value if -129 < value < 256 else -128 for value in function(x, y)] for x, y in pairs]
    for name, values in zip(names, np.array(expected).astype(np.int64).T):
        np.testing.assert_array_equal(on(name, "i8", x, y)[0], values.astype(np.int8), err_msg=name)


def test_signed_division_rounds_toward_zero():
    def by_hand(x: int, y: int) -> tuple[int, ...]:
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return quotient, x - quotient * y

    every_pair(by_hand, "arith.divsi", "arith.remsi")


def test_unsigned_division_reads_the_same_bits():
    def by_hand(x: int, y: int) -> tuple[int, ...]:
        return x // y, x % y, max(x, y), min(x, y)

    names = "arith.divui", "arith.remui", "arith.maxui", "arith.minui"
    every_pair(by_hand, *names, unsigned=True)


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("name", ["arith.divsi", "arith.remsi", "arith.divui", "arith.remui"])
def test_division_by_zero_and_of_the_least_number_raises_nothing(name, element):
    dtype = DTYPES[element]
    least = np.full(64, np.iinfo(dtype).min, dtype)
    for divisor in (0, -1):
        out = on(name, element, least, np.full(64, divisor, dtype))
        assert out.shape == (1, 64) and out.dtype == dtype


def test_shifts_by_too_many_bits_are_defined():
    x, by = np.array([-8, 8, -8], np.int32), np.array([1, 40, 40], np.int32)
    assert on("arith.shli", "i32", x, by).tolist() == [[-16, 0, 0]]
    assert on("arith.shrsi", "i32", x, by).tolist() == [[-4, 0, -1]]
    assert on("arith.shrui", "i32", x, by).view(np.uint32).tolist() == [[(2**32 - 8) >> 1, 0, 0]]


def test_arithmetic_of_single_bits():
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert on("arith.addi", "i1", x, y).tolist() == [[False, True, True, False]]
    assert on("arith.muli", "i1", x, y).tolist() == [[False, False, False, True]]
    assert on("arith.maxsi", "i1", x, y).tolist() == [[False, False, False, True]]  # true is -1
    assert on("arith.maxui", "i1", x, y).tolist() == [[False, True, True, True]]
    assert on("arith.xori", "i1", x, y).tolist() == [[False, True, True, False]]
    assert on("arith.cmpi", "i1", x, y, result="i1", predicate=2).tolist() == [[False, False, True, False]]  # slt
    assert on("arith.cmpi", "i1", x, y, result="i1", predicate=6).tolist() == [[False, True, False, False]]  # ult


def test_integer_comparisons_by_number():
    x, y = np.array([-1, 2, 2], np.int32), np.array([1, 1, 2], np.int32)
    seen = [on("arith.cmpi", "i32", x, y, result="i1", predicate=number)[0].tolist() for number in range(10)]
    t, f = True, False
    assert seen[:2] == [[f, f, t], [t, t, f]]
    assert seen[2:6] == [[t, f, f], [t, f, t], [f, t, f], [f, t, t]]
    assert seen[6:] == [[f, f, f], [f, f, t], [t, t, f], [t, t, t]]


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_float_comparisons_by_number(element):
    x, y = np.array([1, 2, 3, np.nan]).astype(DTYPES[element]), np.array([2, 2, 2, 2]).astype(DTYPES[element])
    less, equal, greater, neither = 1, 2, 4, 8
    true_where = [0, equal, greater, greater | equal, less, less | equal, less | greater, less | equal | greater]
    true_where += [neither | where for where in (equal, greater, greater | equal, less, less | equal, less | greater)]
    true_where += [neither, 15]
    for number, bits in enumerate(true_where):
        expected = [bool(bits & one) for one in (less, equal, greater, neither)]
        assert on("arith.cmpf", element, x, y, result="i1", predicate=number).tolist() == [expected], number


def test_an_unknown_predicate_or_operation_is_refused():
    for attributes in ({"predicate": 16}, {"predicate": "olt"}, {}):
        with pytest.raises(Unsupported, match="predicate"):
            prepare(operation("arith.cmpf", "8xf32 8xf32", "8xi1", **attributes))
    with pytest.raises(Unsupported, match="arith.newest is not known here yet"):
        prepare(operation("arith.newest", "f32", "f32"))


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf"])
def test_16_bits_are_rounded_after_each_operation(name, element):
    import torch

    function = {"addf": "add", "subf": "sub", "mulf": "mul", "divf": "div", "remf": "fmod"}[name[6:]]
    dtype = DTYPES[element]
    x, y = RANDOM.standard_normal((2, 3, 1000)).astype(dtype)
    tensors = [torch.from_numpy(v.astype(np.float32)) for v in (x, y)]
    to = torch.float16 if element == "f16" else torch.bfloat16
    expected = getattr(torch, function)(*tensors).to(to).float().numpy()
    out = compute(name, f"1000x{element} 1000x{element}", f"1000x{element}", x, y)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out.astype(np.float32), expected)


def test_float32_operations_are_numpys_own():
    assert prepare(operation("arith.addf", "8xf32 8xf32", "8xf32")) is np.add
    assert prepare(operation("arith.addi", "8xi32 8xi32", "8xi32", overflowFlags="none")) is np.add


def test_maximum_with_and_without_nan():
    x, y = np.array([np.nan, 1.0, np.nan], np.float32), np.array([2.0, 3.0, np.nan], np.float32)
    assert on("arith.maxnumf", "f32", x, y).tolist()[0][:2] == [2, 3]
    assert on("arith.minnumf", "f32", x, y).tolist()[0][:2] == [2, 1]
    assert np.isnan(on("arith.maximumf", "f32", x, y)).tolist() == [[True, False, True]]
    assert np.isnan(on("arith.minimumf", "f32", x, y)).tolist() == [[True, False, True]]
    assert np.isnan(on("arith.maxnumf", "bf16", *[v.astype(ml_dtypes.bfloat16) for v in (x, y)])[0, 2])


def test_negation_keeps_the_sign_of_zero():
    assert np.signbit(on("arith.negf", "f32", np.zeros(1, np.float32))).all()


def test_select_takes_a_condition_per_program_or_per_element():
    x, y = np.ones((1, 4, 1), np.float32), np.zeros((1, 1, 1), np.float32)
    per_program = compute("arith.select", "i1 4x2xf32 4x2xf32", "4x2xf32", np.array([True, False]), x, y)
    assert per_program.shape == (2, 4, 1) and per_program[0].all() and not per_program[1].any()
    mask = np.array([[[True, False]]])
    assert compute("arith.select", "4x2xi1 4x2xf32 4x2xf32", "4x2xf32", mask, x, y).tolist() == [[[1, 0]] * 4]


@pytest.mark.parametrize("x_shape", list(itertools.product((1, 3), (1, 4), (1, 2))))
@pytest.mark.parametrize("y_shape", [(1, 1, 1), (3, 1, 2), (1, 4, 1)])
def test_axes_of_one_broadcast(x_shape, y_shape):
    x, y = (RANDOM.standard_normal(shape).astype(np.float16) for shape in (x_shape, y_shape))
    out = compute("arith.mulf", "4x2xf16 4x2xf16", "4x2xf16", x, y)
    spelled = compute("arith.mulf", "4x2xf16 4x2xf16", "4x2xf16", *[np.broadcast_to(v, (3, 4, 2)) for v in (x, y)])
    np.testing.assert_array_equal(np.broadcast_to(out, (3, 4, 2)), spelled)
