"""Exact runs: a call with 64 bits for every float, which tells lost digits from a wrong formula."""

from __future__ import annotations

import pytest
import torch

from grader import normal
from grader.course.trial import trial_of
from grader.explain.no_exact_run import why_no_exact_run
from grader.numerics.arguments import exact
from grader.ttir.exact_text import NoExactRun, Why
from tests.conftest import ROOT, exercise_of

SOFTMAX = (ROOT / "solutions/03_softmax/softmax.py").read_text(encoding="utf-8")
ADD = (ROOT / "solutions/01_masked_add/masked_add.py").read_text(encoding="utf-8")


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def ran(bench, text: str, id: str, *data, dtype: str = "float32") -> tuple[torch.Tensor, torch.Tensor]:
    """The result of the exact run, and the reference's."""
    run = bench(text, id).run
    trial = trial_of(exercise_of(id), "test_a_case", data, dtype)
    inputs = run.inputs(trial)
    (ref,) = trial.exercise.expected(exact(inputs))
    return run.exact(trial, inputs).outputs["z"], ref


def why_none(bench, text: str, id: str = "01_masked_add", *data) -> NoExactRun:
    with pytest.raises(NoExactRun) as caught:
        ran(bench, text, id, *(data or (normal(70), normal(70))))
    return caught.value


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("data", [normal(5, 70), normal(5, 70).transposed(), normal(5, 70).padded()], ids=str)
def test_a_right_kernel_is_exact_in_any_layout(bench, data, dtype):
    out, ref = ran(bench, SOFTMAX, "03_softmax", data, dtype=dtype)
    assert out.dtype == torch.float64 and float((out - ref).abs().max()) < 1e-12


def test_lost_digits_do_not_show_and_a_wrong_formula_does(bench):
    (line,) = [line for line in SOFTMAX.splitlines() if "tl.exp(" in line]
    rounded = changed(SOFTMAX, (line, f"{line.partition('  #')[0]}.to(tl.float16).to(tl.float32)"))
    out, ref = ran(bench, rounded, "03_softmax", normal(5, 70))
    assert float((out - ref).abs().max()) < 1e-12
    twice = changed(SOFTMAX, (line, f"{line.partition('  #')[0]} * 2 + 0.001"))
    out, ref = ran(bench, twice, "03_softmax", normal(5, 70))
    assert float((out - ref).abs().max()) > 1e-6


IN_SCRATCH = """
@triton.jit
def scaled_kernel(x_ptr, y_ptr, scratch_ptr, numbers_ptr, z_ptr, N, scale, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    tl.store(scratch_ptr + offsets, tl.load(scratch_ptr + offsets, mask=mask) + x * scale, mask=mask)
    tl.debug_barrier()
    held = tl.load(scratch_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, held + y * tl.load(numbers_ptr + 1), mask=mask)


def masked_add(x, y):
    N = x.numel()
    both = torch.zeros(2 * N, dtype=torch.float16, device=x.device)
    numbers = torch.tensor([5.0, 1.0], device=x.device)
    z = torch.empty_like(x)
    scaled_kernel[(triton.cdiv(N, 64),)](x, y, both[N:], numbers, z, N, 1.0, BLOCK_N=64)
    return z
"""
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"


def test_fills_numbers_and_views_of_scratch_memory_are_widened(bench):
    out, ref = ran(bench, HEAD + IN_SCRATCH, "01_masked_add", normal(70), normal(70))
    assert torch.equal(out, ref)


def test_bits_of_floats_have_none(bench):
    text = changed(ADD, ("x + y, mask", "(x + y).to(tl.int32, bitcast=True).to(tl.float32, bitcast=True), mask"))
    why = why_none(bench, text)
    line = 1 + text[: text.index("bitcast")].count("\n")
    assert (why.why, why.line) == (Why.BITS, line)
    assert why_no_exact_run(why).text == (
        f"the kernel reads the bits of a float in line {line}, or the address of one as a number."
    )


def test_memory_of_several_dtypes_has_none(bench):
    shared = changed(IN_SCRATCH, ("both[N:], numbers", "both[N:], both.view(torch.int16)[:2]"))
    why = why_none(bench, HEAD + shared)
    line = 1 + (HEAD + shared).splitlines().index("    both = torch.zeros(2 * N, dtype=torch.float16, device=x.device)")
    assert why_no_exact_run(why).text == f"a tensor in line {line} is used as several dtypes."


def test_it_changes_nothing_of_the_usual_run(bench):
    one = bench(SOFTMAX, "03_softmax")
    trial = trial_of(exercise_of("03_softmax"), "test_a_case", (normal(5, 70),), "float32")
    inputs = one.run.inputs(trial)
    before = one.run.call(trial, inputs).output
    one.run.exact(trial, inputs)
    assert torch.equal(before, one.run.call(trial, inputs).output)


def test_a_passing_call_asks_for_none(bench, monkeypatch):
    one, asked = bench(SOFTMAX, "03_softmax"), []
    monkeypatch.setattr(one.run, "exact", lambda *_: asked.append(1))
    assert one.check(normal(5, 70)).outcome == "pass" and asked == []


def test_a_wrong_call_asks_for_one(bench, monkeypatch):
    one = bench(changed(SOFTMAX, ('other=-float("inf")', "other=0.0")), "03_softmax")
    exactly, asked = one.run.exact, []
    monkeypatch.setattr(one.run, "exact", lambda *given: asked.append(1) or exactly(*given))
    assert one.check(normal(5, 70), dtypes=("float32",)).id == "padding-counted" and asked == [1]
