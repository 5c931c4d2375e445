"""The backward pass of attention: how far its results may lie from the exact ones, and what is said of wrong ones."""

from __future__ import annotations

import re
from functools import partial

import pytest
import torch

from grader import made, normal
from grader.course.folder import Folder, load_test_file
from grader.course.trial import trial_of
from grader.explain.verdict import FAIL, PASS, Verdict
from grader.numerics import rounding_models
from grader.numerics.arguments import exact
from grader.numerics.bounds import size_of_terms, tolerance
from grader.numerics.comparison import compare
from grader.numerics.data_sets import Data
from grader.numerics.roundoff import FLUSHED, UNIT_ROUNDOFF
from tests.conftest import ROOT, mutant

ID = "27_flash_backward"
FOLDER = Folder(ROOT / "exercises" / ID)
MODULE = load_test_file(FOLDER)
SOLUTION = FOLDER.solution_file.read_text()
SMALL = dict(BLOCK_M=32, BLOCK_N=32)
BOUNDS = MODULE.exercise.bounds
BOTH = pytest.mark.parametrize("dtype", ["float16", "bfloat16"])


def inputs_of(data: tuple[Data, ...], dtype: str = "float16", seed: int = 1) -> list[torch.Tensor]:
    return trial_of(MODULE.exercise, "a call", data, dtype).inputs(seed)


def of(pairs, p: torch.Tensor, ds: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """dq, dk and dv that these P and dS give."""
    return ds @ pairs.k * pairs.scale, ds.mT @ pairs.q * pairs.scale, p.mT @ pairs.do


def largest_errors(inputs: list[torch.Tensor], results: tuple[torch.Tensor, ...]) -> list[float]:
    given = exact(inputs)
    refs = MODULE.exercise.expected(given)
    return [compare(out, ref, bound, given).largest_error for out, ref, bound in zip(results, refs, BOUNDS.values())]


def with_rounded_factors(inputs: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Returns what the best right kernel gives: P and dS are rounded for their products, all else is in float64."""
    dtype, pairs = inputs[0].dtype, MODULE.Pairs(*exact(inputs))
    results = of(pairs, pairs.p.to(dtype).double(), pairs.ds.to(dtype).double())
    return tuple(one.to(dtype) for one in results)


@BOTH
@pytest.mark.parametrize("sizes", [(2, 2, 70, 77, 32), (2, 2, 1, 80, 16), (2, 2, 80, 1, 16)])
def test_a_kernel_that_rounds_both_factors_and_nothing_else_stays_below_the_bound(dtype, sizes):
    """With one query dv and dk are sums of one term, of which two roundings may be all of the error: 2 of 2.5 u."""
    for seed in range(5):
        inputs = inputs_of(MODULE.normals(*sizes), dtype, seed)
        assert max(largest_errors(inputs, with_rounded_factors(inputs))) <= 0.8


def test_the_bound_is_made_of_its_terms():
    """With equal scores P is 1 / N; with one query, do of ones and v of one size, dS is 1 and -1, and o is 0."""
    N, D, u, u32 = 8, 16, UNIT_ROUNDOFF[torch.bfloat16], 2.0**-24
    signs = torch.tensor([0.5, -0.5] * (N // 2))[:, None].expand(N, D)
    q, k, v, o, do = (
        torch.as_tensor(one, dtype=torch.float64).expand(1, 1, -1, D)
        for one in (torch.zeros(1, D), torch.ones(N, D), signs, torch.zeros(1, D), torch.ones(1, D))
    )
    inputs = [q, k, v, o, torch.full((1, 1, 1), N, dtype=torch.float64).log(), do]
    dq, dk, dv = MODULE.exercise.expected(inputs)
    ds, of_p = D * 0.5 / N, (16 + 2 * torch.log(torch.tensor(8.0, dtype=torch.float64)).item()) * u32
    allowed = {name: tolerance(bound, inputs, ref, torch.bfloat16)[0, 0, 0, 0].item()
               for (name, bound), ref in zip(BOUNDS.items(), (dq, dk, dv))}  # fmt: skip
    assert float(dv[0, 0, 0, 0]) == pytest.approx(1 / N) and abs(float(dq[0, 0, 0, 0])) < 1e-12 and not dk.any()
    assert allowed["dv"] == pytest.approx((1.25 * u + 1.25 * u + 2 * of_p) / N, rel=1e-6)
    of_ds = of_p * ds + (4 + D / 8) * u32 * D * 0.5 / N
    assert allowed["dq"] == pytest.approx(0.25 * N * (1.25 * u * ds + 2 * of_ds), rel=1e-6)
    assert allowed["dk"] < 1e-30  # q is 0
    terms = [size_of_terms(bound, inputs, ref)[0, 0, 0, 0].item() for bound, ref in zip(BOUNDS.values(), (dq, dk, dv))]
    assert terms == pytest.approx([0.25 * N * ds, 0, 1 / N])


def test_what_fp16_loses_of_small_factors_is_paid_for():
    """P of most keys is below the normal numbers of fp16: dv is made of numbers with few digits."""
    q, k, v, do = (normal(1, 1, tokens, 32) for tokens in (33, 77, 77, 33))
    inputs = inputs_of(MODULE.call(q * 3, k * 3, v, do))
    assert max(largest_errors(inputs, with_rounded_factors(inputs))) <= 0.8
    given = exact(inputs)
    ref = MODULE.exercise.expected(given)[2]
    less = 1.25 * 2.0**-11 * (ref.abs() + size_of_terms(BOUNDS["dv"], given, ref))
    assert float(((with_rounded_factors(inputs)[2].double() - ref).abs() / less).max()) > 1


def test_what_is_flushed_to_0_in_fp32_is_paid_for():
    """bf16 holds numbers as small as fp32 does: where P is below the normal numbers, nothing else is in dk and dv."""
    sizes = 1, 1, 1, 4, 16
    q, k, v, o, do = (torch.ones(1, 1, tokens, 16, dtype=torch.float64) for tokens in (1, 4, 4, 1, 1))
    inputs = [one.bfloat16() for one in (q, k, v * 3, o, do * 100)]
    inputs.insert(4, torch.full(sizes[:3], 92.0))  # the scores are 4: P is exp(-88), 6e-39
    pairs = MODULE.Pairs(*exact(inputs))
    assert 0 < float(pairs.p.max()) < 2.0**-126
    nothing = tuple(torch.zeros_like(one, dtype=torch.bfloat16) for one in of(pairs, pairs.p, pairs.ds))
    refs = MODULE.exercise.expected(exact(inputs))
    assert all(float(ref.abs().min()) > 1.5 * FLUSHED for ref in refs)  # so that bounds of the results do not pay
    assert max(largest_errors(inputs, nothing)) <= 1


def test_heads_are_taken_a_few_at_a_time(monkeypatch):
    given = exact(inputs_of(MODULE.normals(3, 5, 7, 9, 16)))
    refs = MODULE.exercise.expected(given)
    allowed = [tolerance(bound, given, ref, torch.float16) for bound, ref in zip(BOUNDS.values(), refs)]
    monkeypatch.setattr(rounding_models, "MOST_SCORES", 2 * 7 * 9)
    for one, bound, ref in zip(allowed, BOUNDS.values(), refs):
        assert torch.allclose(tolerance(bound, given, ref, torch.float16), one, rtol=1e-12)


# ---- what is said of wrong kernels -----------------------------------------------------------------------------------


def judged(bench, text: str, data: tuple[Data, ...], **options) -> Verdict:
    return bench(text, ID).check(*data, **{**SMALL, **options})


def test_one_result_after_the_other_may_be_asked_for(bench):
    """With dv alone asked for, neither delta nor the loop over keys need be there."""
    stores = re.findall(
        r"    tl\.store\((?:dk|delta)_ptr.*\n|        (?:delta|ds|dk) = tl\.(?:load|dot)\(.*\n", SOLUTION
    )
    half = SOLUTION
    for line in stores:
        half = half.replace(line, "")
    half = re.sub(r"        ds = p \* .*\n", "", half, count=1)
    half = re.sub(r"    attention_dq_kernel\[.*?# fmt: skip\n", "", half, flags=re.DOTALL)
    half = re.sub(r"    attention_delta_kernel\[.*\n", "", half)
    data = MODULE.normals(1, 2, 64, 32, 16)
    assert judged(bench, half, data, bound=MODULE.DV_ALONE).outcome == PASS
    verdict = judged(bench, half, data, bound=MODULE.DK_AND_DV)
    assert verdict.outcome == FAIL and verdict.id == "unwritten" and "dk" in verdict.lines[0]


@pytest.mark.parametrize("name", ["dq", "dk", "dv"])
def test_each_sum_in_fp16_shows_in_its_own_case(bench, name):
    calls: list = []
    case = getattr(MODULE, f"test_sums_of_{name}_that_cancel_are_exact")
    case(lambda *data, **options: calls.append((data, options)))
    ((data, options),) = calls
    few_tiles = dict(BLOCK_N=128) if name == "dq" else dict(BLOCK_M=128)  # a loop that ends after one is a mistake too
    verdict = judged(bench, mutant(f"{ID}/acc_of_{name}_in_fp16"), data, **{**options, **few_tiles})
    assert verdict.id == "half-accumulator" and verdict.lines[0].startswith(
        f"{name} is rounded to fp16 in every iteration"
    )


def test_what_normal_data_hide_shows_far_from_zero(bench):
    q, k, v, do = (normal(1, 1, tokens, 32) for tokens in (33, 77, 77, 33))
    large, biased = MODULE.call(q * 4, k * 4, v, do), MODULE.call(q, k, v + 4, do + 3)
    for name in ("delta_in_fp16", "dp_in_fp16", "delta_from_rounded_products", "scale_on_k"):
        assert any(judged(bench, mutant(f"{ID}/{name}"), data).id == "rounded-too-early" for data in (biased, large)), (
            name
        )


def test_keys_past_the_end_show_where_scores_lie_far_below_zero(bench):
    text, around = mutant(f"{ID}/padding_counted"), MODULE.around
    assert judged(bench, text, MODULE.normals(1, 1, 33, 45, 32)).outcome == PASS
    far = partial(around, 8), partial(around, -8)
    data = MODULE.call(far[0](1, 1, 33, 32), far[1](1, 1, 45, 32), normal(1, 1, 45, 32), normal(1, 1, 33, 32))
    verdict = judged(bench, text, data)
    assert verdict.id == "padding-counted" and verdict.lines[0].startswith("dq is NaN where scores lie far below 0.")


def test_a_loop_that_ends_with_the_others_is_told_from_one_that_ends_too_early(bench):
    data = MODULE.normals(1, 1, 100, 33, 16)
    with_keys = judged(bench, mutant(f"{ID}/ends_with_the_keys"), data)
    assert "the loop ends with the keys, of which there are 33" in with_keys.lines[0]
    first = judged(bench, mutant(f"{ID}/first_tile_of_queries"), data)
    assert re.match(r"Only the first 32 of 100 queries reach d[kv]: the loop or a mask leaves the", first.lines[0])


def test_equal_blocks_hide_a_tile_that_is_not_turned_and_values_show_it(bench):
    data = MODULE.normals(1, 1, 64, 32, 16)
    for name, said in (("p_not_turned", "P is not turned for dv"), ("ds_not_turned", "dS is not turned for dk")):
        verdict = judged(bench, mutant(f"{ID}/{name}"), data)
        assert verdict.id == "not-turned" and verdict.lines[0].startswith(said)


# ---- data made from other data ---------------------------------------------------------------------------------------


def test_o_and_lse_are_those_of_the_forward_pass():
    q, k, v, o, lse, _ = inputs_of(MODULE.normals(1, 2, 9, 13, 16), "bfloat16")
    s = q.double() @ k.double().mT / 4
    assert o.dtype == torch.bfloat16 and torch.equal(o, (torch.softmax(s, -1) @ v.double()).to(o.dtype))
    assert lse.dtype == torch.float32 and torch.equal(lse, torch.logsumexp(s, -1).float())


def test_data_may_be_made_from_what_they_draw_themselves_in_any_layout():
    data = list(MODULE.normals(1, 2, 9, 13, 16))
    plain = inputs_of(tuple(data))
    data[1] = made(lambda q, k: k.abs() + q.amax(), data[1].every_second())
    q, k, *_ = inputs_of(tuple(data))
    assert torch.equal(q, plain[0]) and not k.is_contiguous()
    assert torch.equal(k, (plain[1].double().abs() + plain[0].double().amax()).half())
    assert "from q, k" in data[1].label


# ---- the lesson ------------------------------------------------------------------------------------------------------


def test_the_algorithm_of_the_lesson_gives_what_the_reference_gives(capsys):
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", (FOLDER.path / "README.md").read_text(), re.DOTALL)
               if "def backward_by_tiles" in block)  # fmt: skip
    names: dict = {}
    exec(code, names)
    assert capsys.readouterr().out
    given = exact(inputs_of(MODULE.normals(1, 1, 6, 10, 16)))
    found = names["backward_by_tiles"](*(one[0, 0] for one in given))
    for mine, right in zip(found, MODULE.exercise.expected(given)):
        assert torch.allclose(mine, right[0, 0], rtol=1e-10, atol=1e-13)
