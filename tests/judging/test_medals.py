"""A kernel that passed its gate gets a medal: its speed next to the shipped solution's, timed in the same run."""

from __future__ import annotations

import itertools
from collections import Counter
from types import SimpleNamespace

import pytest

from grader.explain.medal_words import BRONZE, GOLD, SILVER, Medal, better_medal, lowest_medal, told_medal
from grader.explain.verdict import FAIL, PASS
from grader.gpu.answers import ANCHOR, KERNEL, Measurement, Round
from grader.gpu.pool.replay_process import ReplayEnded
from grader.judging import speed_samples
from grader.judging.gate_here import Gate
from grader.judging.medals import MOST_SAMPLES, medal_of
from grader.numerics.data_sets import normal
from tests.conftest import ROOT

SOLUTION = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
OTHER = SOLUTION.replace("num_warps=8", "num_warps=4")
assert OTHER != SOLUTION
GATE = Gate(0.4)


@pytest.mark.parametrize(
    "of_solution, medal",
    [(1.2, GOLD), (1.0, GOLD), (0.97, GOLD), (0.93, SILVER), (0.9, SILVER), (0.85, BRONZE), (0.4, BRONZE)],
)
def test_five_quiet_samples_decide(of_solution, medal):
    assert medal_of([0.8 * of_solution] * MOST_SAMPLES, [0.8] * MOST_SAMPLES) == medal


def test_two_samples_decide_where_nothing_is_close():
    assert medal_of([0.5, 0.5], [0.4, 0.4]) == GOLD
    assert medal_of([0.2, 0.2], [0.4, 0.4]) == BRONZE
    assert medal_of([0.4, 0.4], [0.4, 0.4]) == ""  # a third may tell


def test_noise_gives_the_lower_medal():
    noisy = [0.80, 0.70, 0.86, 0.74, 0.82]
    assert medal_of(noisy, [0.8] * MOST_SAMPLES) == BRONZE


@pytest.fixture
def measured(bench, monkeypatch):
    """measured(source, yours, theirs): the verdict on these shares of the anchor, and samples drawn of each kernel.

    A share that is a text is that of a sample whose result is wrong; an exception is raised.
    """

    def measured(source: str, yours, theirs=0.8, gate=GATE, **of_run):
        found = bench(source)
        found.run.replays = SimpleNamespace(device=SimpleNamespace(is_impossible=lambda **rates: False))
        vars(found.run).update(of_run)
        trial = found.judge.trial("test_speed", (normal(4096), normal(4096)), "float32")
        recording = found.run.launch_plan(trial, ("ptx", "ttgir"))
        drawn = Counter()

        def samples(run, *_):
            name, shares = ("yours", yours) if run is found.run else ("solution", theirs)
            for share in shares if isinstance(shares, list) else itertools.repeat(shares):
                drawn[name] += 1
                if isinstance(share, Exception):
                    raise share
                wrong, share = (share, 1.0) if isinstance(share, str) else ("", share)
                yield Measurement([Round({KERNEL: 1.0, ANCHOR: share})] * 7, bytes=1, wrong=wrong)

        monkeypatch.setattr(speed_samples, "samples_of", samples)
        asked = found.run, trial, recording, "copy", gate
        return speed_samples.speed_verdict(*asked, medals=True), drawn

    return measured


def test_a_kernel_as_fast_as_the_solution_wins_gold(measured):
    verdict, drawn = measured(OTHER, 0.8)
    assert verdict.outcome == PASS and verdict.note.endswith("; gold, 1.00 of the solution's speed")
    assert (verdict.figures["medal"], verdict.figures["of_solution"]) == (3, 1.0)
    assert drawn == {"yours": MOST_SAMPLES, "solution": MOST_SAMPLES}


def test_a_kernel_of_half_that_speed_keeps_bronze_after_two_samples(measured):
    verdict, drawn = measured(OTHER, 0.5)
    assert verdict.note.endswith("; bronze, 0.62 of the solution's speed") and drawn["solution"] == 2


def test_the_solution_itself_is_gold_without_a_sample_more(measured):
    verdict, drawn = measured(SOLUTION, 0.8)
    assert verdict.figures["medal"] == 3 and drawn == {"yours": 2}


def test_too_slow_for_the_gate_is_no_medal(measured):
    verdict, drawn = measured(OTHER, 0.2)
    assert verdict.outcome == FAIL and "medal" not in verdict.figures and "solution" not in drawn


def test_a_submission_of_our_own_is_not_compared(measured):
    verdict, drawn = measured(OTHER, 0.8, trusted=True)
    assert verdict.outcome == PASS and "medal" not in verdict.figures and "solution" not in drawn


def test_a_wrong_result_in_a_later_sample_is_no_pass(measured):
    verdict, _ = measured(OTHER, [0.8, 0.8, "a timed call gave a wrong result"])
    assert verdict.outcome == FAIL and verdict.id == "wrong-while-timed"


def test_a_kernel_that_ends_its_process_in_a_later_sample_is_no_pass(measured):
    verdict, _ = measured(OTHER, [0.8, 0.8, ReplayEnded("time", "")])
    assert verdict.outcome == FAIL


@pytest.mark.parametrize("theirs", [["a timed call gave a wrong result"], [ReplayEnded("died", "it fell")], []])
def test_a_solution_that_cannot_be_timed_takes_nothing_away(measured, theirs):
    verdict, _ = measured(OTHER, 0.8, theirs)
    assert verdict.outcome == PASS and "medal" not in verdict.figures


def test_an_exercise_has_the_lowest_medal_of_its_tests():
    assert lowest_medal([{}, Medal(GOLD, 1.0).figures, Medal(SILVER, 0.92).figures]) == SILVER
    assert lowest_medal([{}, {"share": 0.8}]) == ""


@pytest.mark.parametrize("number", [0, 4, -1, 1.5, "gold", None])
def test_a_number_of_no_medal_is_refused(number):
    for reads in (Medal.from_figures, lambda figures: lowest_medal([figures])):
        with pytest.raises(ValueError):
            reads({"medal": number, "of_solution": 0.95})


def test_the_better_medal_is_kept():
    assert better_medal("", BRONZE) == BRONZE and better_medal(GOLD, SILVER) == GOLD and better_medal("", "") == ""


def test_a_medal_is_told_with_what_the_next_asks_for():
    assert told_medal(BRONZE, 0.624) == (
        "Speed: bronze. Your kernel has 0.62 of the speed of the shipped solution; silver asks for 0.90."
    )
    assert "gold asks for 0.97" in told_medal(SILVER, 0.93) and "asks" not in told_medal(GOLD, 0.99)
    assert told_medal(GOLD, 0.958).startswith("Speed: gold. Your kernel has 0.96 of the speed of the shipped solution")
