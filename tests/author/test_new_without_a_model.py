"""Exercises of one's own: a column sum, a clamp and a mean need no line in the grader and no model of rounding."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.learn.conftest import Course

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\nBLOCK_N = 64\n\n\n"
TESTS = """from grader import Exercise, contiguous, normal, unusual, upto

exercise = Exercise(
    entry="{name}", reference={reference}, returns="z", bound="torch", minutes=15, dtypes=("float32", "float16"),
)


def test_values(check):
    check({call})


def test_any_call_that_the_lesson_promises(drawn):
    drawn(sizes={{"M": upto(40, block=1), "N": upto(300, BLOCK_N=64)}}, x=contiguous("M", "N", values=(normal,)))
"""


@dataclass(frozen=True)
class Own:
    """An exercise: what its author writes, a change that makes its kernel wrong, and one that only loses digits."""

    name: str
    reference: str
    call: str
    kernel: str
    wrong: tuple[str, str]
    coarse: tuple[str, str]


COLUMN_SUM = """@triton.jit
def column_sum_kernel(x_ptr, z_ptr, M, N, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_N], dtype=tl.float32)
    for row in range(0, M):
        total += tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    tl.store(z_ptr + cols, total, mask=cols < N)


def column_sum(x):
    M, N = x.shape
    z = torch.empty(N, dtype=x.dtype, device=x.device)
    column_sum_kernel[(triton.cdiv(N, BLOCK_N),)](x, z, M, N, BLOCK_N=BLOCK_N)
    return z
"""
CLAMP = """@triton.jit
def clamp_kernel(x_ptr, z_ptr, n, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(z_ptr + offsets, tl.minimum(tl.maximum(x, -0.5), 0.75), mask=offsets < n)


def clamp(x):
    z = torch.empty_like(x)
    clamp_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
"""
MEAN = """@triton.jit
def row_mean_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        total += tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    tl.store(z_ptr + row, tl.sum(total, 0) / N)


def row_mean(x):
    M, N = x.shape
    z = torch.empty(M, dtype=x.dtype, device=x.device)
    row_mean_kernel[(M,)](x, z, N, BLOCK_N=BLOCK_N)
    return z
"""
IN_FP16 = ("dtype=tl.float32", "dtype=tl.float16")
EXERCISES = [
    Own("column_sum", "lambda x: x.sum(dim=0)", "normal(37, 130)", COLUMN_SUM, ("range(0, M)", "range(1, M)"), IN_FP16),
    Own("clamp", "lambda x: x.clamp(-0.5, 0.75)", "normal(37, 130)", CLAMP, ("0.75)", "0.75001)"),
        ("(x, -0.5)", "(x.to(tl.float16), -0.5)")),
    Own("row_mean", "lambda x: x.mean(dim=1)", "normal(37, 130)", MEAN, ("/ N)", "/ (N + 0.001))"), IN_FP16),
]  # fmt: skip


@pytest.mark.parametrize("own", EXERCISES, ids=lambda own: own.name)
def test_it_passes_the_right_and_refuses_the_wrong(tmp_path, own):
    course, id = Course(tmp_path), f"37_{own.name}"
    course.here("new", id)
    tests = TESTS.format(name=own.name, reference=own.reference, call=own.call)
    (course.path / "exercises" / id / f"test_{own.name}.py").write_text(tests)
    found = {}
    for what, (old, new) in {"right": ("", ""), "wrong": own.wrong, "coarse": own.coarse}.items():
        assert old in own.kernel
        course.save(id, HEAD + (own.kernel.replace(old, new) if old else own.kernel))
        found[what] = course.pytest(f"exercises/{id}")
    assert found["right"].status == 0, found["right"].out
    assert found["wrong"].status == 1 and found["coarse"].status == 1, found["wrong"].out + found["coarse"].out


def test_a_wrong_formula_that_rounding_hides_is_told_as_one(tmp_path):
    course, id = Course(tmp_path), "37_row_mean"
    course.here("new", id)
    tests = TESTS.format(name="row_mean", reference="lambda x: x.mean(dim=1)", call="normal(37, 130)")
    test = course.path / "exercises" / id / "test_row_mean.py"
    test.write_text(tests.replace('("float32", "float16")', '("float16",)'))
    course.save(id, HEAD + MEAN.replace("/ N)", "/ (N + 0.003))"))
    done = course.pytest(f"exercises/{id}")
    assert done.status == 1 and "Rounding hides it, and it is another formula" in done.out, done.out
