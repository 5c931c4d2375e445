"""The rule that decides about speed: what it promises at the gate and beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from grader.judging.speed_rule import (
    FAST,
    GRACE,
    INCONCLUSIVE,
    MORE,
    SLOW,
    STAGES,
    decide,
    decide_again,
    distance_of,
    gate_between,
)  # fmt: skip


def outcome(samples) -> str:
    """What the rule says when it draws one sample after the other."""
    for count in range(2, len(samples) + 1):
        said = decide(list(samples[:count])).outcome
        if said != MORE:
            return said
    raise AssertionError("the last stage has to decide")


def outcomes(x: float, sigma: float, runs: int = 400) -> set[str]:
    generator = np.random.default_rng(7)
    return {outcome(x + generator.normal(0, sigma, STAGES[-1])) for _ in range(runs)}


def test_two_samples_are_enough_where_the_answer_is_clear():
    assert decide([-0.16, -0.12]).outcome == FAST and decide([0.2, 0.16]).outcome == SLOW


@pytest.mark.parametrize("samples", [[], [-0.5], [-0.16, -0.01], [0.16, 0.14], [0.2, -0.2]])
def test_anything_else_asks_for_more(samples):
    assert decide(samples).outcome == MORE


@pytest.mark.parametrize("sigma", [0.0005, 0.0089])
def test_a_kernel_at_its_gate_never_fails_on_a_quiet_gpu(sigma):
    assert SLOW not in outcomes(0.0, sigma)


@pytest.mark.parametrize("sigma", [0.0005, 0.0089])
def test_a_kernel_below_the_grace_never_passes(sigma):
    assert FAST not in outcomes(GRACE, sigma) | outcomes(0.06, sigma)


def test_the_solution_stands_far_enough_from_its_gate_for_a_noisy_gpu():
    share = 0.917
    x = distance_of(share, gate_between(share, 0.5))
    assert x <= -0.16 and outcomes(x, 0.03) == {FAST}


def test_a_gpu_that_is_too_noisy_gets_no_red_verdict():
    assert INCONCLUSIVE in outcomes(0.0, 0.05)


def test_one_burst_does_not_decide():
    quiet = [-0.05] * 5
    assert decide(quiet).outcome == FAST and decide([*quiet[:4], 0.3]).outcome == FAST


def test_no_gate_where_the_unwanted_version_is_too_good():
    assert gate_between(0.9, 0.7) is None
    assert gate_between(0.9, 0.6) == math.floor(100 * math.sqrt(0.9 * 0.6)) / 100
    assert gate_between(0.9, 0.2) == 0.42


def passed_at_last(x: float, sigma: float, goes_on: bool, kernels: int = 100, most: int = 20) -> int:
    """How many kernels at `x` pass in one of `most` runs, unchanged, each going on with its samples or begun anew."""
    generator, passed = np.random.default_rng(11), 0
    for _ in range(kernels):
        earlier: list[float] = []
        for _ in range(most):
            samples = [generator.normal(x, sigma)]
            while (said := decide_again(earlier, samples).outcome) == MORE:
                samples.append(generator.normal(x, sigma))
            passed += said == FAST
            if said == FAST:
                break
            earlier += samples if goes_on else []
    return passed


def test_running_it_again_is_no_new_draw():
    assert passed_at_last(GRACE, 0.0089, goes_on=True) == 0
    assert 0 < passed_at_last(GRACE, 0.03, goes_on=True) < passed_at_last(GRACE, 0.03, goes_on=False)


def test_a_kernel_that_failed_clearly_fails_again_after_two_samples():
    slow = [0.2, 0.2]
    assert decide(slow).outcome == SLOW
    assert [decide_again(slow, [0.2] * count).outcome for count in (1, 2)] == [MORE, SLOW]


def test_a_kernel_that_was_slow_beside_others_and_is_not_now_passes():
    disturbed, quiet = [0.3] * STAGES[-1], [-0.1] * STAGES[-1]
    outcomes = [decide_again(disturbed, quiet[:count]).outcome for count in range(1, STAGES[-1] + 1)]
    assert SLOW not in outcomes and outcomes.index(FAST) < 10


def test_a_gpu_that_is_quiet_by_now_is_believed():
    noisy = list(np.random.default_rng(3).normal(0.02, 0.1, STAGES[-1]))
    assert decide(noisy).outcome == INCONCLUSIVE
    quiet = [-0.1] * STAGES[-1]
    outcomes = [decide_again(noisy, quiet[:count]).outcome for count in range(1, STAGES[-1] + 1)]
    assert outcomes[0] == MORE and FAST in outcomes and SLOW not in outcomes


def test_a_gpu_that_stays_noisy_is_asked_no_longer_than_the_first_time():
    noisy = list(np.random.default_rng(3).normal(0.02, 0.1, 2 * STAGES[-1]))
    earlier, now = noisy[: STAGES[-1]], noisy[STAGES[-1] :]
    assert decide_again(earlier, now[:-1]).outcome == MORE and decide_again(earlier, now).outcome == INCONCLUSIVE
