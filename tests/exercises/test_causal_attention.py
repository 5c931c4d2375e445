"""Causal attention: how far o and lse may lie from the exact ones, and what is said of wrong kernels."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
import torch

from grader import normal
from grader.course.folder import Folder, load_test_file
from grader.course.trial import trial_of
from grader.explain.verdict import FAIL, PASS, Verdict
from grader.judging.uses import TrafficUse
from grader.numerics.arguments import exact, from_json, to_json
from grader.numerics.bounds import tolerance
from grader.numerics.comparison import compare
from grader.numerics.data_sets import Data, generator_for
from grader.numerics.rounding_models import ATTENTION, LOG_SUM_EXP
from grader.numerics.roundoff import UNIT_ROUNDOFF
from tests.conftest import ROOT, mutant

ID = "26_causal_attention"
FOLDER = Folder(ROOT / "exercises" / ID)
SOLUTION = FOLDER.solution_file.read_text()
SMALL = dict(BLOCK_M=32, BLOCK_N=32)
MODULE = load_test_file(FOLDER)
BOUNDS = MODULE.exercise.bounds


def expected(arguments: list) -> list[torch.Tensor]:
    return MODULE.exercise.expected(arguments)


def heads(queries: int, keys: int, H: int = 2, HK: int = 2, D: int = 16) -> tuple[Data, Data, Data]:
    return normal(1, H, queries, D), normal(1, HK, keys, D), normal(1, HK, keys, D)


def drawn(*data: Data, dtype: torch.dtype = torch.float16, seed: int = 1) -> list[torch.Tensor]:
    return [one.tensor(dtype, generator_for(seed, place)) for place, one in enumerate(data)]


def with_rounded_p(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *options) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns what the best of right kernels gives: p is rounded for the second product, all else is in float64."""
    of, group = MODULE.Scored(*exact([q, k, v]), *options), q.shape[1] // k.shape[1]
    keys, values = (one.double().repeat_interleave(group, dim=1) for one in (k, v))
    s = of.scores(q.double(), keys)
    m = s.amax(dim=-1, keepdim=True)
    p = torch.exp(s - torch.where(m.isneginf(), 0.0, m))
    total = p.sum(dim=-1, keepdim=True)
    o = p.to(v.dtype).double() @ values / torch.where(total == 0, 1.0, total)
    return o.to(q.dtype), (m + total.log())[..., 0].float()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("options", [(None, None), (40, None), (None, 50.0), (7, 0.5)])
@pytest.mark.parametrize("M, N", [(45, 45), (20, 90), (90, 20)])
def test_a_kernel_that_rounds_p_and_nothing_else_stays_well_below_the_bound(dtype, options, M, N):
    inputs = drawn(*heads(M, N, H=4), dtype=dtype)
    given = [*exact(inputs), *options]
    found = zip(with_rounded_p(*inputs, *options), expected(given), BOUNDS.values())
    o, lse = (compare(*one, given) for one in found)
    assert o.largest_error < 0.7 and lse.largest_error < 0.1
    if M > N:
        assert bool((o.out[..., : M - N, :] == 0).all()) and bool(lse.out[..., : M - N].isneginf().all())


def test_rows_that_see_nothing_are_exact():
    inputs = [*exact(drawn(*heads(9, 4))), None, None]
    o, lse = expected(inputs)
    assert (
        bool((o[..., :5, :] == 0).all()) and bool(lse[..., :5].isneginf().all()) and bool(lse[..., 5:].isfinite().all())
    )
    for dtype, least in ((torch.float16, 2.0**-23), (torch.bfloat16, 1e-30)):
        almost = o.to(dtype)
        almost[0, 0, 0, 0] = least
        assert not compare(almost, o, BOUNDS["o"], inputs).right
    for wrong in (-1e4, torch.nan, torch.inf):
        almost = lse.float()
        almost[0, 0, 0] = wrong
        assert not compare(almost, lse, BOUNDS["lse"], inputs).right
    assert compare(lse.float(), lse, BOUNDS["lse"], inputs).right


def test_the_bound_is_made_of_its_terms():
    """With equal scores p is 1 over the number of seen keys, and every term can be told by hand."""
    q, k, v = (one.double() for one in (torch.zeros(1, 1, 1, 16), torch.ones(1, 1, 8, 16), torch.ones(1, 1, 8, 16)))
    o, lse = torch.ones(1, 1, 1, 16).double(), torch.full((1, 1, 1), math.log(4.0)).double()
    u, u32 = UNIT_ROUNDOFF[torch.bfloat16], 2.0**-24
    for cap, more in ((None, 0), (50.0, 400)):
        inputs = [q, k, v, 4, cap]
        allowed = tolerance(BOUNDS["o"], inputs, o, torch.bfloat16)
        assert allowed[0, 0, 0, 0].item() == pytest.approx(1.25 * u + 1.1 * u + 2 * (16 + more) * u32)
        allowed = tolerance(BOUNDS["lse"], inputs, lse, torch.float32)
        assert allowed.item() == pytest.approx((1.25 * math.log(4) + 16 + more + 8 / 64) * u32, rel=1e-6)


def test_without_a_rule_that_hides_anything_the_bound_is_that_of_attention():
    inputs = exact(drawn(*heads(1, 45)))
    o, lse = expected([*inputs, None, None])
    for name, model, ref, dtype in (("o", ATTENTION, o, torch.float16), ("lse", LOG_SUM_EXP, lse, torch.float32)):
        plain = tolerance(model, inputs, ref, dtype)
        assert torch.allclose(tolerance(BOUNDS[name], [*inputs, None, None], ref, dtype), plain, rtol=1e-12)


# ---- options as arguments --------------------------------------------------------------------------------------------


def test_an_option_that_is_not_taken_is_not_told():
    exercise = MODULE.exercise
    told = trial_of(exercise, "a", (*heads(3, 5, 1, 1), None, 2.0), "float16").sizes_label
    assert told == "q 1 x 1 x 3 x 16, k 1 x 1 x 5 x 16, v 1 x 1 x 5 x 16, softcap = 2.0"
    assert from_json(json.loads(json.dumps(to_json(None)))) is None


def test_none_goes_to_the_entry_and_into_the_kernel_as_it_is(bench):
    text = (ROOT / "solutions" / ID / "accepted" / "large_negative_maximum.py").read_text()
    for options in ((None, None), (9, None), (None, 2.0)):
        assert judged(bench, text, *heads(33, 45), *options).outcome == PASS


def test_traffic_may_be_asked_of_a_call_that_is_judged_in_part(bench):
    (store,) = re.findall(r"    tl\.store\(lse_ptr.*\n", SOLUTION)
    one = bench(SOLUTION.replace(store, ""), ID)
    data = *heads(128, 128), None, None
    of_all = TrafficUse.of("test_b", *data, reads={"k": 2.5, "v": 2.5}, **SMALL)
    in_part = replace(of_all, test="test_a", bound={"lse": "unjudged"})
    assert in_part.verdict(one.judge).outcome == PASS
    assert of_all.verdict(one.judge).id == "unwritten"


# ---- what is said of wrong kernels -----------------------------------------------------------------------------------


def judged(bench, text: str, *data, **options) -> Verdict:
    return bench(text, ID).check(*data, **{**SMALL, **options})


@pytest.mark.parametrize(
    "name, hidden_by, shown_by",
    [
        ("top_left", (45, 45, None), (33, 130, None)),
        ("ends_without_shift", (100, 45, None), (33, 130, None)),
        ("begins_without_shift", (33, 130, 40), (130, 45, 40)),
        ("begins_below_zero", (45, 45, 32), (45, 45, 40)),
        ("window_one_key_more", (45, 45, 1000), (45, 45, 40)),
        ("divided_by_zero", (45, 45, 40), (130, 45, 40)),
    ],
)
def test_some_shapes_hide_a_mistake(bench, name, hidden_by, shown_by):
    """Three calls show all of them: what the exercise's mistakes give in a wrong call is computed once."""
    text = mutant(f"{ID}/{name}")
    for (M, N, window), outcome in ((hidden_by, PASS), (shown_by, FAIL)):
        assert judged(bench, text, *heads(M, N), window, None).outcome == outcome, (M, N, window)


def test_a_maximum_that_is_kept_shows_with_scores_below_zero_in_a_window_only(bench):
    text = mutant(f"{ID}/stand_in_kept")
    low = normal(1, 1, 77, 64) * 0.14 + 1.4
    assert judged(bench, text, *heads(77, 77), 40, None).outcome == PASS
    assert judged(bench, text, low, low * -1, normal(1, 1, 77, 64), None, None).outcome == PASS
    assert judged(bench, text, low, low * -1, normal(1, 1, 77, 64), 40, None).id == "stand-in-kept"


def test_a_tanh_that_overflows_shows_far_beyond_the_cap_only(bench):
    text, (q, k, v) = mutant(f"{ID}/cap_overflows"), heads(33, 33, D=64)
    assert judged(bench, text, q * 5, k * 5, v, None, 50.0).outcome == PASS
    assert judged(bench, text, q * 5, k * 5, v, None, 0.5).id == "wrong-cap"


def test_four_heads_on_two_hide_the_wrong_divisor(bench):
    text = mutant(f"{ID}/divided_by_hk")
    assert judged(bench, text, *heads(33, 33, H=4), None, None).outcome == PASS
    assert judged(bench, text, *heads(33, 33, H=6), None, None).id == "oob-load"


# ---- the lesson ------------------------------------------------------------------------------------------------------


def test_the_algorithm_of_the_lesson_prints_the_staircase(capsys):
    (code,) = re.findall(r"```python\n(import torch.*?)```", (FOLDER.path / "README.md").read_text(), re.DOTALL)
    exec(code, {})
    square, shifted, _, band = re.split(r"\d+ \d+ \d+.*\n", capsys.readouterr().out)[1:]
    assert square == "/...\n#/..\n##/.\n###/\n" and shifted == "##/.\n###/\n"
    assert "#" not in band and band.splitlines()[2] == "///.."
