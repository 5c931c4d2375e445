"""Kernels of other designs than the solution's, with one mistake each: a whole run says what is true of them.

A test alone may fit a mistake that the kernel does not make; the other tests of the run contradict it then.
"""

from __future__ import annotations

import pytest

from grader.author.direct_run import outcome
from grader.author.proof import Proof, Way
from grader.course.folder import Folder
from grader.explain.verdict import FAIL, ORDINARY, Verdict, is_contradicted
from tests.conftest import ROOT
from tests.typed_commands import freeze_what_is_here

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"

ADD = """
@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + n, n < N)
    y = tl.load(y_ptr + n, mask=None)
    tl.store(z_ptr + n, x + y, n < N)


def masked_add(x, y):
    z = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 512),)](x, y, z, x.numel(), BLOCK=512)
    return z
"""

ROW_SUM_IN_TWO = """
BLOCK_N = 512


@triton.jit
def part_kernel(x_ptr, part_ptr, N, sm, sn, BLOCK_N: tl.constexpr):
    m, part, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(part * BLOCK_N, N, parts * BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        total += tl.load(x_ptr + m * sm + n * sn, mask=n < N, other=0.0)
    tl.store(part_ptr + m * parts + part, tl.sum(total, 0))


@triton.jit
def sum_kernel(part_ptr, z_ptr, parts, PARTS: tl.constexpr):
    m, part = tl.program_id(0), tl.arange(0, PARTS)
    tl.store(z_ptr + m, tl.sum(tl.load(part_ptr + m * parts + part, mask=part < parts, other=0), 0))


def row_sum(x):
    M, N = x.shape
    z = torch.empty(M, dtype=x.dtype, device=x.device)
    parts = min(triton.cdiv(N, BLOCK_N), 32)
    scratch = torch.empty((M, parts), dtype=torch.float32, device=x.device)
    part_kernel[(M, parts)](x, scratch, N, *x.stride(), BLOCK_N=BLOCK_N)
    sum_kernel[(M,)](scratch, z, parts, PARTS=32)
    return z
"""

ROW_SUM = """
@triton.jit
def sum_kernel(x_ptr, z_ptr, N, sm, sn, BLOCK: tl.constexpr):
    m = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        n = start + tl.arange(0, BLOCK)
        total = tl.where(n < N, total + tl.load(x_ptr - m * sm + n * sn, n < N), total)
    tl.store(z_ptr + m, tl.sum(total, 0))


def row_sum(x):
    M, N = x.shape
    z = torch.empty(M, dtype=x.dtype, device=x.device)
    sum_kernel[(M,)](x, z, N, *x.stride(), BLOCK=1024)
    return z
"""

SOFTMAX = """
@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, sm, sn, zm, zn, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    n = tl.arange(0, BLOCK)[None, :]
    inside = (m < M) & (n < N)
    x = tl.load(x_ptr + m * sm + n * sn, mask=inside, other=-float("inf")).to(tl.float32)
    x = tl.where(m < ROWS, x, 0.0)  # should be m < M
    e = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(z_ptr + m * zm + n * zn, e / tl.sum(e, 1)[:, None], mask=inside)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK = triton.next_power_of_2(N)
    softmax_kernel[(triton.cdiv(M, 2),)](x, z, M, N, *x.stride(), *z.stride(), ROWS=2, BLOCK=BLOCK)
    return z
"""

LAYER_NORM = """
@triton.jit
def norm_kernel(x_ptr, weight_ptr, bias_ptr, z_ptr, mean_ptr, rstd_ptr, M, N, sm, sn, zm, eps, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)
    inside = n < N
    weight = tl.load(weight_ptr + n, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + n, mask=inside, other=0.0).to(tl.float32)
    for m in range(tl.program_id(0), M, tl.num_programs(0)):
        x = tl.load(x_ptr + m * sm + n * sn, mask=inside, other=0.0).to(tl.float32)
        mean = tl.sum(x, 0) / N
        d = tl.where(inside, x - mean, 0.0)
        rstd = tl.rsqrt(tl.sum(d * d, 0) / N + eps)
        tl.store(z_ptr + m * zm + n, d * rstd * weight + bias, mask=inside)
        tl.store(mean_ptr + m, mean)
        tl.store(rstd_ptr + m, rstd)


def layer_norm(x, weight, bias, eps):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    mean, rstd = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
    BLOCK = triton.next_power_of_2(N)
    norm_kernel[(min(M, 16),)](x, weight, bias, z, mean, rstd, M, N, *x.stride(), z.stride(0), eps, BLOCK=BLOCK)
    return z, mean, rstd
"""

CHUNKED_LAYER_NORM = """
@triton.jit
def norm_kernel(x_ptr, weight_ptr, bias_ptr, z_ptr, mean_ptr, rstd_ptr, N, sm, sn, zm, eps, CHUNK: tl.constexpr):
    m, lanes = tl.program_id(0), tl.arange(0, CHUNK)
    mean, squares, count = 0.0, 0.0, 0.0
    for start in range(0, N, CHUNK):
        inside = start + lanes < N
        x = tl.load(x_ptr + m * sm + (start + lanes) * sn, mask=inside, other=0.0).to(tl.float32)
        size = tl.minimum(N - start, CHUNK).to(tl.float32)
        own = tl.sum(x, 0) / size
        d = tl.where(inside, x - m, 0.0)  # should be x - own
        apart, total = own - mean, count + size
        mean += apart * (size / total)
        squares += tl.sum(d * d, 0) + apart * apart * (count * size / total)
        count = total
    rstd = tl.rsqrt(squares / N + eps)
    tl.store(mean_ptr + m, mean)
    tl.store(rstd_ptr + m, rstd)
    for start in range(0, N, CHUNK):
        n = start + lanes
        x = tl.load(x_ptr + m * sm + n * sn, mask=n < N, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + n, mask=n < N, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)
        tl.store(z_ptr + m * zm + n, (x - mean) * rstd * weight + bias, mask=n < N)


def layer_norm(x, weight, bias, eps):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    mean, rstd = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
    norm_kernel[(M,)](x, weight, bias, z, mean, rstd, N, *x.stride(), z.stride(0), eps, CHUNK=1024)
    return z, mean, rstd
"""

# The text, a change of it, and the sentence that a run begins with. {line}: that of the change.
TOLD = {
    "the second load's mask is None": (
        ADD, "mask=None", "mask=None",
        "The tl.load in line {line} has no mask: lanes past the end of y take part in it.",
    ),
    "the padding of the first launch": (
        ROW_SUM_IN_TWO, "other=0.0", "other=1.0",
        "The 15 lanes past the end of each row take part in the sum.",
    ),
    "the padding of the second launch": (
        ROW_SUM_IN_TWO, "other=0)", "other=1)", "z is wrong in every element",
    ),
    "a row before the first": (
        ROW_SUM, "x_ptr - m", "x_ptr - m", "The address lies before x: an offset is negative",
    ),
    "rows that are no padding": (
        SOFTMAX, "m < ROWS", "m < ROWS", "z is wrong in",
    ),
    "a factor is added": (
        LAYER_NORM, "rstd * weight + bias", "rstd + weight + bias", "mean and rstd are right, and z is wrong in",
    ),
    "the squares of something else": (
        LAYER_NORM, "tl.sum(d * d, 0)", "tl.sum(weight * d, 0)", "mean is right, and z is wrong in every element",
    ),
    "a loop that begins late": (
        CHUNKED_LAYER_NORM.replace("x - m,", "x - own,"),
        "start in range(0, N, CHUNK):\n        n =",
        "start in range(1, N, CHUNK):\n        n =",
        "z is not written from its first element on: does a loop",
    ),
    "centred by something else": (
        CHUNKED_LAYER_NORM, "x - m,", "x - m,", "mean is right, and z is wrong in",
    ),
}  # fmt: skip
EXERCISES = {folder.name[3:]: Folder(folder) for folder in (ROOT / "exercises").iterdir()}


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    freeze_what_is_here()


@pytest.mark.parametrize("seed", [1, 5])
@pytest.mark.parametrize("name", TOLD)
def test_a_run_begins_with_a_true_sentence(name, seed, tmp_path):
    text, old, new, said = TOLD[name]
    assert text.count(old) == 1
    text = HEAD + text.replace(old, new)
    (exercise,) = (id for id in EXERCISES if f"def {id}(" in text)
    path = tmp_path / f"{exercise}.py"
    path.write_text(text)
    way = Way(seed=seed)
    found = outcome(Proof("mutant", name, EXERCISES[exercise].path, path, FAIL), path, way)
    line = 1 + text[: text.index(new)].count("\n")
    assert found.message.startswith(said.format(line=line))


def told(candidate: str, *also: str, refuted: str = "") -> Verdict:
    """Returns the verdict on ordinary values that several candidates explain, the first of which is told."""
    fitting = dict.fromkeys([candidate, *also])
    refuting = frozenset(refuted.split())
    return Verdict(
        FAIL, "wrong-values", kind="cause", candidate=candidate, fitting=fitting, refuted=refuting, wrong=ORDINARY
    )


def test_no_digits_are_lost_where_another_call_has_a_wrong_formula():
    digits, formula = told("low-precision"), told("", refuted="low-precision")
    assert is_contradicted(digits, [formula]) and not is_contradicted(digits, [told("low-precision")])


def test_what_no_call_contradicts_is_told_before_what_one_does():
    nearly, exactly = told("eps-left-out", "another-eps"), told("another-eps", refuted="eps-left-out")
    assert is_contradicted(nearly, [exactly])
    assert not is_contradicted(exactly, [nearly])
    assert not is_contradicted(nearly, [told("another-eps", "eps-left-out")])
