"""Calls are recorded in an order that the seed draws, each twice: what is kept between them shows, and is named."""

from __future__ import annotations

import random

import pytest

from grader import normal
from grader.explain.verdict import FAIL, PASS
from grader.judging.work_ahead import EARLY, Foreseen, in_drawn_order
from tests.conftest import ROOT
from tests.slow import in_turn

SIZES = (5, 700, 1024, 3000, 5000)
SOLUTION = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()


def with_host(body: str) -> str:
    return SOLUTION.replace("    z = torch.empty_like(x)", f"    {body}\n    z = torch.empty_like(x)")


def recorded(bench, source: str, seed: int = 1):
    judged = bench(source, seed=seed)
    trials = [judged.judge.trial("test_a_case", (normal(size), normal(size)), "float32") for size in SIZES]
    judged.run.record_in_drawn_order([Foreseen(trial) for trial in trials])
    return judged


def order(bench, seed: int, body: str = "print(x.numel(), flush=True)") -> list[int]:
    judged = recorded(bench, with_host(body), seed)
    judged.run.process.end()
    return [int(line) for line in judged.run.process.printed.splitlines()]


def test_every_call_is_recorded_twice_with_the_others_between(bench):
    called = order(bench, 1)
    assert sorted(called[:5]) == sorted(called[5:]) == sorted(SIZES)


def test_the_seed_draws_both_orders_and_repeats_them(bench):
    orders = {seed: order(bench, seed) for seed in (1, 2, 3)}
    assert orders[1] == order(bench, 1)
    assert len({tuple(called) for called in orders.values()}) > 1
    assert any(called[:5] != called[5:] for called in orders.values())


def test_what_is_recorded_is_not_recorded_again_when_it_is_judged(bench):
    judged = recorded(bench, with_host("print(x.numel(), flush=True)"))
    assert judged.check(normal(700), normal(700), dtypes=("float32",)).outcome == PASS
    judged.run.process.end()
    assert judged.run.process.printed.splitlines().count("700") == 2


def test_what_is_asked_for_first_is_recorded_among_few_others_and_all_are_recorded_twice():
    calls = [Foreseen(number) for number in range(40)]
    rounds = [[one.trial for one in calls] for calls in in_drawn_order(calls, random.Random(1))]
    first, second, third, last = rounds
    assert len(first) == 2 * EARLY and set(range(EARLY)) < set(first) == set(second)
    assert set(third) == set(last) == set(range(40)) - set(first)
    assert all(calls != sorted(calls) for calls in rounds)
    assert rounds != [[one.trial for one in calls] for calls in in_drawn_order(calls, random.Random(2))]


@pytest.mark.parametrize("end", ["raise KeyError", "import os; os._exit(1)", "x + x"])
def test_nothing_is_recorded_ahead_behind_a_call_that_fails(bench, end):
    called = order(bench, 1, f"print(x.numel(), flush=True); {end}")
    assert len(called) == 1


def test_from_the_first_wrong_call_on_only_what_is_asked_for_anyway_is_recorded_ahead(bench):
    judged = bench(with_host("print(x.numel(), flush=True)").replace("x + y, mask", "x - y, mask"))
    trials = [judged.judge.trial("test_a_case", (normal(size), normal(size)), "float32") for size in SIZES]
    assert judged.check(normal(5), normal(5), dtypes=("float32",)).outcome == FAIL
    judged.run.process.end()
    before = judged.run.process.printed_bytes
    foreseen = [Foreseen(trial, if_right=trial is not trials[1]) for trial in trials]
    judged.run.record_in_drawn_order(foreseen)
    judged.run.process.end()
    assert judged.run.process.printed_bytes - before == len("700\n" * 2)


KEPT = {
    "a grid": (
        SOLUTION.replace("grid = (", 'grid = vars(torch).setdefault("kept", (').replace(
            "BLOCK_N),)  #", "BLOCK_N),))  #"
        ),
        "has the grid (",
    ),
    "a size": (
        with_host('N = vars(torch).setdefault("kept", x.numel())').replace("    N = x.numel()\n", ""),
        "launch in line",
    ),
    "a count": (
        SOLUTION.replace(
            "    masked_add_kernel[",
            '    torch.count = vars(torch).get("count", 0) + 1\n    if torch.count % 3 == 0:\n        return z\n'
            "    masked_add_kernel[",
        ),
        "it launches 0 kernels here, and 1 as the first call of a process.",
    ),
}


@pytest.mark.parametrize(
    "what, seed", [(what, seed) for place, what in enumerate(KEPT) for seed in in_turn([1, 2, 3], place)]
)
def test_what_is_kept_between_calls_is_named(bench, what, seed):
    source, sentence = KEPT[what]
    judged = recorded(bench, source, seed)
    verdicts = [judged.check(normal(size), normal(size), dtypes=("float32",)) for size in SIZES]
    told = [line for verdict in verdicts for line in verdict.lines if "does not do the same in every call" in line]
    assert FAIL in [verdict.outcome for verdict in verdicts] and told
    assert all(sentence in line for line in told)


def test_a_call_that_is_wrong_in_the_same_way_when_it_is_the_first_is_not_put_down_to_others(bench):
    judged = recorded(bench, SOLUTION.replace("x + y, mask", "x - y, mask"))
    verdict = judged.check(normal(700), normal(700))
    assert verdict.outcome == FAIL and "every call" not in " ".join(verdict.lines)


def test_a_kernel_that_was_compiled_in_a_call_with_other_block_sizes_is_the_same_kernel(bench):
    kernel = "@triton.jit\ndef touch_kernel(z_ptr):\n    tl.store(z_ptr, 0.0)\n\n\ndef masked_add"
    text = SOLUTION.replace("def masked_add(", f"{kernel}(", 1)
    text = text.replace("    N = x.numel()", "    touch_kernel[(1,)](z)\n    return z\n    N = x.numel()")
    judged = bench(text)
    trials = [judged.judge.trial("test_a_case", (normal(7), normal(7)), "float32", None, {"BLOCK_N": 64})]
    judged.run.record_in_drawn_order([Foreseen(trial) for trial in trials])
    verdict = judged.check(normal(7), normal(7))
    assert verdict.outcome == FAIL and "every call" not in " ".join(verdict.lines)


def test_a_round_begins_with_the_call_that_the_one_before_it_ended_with():
    for seed in range(5):
        rounds = in_drawn_order([Foreseen(number) for number in range(40)], random.Random(seed))
        assert rounds[0][-1] is rounds[1][0] and rounds[2][-1] is rounds[3][0]


LAST_KEPT = """\
    if last and last[0] is x and last[1] is y:
        return last[2]
    z = torch.empty_like(x)
    last[:] = x, y, z
"""


@pytest.mark.parametrize("seed", in_turn([1, 2, 3], 0))
def test_a_result_that_is_kept_for_the_same_tensors_is_found(bench, seed):
    source = SOLUTION.replace("    z = torch.empty_like(x)\n", LAST_KEPT).replace(
        "\n\n\n@triton.jit", "\nlast = []\n\n\n@triton.jit"
    )
    judged = recorded(bench, source, seed)
    verdicts = [judged.check(normal(size), normal(size), dtypes=("float32",)) for size in SIZES]
    wrong = [verdict for verdict in verdicts if verdict.outcome == FAIL]
    assert len(wrong) == 1 and "the result of an earlier call" in wrong[0].lines[0]
