"""Attention: how far o and lse of a right kernel may lie from the exact ones, and what is said of wrong ones."""

from __future__ import annotations

import math
import re

import pytest
import torch

from grader import cancelling_down, first_row, normal, uniform
from grader.course.folder import Folder, load_test_file
from grader.explain.verdict import FAIL, PASS, Verdict
from grader.judging.uses import CheckUse
from grader.numerics import rounding_models
from grader.numerics.arguments import exact
from grader.numerics.bounds import tolerance
from grader.numerics.comparison import compare
from grader.numerics.data_sets import Data, generator_for
from grader.numerics.rounding_models import ATTENTION, LOG_SUM_EXP, scores
from grader.numerics.roundoff import UNIT_ROUNDOFF
from tests.conftest import ROOT, mutant

ID = "25_flash_attention"
FOLDER = Folder(ROOT / "exercises" / ID)
SOLUTION = FOLDER.solution_file.read_text()
SMALL = dict(BLOCK_M=32, BLOCK_N=32)


def drawn(*data: Data, dtype: torch.dtype = torch.float16, seed: int = 1) -> list[torch.Tensor]:
    return [one.tensor(dtype, generator_for(seed, place)) for place, one in enumerate(data)]


def largest_errors(inputs: list[torch.Tensor], o: torch.Tensor, lse: torch.Tensor) -> tuple[float, float]:
    given = exact(inputs)
    ref = load_test_file(FOLDER).exercise.expected(given)
    return tuple(compare(*one, given).largest_error for one in zip((o, lse), ref, (ATTENTION, LOG_SUM_EXP)))


def with_rounded_p(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns what the best of right kernels gives: p is rounded for the second product, all else is in float64."""
    s = scores(*exact([q, k]))
    m = s.amax(dim=-1, keepdim=True)
    p = torch.exp(s - m)
    total = p.sum(dim=-1, keepdim=True)
    o = p.to(v.dtype).double() @ v.double() / total
    return o.to(q.dtype), (m + total.log())[..., 0].float()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("seed", range(5))
def test_a_kernel_that_rounds_p_and_nothing_else_stays_well_below_the_bound(dtype, seed):
    inputs = drawn(normal(2, 2, 9, 64), normal(2, 2, 130, 64), normal(2, 2, 130, 64), dtype=dtype, seed=seed)
    o, lse = largest_errors(inputs, *with_rounded_p(*inputs))
    assert o < 0.6 and lse < 0.1


@pytest.mark.parametrize("id", [ID, "26_causal_attention"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("D", [16, 32, 64, 128])
def test_the_farthest_scores_are_just_below_the_30000_that_the_lessons_promise(id, dtype, D):
    """Beyond, m + log l loses log l in fp32. Up to there a kernel that keeps this sum alone is right, as the first
    FlashAttention does, and the bound of o is a small share of the values."""
    far = load_test_file(Folder(ROOT / "exercises" / id)).far(1, 1, 3, D)
    given = exact(drawn(far, far, uniform(1, 1, 3, D), dtype=dtype))
    s = scores(*given[:2])
    assert s.min() > 28_000 and s.max() <= 30_000
    assert tolerance(ATTENTION, given, given[2], torch.float32).max() < 0.15


def test_what_fp16_loses_of_small_probabilities_is_paid_for():
    """A single key takes nearly all, and its value is 0: o is made of probabilities that fp16 holds with few digits."""
    v = first_row(0, uniform(1, 1, 1000, 64))
    inputs = drawn(normal(1, 1, 9, 64) * 0.1 + 1, first_row(1.75, normal(1, 1, 1000, 64) * 0.1), v)
    o, _ = largest_errors(inputs, *with_rounded_p(*inputs))
    assert o < 0.6
    given, (ref, _) = exact(inputs), load_test_file(FOLDER).exercise.expected(exact(inputs))
    relative, lost = ATTENTION.conversion(ref, *given)
    rest = tolerance(ATTENTION, given, ref, torch.float16) - 2.0**-24 * lost
    assert float(((with_rounded_p(*inputs)[0].double() - ref).abs() / rest).max()) > 1
    assert bool((relative > ref.abs()).all())


def test_the_bound_is_made_of_its_terms():
    """With equal scores p is 1 / N, o the mean of v, and every term can be told by hand."""
    q, k, v = (one.double() for one in (torch.zeros(1, 1, 1, 16), torch.ones(1, 1, 8, 16), torch.ones(1, 1, 8, 16)))
    ref = torch.ones(1, 1, 1, 16).double()
    u, u32 = UNIT_ROUNDOFF[torch.bfloat16], 2.0**-24
    allowed = tolerance(ATTENTION, [q, k, v], ref, torch.bfloat16)
    assert allowed[0, 0, 0, 0].item() == pytest.approx(1.25 * u + 1.1 * u + 2 * 16 * u32)
    allowed = tolerance(LOG_SUM_EXP, [q, k, v], torch.full((1, 1, 1), math.log(8.0)).double(), torch.float32)
    assert allowed.item() == pytest.approx((1.25 * math.log(8) + 16 + 8 / 64) * u32, rel=1e-6)


def test_heads_are_taken_a_few_at_a_time(monkeypatch):
    inputs = [one.double() for one in drawn(normal(3, 5, 7, 16), normal(3, 5, 9, 16), normal(3, 5, 9, 16))]
    ref = torch.empty(3, 5, 7, 16, dtype=torch.float64)
    at_once = ATTENTION.arithmetic(ref, *inputs)
    monkeypatch.setattr(rounding_models, "MOST_SCORES", 2 * 7 * 9)
    assert torch.allclose(ATTENTION.arithmetic(ref, *inputs), at_once, rtol=1e-12)


# ---- what is said of wrong kernels -----------------------------------------------------------------------------------


def judged(bench, text: str, *data: Data, **options) -> Verdict:
    return bench(text, ID).check(*data, **{**SMALL, **options})


def test_o_alone_may_be_asked_for(bench):
    data = normal(1, 2, 33, 16), normal(1, 2, 45, 16), normal(1, 2, 45, 16)
    (store,) = re.findall(r"    tl\.store\(lse_ptr.*\n", SOLUTION)
    without_lse = SOLUTION.replace(store, "")
    assert judged(bench, without_lse, *data, bound={"lse": "unjudged"}).outcome == PASS
    verdict = judged(bench, without_lse, *data)
    assert verdict.id == "unwritten" and "Nothing was written to lse" in verdict.lines[0]
    wrong = judged(bench, mutant(f"{ID}/no_scale"), *data, bound={"lse": "unjudged"})
    assert wrong.outcome == FAIL and wrong.id == "wrong-scale"


@pytest.mark.parametrize("dtype, keys, step", [("float16", 4096, 128), ("bfloat16", 1024, 32)])
def test_an_accumulator_in_16_bits_shows_where_sums_cancel(bench, dtype, keys, step):
    """In 32 tiles: a loop may end after each, and all of these mistakes are tried before the accumulator."""
    data = normal(1, 1, 16, 16) * 0, normal(1, 1, keys, 16), cancelling_down(1, 1, keys, 16)
    options = dict(dtypes=(dtype,), BLOCK_M=16, BLOCK_N=step)
    assert judged(bench, SOLUTION, *data, **options).outcome == PASS
    half = judged(bench, mutant(f"{ID}/half_accumulator"), *data, **options)
    assert half.id == "half-accumulator"


def test_lse_shows_what_o_hides(bench):
    data = normal(1, 2, 33, 64), normal(1, 2, 77, 64), normal(1, 2, 77, 64)
    for name in ("half_exponents", "half_scores", "scale_on_q", "sum_of_rounded_p"):
        text = mutant(f"{ID}/{name}")
        verdict = judged(bench, text, *data)
        assert verdict.id == "rounded-too-early" and "lse[" in verdict.lines[-1], (name, verdict.lines)
    o_alone = judged(bench, mutant(f"{ID}/sum_of_rounded_p"), *data, bound={"lse": "unjudged"})
    assert o_alone.outcome == PASS


def test_a_loop_that_ends_with_the_queries_is_told_from_one_that_ends_too_early(bench):
    data = normal(1, 1, 33, 16), normal(1, 1, 130, 16), normal(1, 1, 130, 16)
    over_queries = judged(bench, mutant(f"{ID}/ends_with_the_queries"), *data)
    assert "the loop ends with the queries, of which there are 33" in over_queries.lines[0]
    first = judged(bench, mutant(f"{ID}/first_tile_only"), *data)
    assert first.lines[0] == "Only the first 32 of 130 keys reach o: the loop or a mask leaves the others out."
    whole_tiles = normal(1, 1, 128, 16)
    still = judged(bench, mutant(f"{ID}/keys_not_advanced"), data[0], whole_tiles, whole_tiles)
    assert still.id == "no-advance"


@pytest.mark.parametrize("seed", [1, 798066925296187622])
def test_a_maximum_that_starts_at_minus_400_is_told_where_terms_of_l_vanish(bench, seed):
    """Scores near -360: exp(score + 400) is nearly 0 in some rows, where lse is wrong by more than rounding."""
    judge, v = bench(mutant(f"{ID}/starts_at_minus_400"), ID, seed).judge, normal(1, 1, 77, 64)
    q, k = normal(1, 1, 33, 64) * 0.67 + 6.7, normal(1, 1, 77, 64) * -0.67 - 6.7
    options = dict(BLOCK_M=64, BLOCK_N=32)
    assert CheckUse.of("test_near_zero", normal(1, 1, 33, 64), v, v, **options).verdict(judge).outcome == PASS
    verdict = CheckUse.of("test_scores_far_below_zero", q, k, v, **options).verdict(judge)
    assert verdict.id == "finite-start", verdict.lines


# ---- the lesson ------------------------------------------------------------------------------------------------------


def test_the_algorithm_of_the_lesson_gives_what_attention_gives(capsys):
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", (FOLDER.path / "README.md").read_text(), re.DOTALL)
               if "def join" in block)  # fmt: skip
    names: dict = {}
    exec(code, names)
    assert capsys.readouterr().out
    q, k, v = (torch.randn(size, 16, dtype=torch.float64) for size in (6, 10, 10))
    o, lse = names["attention_by_tiles"](q, k, v)
    (ref, ref_lse) = load_test_file(FOLDER).exercise.expected([one[None, None] for one in (q, k, v)])
    assert torch.allclose(o, ref[0, 0], rtol=1e-12) and torch.allclose(lse.double(), ref_lse[0, 0], rtol=1e-6)
