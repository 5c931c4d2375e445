"""Results one by one: their bounds and dtypes, arguments among them; and tensors of 0 to 5 dimensions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grader import PRODUCT, SOFTMAX, Exercise, Result, indices, lengths, normal, output, packed
from grader.course.trial import trial_of
from grader.explain.verdict import FAIL, PASS
from grader.gpu.plan import PackedPlan, Plan
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.speed_samples import flops_of
from grader.judging.uses import CheckUse
from grader.numerics.arguments import exact
from grader.numerics.data_sets import Data, generator_for, some_minus_infinity, with_some
from grader.numerics.poison import is_poison
from grader.wire.reply import spec_of
from tests.any_exercise.conftest import FOLDER

HALVES = ("float16", "bfloat16")
SOURCE = """
import torch
import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, z_ptr, peak_ptr, N, BLOCK_N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
    peak = tl.max(x, 0)
    e = tl.exp(x - peak)
    tl.store(z_ptr + row * N + cols, e / tl.sum(e, 0), mask=cols < N)
    tl.store(peak_ptr + row, peak)

def softmax(x):
    z, peak = torch.empty_like(x), torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    softmax_kernel[(x.shape[0],)](x, z, peak, x.shape[1], BLOCK_N=triton.next_power_of_2(x.shape[1]))
    return z, peak

@triton.jit
def scale_kernel(x_ptr, N, factor, NEGATE: tl.constexpr, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(x_ptr + i, (-x if NEGATE else x) * factor, mask=i < N)

def scale(x, factor, negate):
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, x.numel(), factor, NEGATE=negate, BLOCK_N=64)

@triton.jit
def split_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(y_ptr + i, tl.minimum(x, 0.0), mask=i < N)
    tl.store(z_ptr + i, tl.maximum(x, 0.0), mask=i < N)

def split(y, x, z):
    split_kernel[(triton.cdiv(x.numel(), 64),)](x, y, z, x.numel(), BLOCK_N=64)
    return y, z

@triton.jit
def copy_kernel(x_ptr, z_ptr, A, B, C, D, E, s0, s1, s2, s3, s4, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = i < A * B * C * D * E
    e, d, c, b, a = i % E, i // E % D, i // (E * D) % C, i // (E * D * C) % B, i // (E * D * C * B)
    x = tl.load(x_ptr + a * s0 + b * s1 + c * s2 + d * s3 + e * s4, mask=mask)
    tl.store(z_ptr + i, x, mask=mask)

def copy(x):
    z = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rest = 5 - x.dim()
    shape, strides = [1] * rest + list(x.shape), [0] * rest + list(x.stride())
    copy_kernel[(triton.cdiv(x.numel(), 64),)](x, z, *shape, *strides, BLOCK_N=64)
    return z
"""
SOFTMAX = Exercise(
    entry="softmax",
    reference=lambda x: (torch.softmax(x, dim=-1), x.amax(dim=-1)),
    returns=("z", Result("peak", dtype="float32", bound="exact")),
    bound=SOFTMAX,
    minutes=1,
)
SCALE = Exercise(
    entry="scale",
    reference=lambda x, factor, negate: (-x if negate else x) * factor,
    returns=(),
    updates=("x",),
    bound="exact",
    minutes=1,
)
SPLIT = Exercise(
    entry="split",
    reference=lambda y, x, z: (x.clamp(max=0), x.clamp(min=0)),
    returns=("y", "z"),
    bound="exact",
    minutes=1,
)
COPY = Exercise(entry="copy", reference=lambda x: x, bound="bits", minutes=1)


@pytest.fixture
def judge(tmp_path):
    """judge(exercise, *pairs): a Judge of SOURCE with old replaced by new."""
    runs: list[Run] = []

    def judge(exercise: Exercise, *pairs: tuple[str, str]) -> Judge:
        path, text = Path(tmp_path, "pick_peaks.py"), SOURCE
        for old, new in pairs:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path.write_text(text)
        runs.append(Run(FOLDER, str(path), 1))
        return Judge(exercise, runs[-1])

    yield judge
    for run in runs:
        run.end()


# ---- bounds ----------------------------------------------------------------------------------------------------------


def test_each_result_has_its_own_bound(judge):
    verdict = CheckUse.of("a test", normal(9, 50)).verdict(judge(SOFTMAX))
    assert verdict.outcome == PASS and verdict.note.endswith(" of the bound for z"), verdict.lines
    rounded = judge(SOFTMAX, ("tl.store(peak_ptr + row, peak)", "tl.store(peak_ptr + row, peak * 1.0000002)"))
    verdict = CheckUse.of("a test", normal(9, 50)).verdict(rounded)
    assert verdict.outcome == FAIL and verdict.lines[-1].startswith("First wrong element: peak[0]")


def test_a_case_may_ask_for_another_bound_of_one_result(judge):
    one = judge(SOFTMAX)
    ones = normal(9, 1)
    assert CheckUse.of("a test", ones, bound={"z": "exact"}).verdict(one).outcome == PASS
    verdict = CheckUse.of("a test", normal(9, 50), bound={"z": "exact"}, dtypes=("float32",)).verdict(one)
    assert verdict.outcome == FAIL and "z[" in verdict.lines[-1]
    with pytest.raises(ValueError, match="softmax has no result y, for which a bound is given"):
        CheckUse.of("a test", ones, bound={"y": "exact"}).verdict(one)


# ---- arguments that are results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("negate", [True, False])
def test_an_entry_may_update_an_argument_and_return_nothing(judge, negate):
    assert CheckUse.of("a test", normal(100), 0.5, negate).verdict(judge(SCALE)).outcome == PASS


def test_numbers_keep_their_kind(judge):
    """A whole number is no float, and True is no 1."""
    kinds = ("def scale(x, factor, negate):\n", "def scale(x, factor, negate):\n    assert KINDS\n")
    for kind, value in (("type(factor) is int", 2), ("type(factor) is float", 2.0), ("negate is True", 4)):
        text = kinds[1].replace("KINDS", kind)
        assert CheckUse.of("a test", normal(10), value, True).verdict(judge(SCALE, (kinds[0], text))).outcome == PASS


def test_arguments_that_are_filled_are_results_wherever_they_stand(judge):
    data = output(100), normal(100), output(100)
    assert CheckUse.of("a test", *data).verdict(judge(SPLIT)).outcome == PASS
    verdict = CheckUse.of("a test", *data).verdict(judge(SPLIT, ("return y, z", "return z, y")))
    told = "split returns z for y: it has to fill and return the y it was given."
    assert verdict.lines == [told, f"Line {verdict.line}:  return z, y"]
    verdict = CheckUse.of("a test", *data).verdict(
        judge(SPLIT, ("tl.store(z_ptr + i, tl.maximum(x, 0.0), mask=i < N)", ""))
    )
    assert verdict.id == "unwritten" and "Nothing was written to z" in verdict.lines[0]


def test_a_name_that_is_no_bound_is_refused():
    for stated, asked in (("softmax", None), (SOFTMAX, "softmax"), (SOFTMAX, {"z": "exakt"})):
        exercise = Exercise(entry="f", reference=lambda x: x, bound=stated, minutes=1)
        with pytest.raises(ValueError, match="f: '(softmax|exakt)' is no bound; there are bits, exact, unjudged"):
            trial_of(exercise, "a call", (normal(3),), "float32", asked)


def test_a_call_brings_no_model_of_its_own():
    """A GPU's process takes models from the exercise: it would judge by another one."""
    exercise = Exercise(entry="f", reference=lambda x: x, bound=SOFTMAX, minutes=1)
    with pytest.raises(ValueError, match="is no bound; there are .*, and a RoundingModel that the exercise states"):
        trial_of(exercise, "a call", (normal(3),), "float32", PRODUCT)
    trial = trial_of(exercise, "a call", (normal(3),), "float32", "exact")
    assert (trial.name, trial.bound) == ("a call", "exact")  # inputs are drawn by the name: two calls have their own


def test_an_exercise_updates_arguments_only():
    with pytest.raises(ValueError, match="updates=\\('y',\\): a tuple of names of arguments was expected"):
        Exercise(entry="f", reference=lambda x: x, bound="exact", minutes=1, updates=("y",))


def test_a_call_is_timed_against_the_product_of_its_first_two_arguments_or_against_the_one_that_is_stated():
    recording = PackedPlan(Plan([]), {}, b"", [spec_of("x", torch.empty(shape)) for shape in ((6, 4), (4, 6))])
    plain = Exercise(entry="f", reference=lambda a, b: a @ b, bound=PRODUCT, minutes=1)
    assert plain.as_product([(6, 4), (4, 6)]) == (6, 4, 6) and flops_of(plain, recording) == 2 * 6 * 4 * 6
    twice = replace(plain, product=lambda a, b: (a[0], a[1], 2 * b[1]))
    assert twice.as_product([(6, 4), (4, 6)]) == (6, 4, 12) and flops_of(twice, recording) == 4 * 6 * 4 * 6


# ---- dtypes and dimensions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_whole_numbers_of_every_width_pass_through_exactly(judge, dtype):
    data = packed(7, 9).of(dtype).every_second()
    exercise = Exercise(
        entry="copy", reference=lambda x: x, returns=Result("z", dtype), bound="exact", minutes=1, dtypes=HALVES
    )
    assert CheckUse.of("a test", data).verdict(judge(exercise)).outcome == PASS
    wrong = judge(exercise, ("tl.store(z_ptr + i, x, mask=mask)", "tl.store(z_ptr + i, x + 1, mask=mask)"))
    verdict = CheckUse.of("a test", data).verdict(wrong)
    assert verdict.outcome == FAIL and "expected" in verdict.lines[-1] and "e+" not in verdict.lines[-1]


@pytest.mark.parametrize("shape", [(), (70,), (5, 9), (3, 4, 5), (2, 3, 4, 5), (2, 2, 3, 4, 5)])
def test_tensors_of_up_to_five_dimensions_in_any_order(judge, shape):
    data = normal(*shape).stored_as(*reversed(range(len(shape))))
    one = judge(COPY)
    assert CheckUse.of("a test", data).verdict(one).outcome == PASS
    assert CheckUse.of("a test", normal(*shape)).verdict(one).outcome == PASS
    wrong = CheckUse.of("a test", data).verdict(
        judge(COPY, ("list(x.stride())", "list(torch.empty(x.shape).stride())"))
    )
    assert wrong.outcome == (FAIL if len(shape) > 1 else PASS)
    assert len(shape) < 2 or "The strides of x are not used" in wrong.lines[0]


@pytest.mark.parametrize(("missing", "part"), [("b < 1", "z[1:]"), ("c < 2", "z[:, 2:]"), ("d < 3", "z[:, :, 3:]")])
def test_the_end_of_a_dimension_that_nobody_writes_is_told_as_such(judge, missing, part):
    end = ("tl.store(z_ptr + i, x, mask=mask)", f"tl.store(z_ptr + i, x, mask=mask & ({missing}))")
    verdict = CheckUse.of("a test", normal(2, 3, 4, 2)).verdict(judge(COPY, end))
    assert verdict.lines[0].startswith(f"{part} is never written: has a grid of 1 program"), verdict.lines


def test_a_wrong_number_is_told_without_an_index(judge):
    wrong = judge(COPY, ("tl.store(z_ptr + i, x, mask=mask)", "tl.store(z_ptr + i, x + 1, mask=mask)"))
    verdict = CheckUse.of("a test", normal()).verdict(wrong)
    assert verdict.outcome == FAIL and verdict.lines[-1].startswith("First wrong element: z of program (0,) is")


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_floats_of_eight_bits_may_be_given(judge, dtype):
    exercise = Exercise(
        entry="copy", reference=lambda x: x, returns=Result("z", "float32"), bound="exact", minutes=1, dtypes=HALVES
    )
    data = normal(30, 7).of(dtype).padded()
    wide = ("z = torch.empty(x.shape, dtype=x.dtype,", "z = torch.empty(x.shape, dtype=torch.float32,")
    assert CheckUse.of("a test", data).verdict(judge(exercise, wide)).outcome == PASS
    more = ("tl.store(z_ptr + i, x, mask=mask)", "tl.store(z_ptr + i, x.to(tl.float32) * 1.01, mask=mask)")
    verdict = CheckUse.of("a test", data).verdict(judge(exercise, wide, more))
    assert verdict.outcome == FAIL and "z[0, 0]" in verdict.lines[-1]


# ---- data sets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 100])
@pytest.mark.parametrize("seed", range(5))
def test_indices_stay_below_and_reach_both_ends(count, seed):
    drawn = indices(count, below=37).tensor(torch.float16, generator_for(seed))
    assert drawn.dtype == torch.int32 and int(drawn.min()) >= 0 and int(drawn.max()) == 36
    assert count == 1 or int(drawn.min()) == 0
    assert lengths(0, below=5).tensor(torch.float16, generator_for(seed)).shape == (0,)


def test_packed_words_are_all_bits_in_any_width():
    for dtype, bits in (("int32", 32), ("int64", 64), ("uint8", 8)):
        words = packed(4000).of(dtype).tensor(torch.float32, generator_for(1)).long()
        for bit in range(bits):
            assert 0.4 < float(((words >> bit) & 1).double().mean()) < 0.6


def test_whole_numbers_stay_whole_when_they_are_changed():
    data = with_some(-100, indices(1000, below=1 << 20).of("int64") + (1 << 40))
    drawn = data.tensor(torch.float16, generator_for(1))
    assert drawn.dtype == torch.int64 and 50 < int((drawn == -100).sum()) < 200
    assert bool(((drawn == -100) | (drawn >= 1 << 40)).all()) and len(drawn.unique()) > 500


def test_a_dtype_of_its_own_crosses_to_other_processes_and_is_told():
    data = normal(3, 4).padded().of("float32")
    assert Data.from_json(json.loads(json.dumps(data.to_json()))) == data
    assert data.label == "3 x 4 (fp32, padded rows)" and indices(5, below=7).label == "5 (int32, below 7)"
    assert data.tensor(torch.float16, generator_for(1)).dtype == data.shape_on("meta", torch.float16).dtype


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "bool"])
def test_holes_of_whole_numbers_are_told_from_what_stands_beside_them(dtype):
    drawn = output(5, 7).padded().of(dtype).tensor(torch.float16, generator_for(1))
    memory = torch.empty(0, dtype=drawn.dtype).set_(drawn.untyped_storage())
    assert bool(is_poison(memory).all())


def test_dimensions_are_stored_in_the_order_that_is_asked_for():
    drawn = normal(2, 3, 4, 5).stored_as(0, 2, 1, 3).tensor(torch.float32, generator_for(1))
    assert drawn.shape == (2, 3, 4, 5) and drawn.stride() == (60, 5, 15, 1)
    assert normal(2, 3).stored_as(0, 1) == normal(2, 3)
    with pytest.raises(ValueError, match="each dimension once"):
        normal(2, 3).stored_as(0, 0)


def test_layouts_of_matrices_fit_tensors_of_any_rank():
    four = normal(2, 3, 4, 5)
    strides = {"transposed": (60, 20, 1, 4), "padded": (216, 72, 18, 1), "every_second": (960, 160, 20, 2)}
    for name, expected in strides.items():
        drawn = getattr(four, name)().tensor(torch.float32, generator_for(1))
        assert drawn.shape == (2, 3, 4, 5) and drawn.stride() == expected, name


def test_a_reference_gets_floats_in_float64_and_whole_numbers_as_indices():
    trial = trial_of(SCALE, "a test", (normal(3), 2, True), "float16")
    given = exact([*trial.inputs(1), indices(3, below=2).tensor(torch.float16, generator_for(1))])
    assert [getattr(one, "dtype", one) for one in given] == [torch.float64, 2, True, torch.int64]
    assert trial.data_label == "x 3, factor = 2, negate = True fp16"
    assert bool(given[0][given[3]].isfinite().all()) and not some_minus_infinity(2, 2).dtype
