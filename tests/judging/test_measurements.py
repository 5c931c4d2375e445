"""A function that measures is judged on simulated GPUs: right ones pass, and of wrong ones the reason is told."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

import pytest

from grader import Exercise
from grader.author.facts import fact_of
from grader.course.folder import Folder
from grader.explain.causes import Cause
from grader.explain.verdict import FAIL, PASS, SKIPPED, Verdict
from grader.judging.judge import Judge
from grader.judging.measurements import drawn_measurement
from grader.judging.run import Run
from grader.judging.uses import MeasuresUse
from grader.places import COURSE

EXERCISE = Exercise.that_measures("seconds_of", minutes=40, presumes=())
SOLUTION = COURSE / "solutions" / "42_measure_it" / "measure_it.py"


@pytest.fixture
def judged(tmp_path) -> Iterator[Callable[..., Judge]]:
    runs: list[Run] = []

    def judged(text: str, seed: int = 1) -> Judge:
        folder = tmp_path / "exercises" / "90_entry"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "entry.py").write_text(textwrap.dedent(text))
        runs.append(Run(Folder(folder), str(folder / "entry.py"), seed))
        return Judge(EXERCISE, runs[-1])

    yield judged
    for run in runs:
        run.end()


def of(judge: Judge, *seconds: float, devices: int = 1, test: str = "test_it") -> Verdict:
    return MeasuresUse(test, seconds, devices=devices).verdict(judge)


def told(verdict: Verdict) -> str:
    return " ".join(verdict.lines)


def test_the_solution_is_right_on_ten_seeds(judged):
    for seed in range(10):
        verdict = of(judged(SOLUTION.read_text(), seed), 3e-6, 30e-3, devices=4)
        assert verdict.outcome == PASS, (seed, told(verdict))
        assert verdict.figures["largest_error"] < 0.85


def test_a_run_with_the_same_seed_asks_for_the_same(judged):
    first, again, other = (judged("", seed).run for seed in (1, 1, 2))
    drawn = [drawn_measurement(run, "test_it", 0, 3e-6, 30e-3) for run in (first, again, other)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert 3e-6 <= drawn[2].seconds <= 30e-3
    assert drawn_measurement(first, "test_it", 0, 1e-3).seconds == 1e-3


def test_of_several_parts_the_one_that_misleads_most_is_told_first(judged):
    once = """
    def seconds_of(run, device):
        {before}
        began = device.now()
        run()
        {after}
        return device.now() - began
    """
    naive = of(judged(once.format(before="", after="")), 30e-3)
    assert naive.id == Cause.COMPILATION_TIMED
    assert "The same function is right on the same GPU if nothing has to be compiled, " in told(naive)
    assert "each launch waits for its end" in told(naive)
    compiled = of(judged(once.format(before="run()", after="")), 30e-3)
    assert compiled.id == Cause.NO_SYNCHRONIZE and "was read 1 time while the GPU was still at work" in told(compiled)
    for seed in range(4):
        before, after = "run(); run.draw_inputs(); device.flush_cache()", "device.synchronize()"
        cold = of(judged(once.format(before=before + "; device.synchronize()", after=after), seed), 1.2e-3)
        # In one of these the one launch was disturbed; the host's time for a launch is 1 % of it.
        assert cold.id in (Cause.CLOCK_NOT_STEADY, Cause.TOO_FEW_ROUNDS), told(cold)


def test_a_warm_up_that_looks_at_the_clock_after_each_launch_is_no_mistake(judged):
    text = """
    import statistics

    def seconds_of(run, device):
        run.draw_inputs()
        run()
        began = device.now()
        while device.now() - began < 0.5:
            run()
            device.synchronize()
        events = []
        for _ in range(200):
            device.flush_cache()
            device.sleep(500_000)
            events.append((device.record(), run(), device.record()))
        device.synchronize()
        return statistics.median(device.elapsed(start, end) for start, _, end in events)
    """
    assert of(judged(text), 3e-6).outcome == PASS


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ('"3 ms"', "returns str: the seconds of one launch were expected, a float"),
        ("None", "returns NoneType"),
        ("True", "returns bool"),
        ('float("nan")', "returns nan: the seconds of one launch were expected, a finite float above 0"),
        ("-float('inf')", "returns -inf"),
        ("10**400", "returns int"),
        ("0", "returns 0"),
        ("-1e-3", "returns -0.001"),
    ],
)
def test_an_answer_that_is_no_time_is_told(judged, returned, says):
    verdict = of(judged(f"def seconds_of(run, device):\n    return {returned}\n"), 1e-3)
    assert verdict.id == Cause.WRONG_RESULT_TYPE and says in told(verdict)


def test_an_answer_without_a_launch_or_a_look_at_a_clock_is_none(judged):
    constant = of(judged("def seconds_of(run, device):\n    return 1e-3\n"), 1e-3)
    assert constant.id == Cause.NOT_MEASURED and "never called run()" in told(constant)
    python = """
    import time

    def seconds_of(run, device):
        began = time.perf_counter()
        run()
        device.synchronize()
        return time.perf_counter() - began
    """
    verdict = of(judged(python), 1e-3)
    assert verdict.id == Cause.NOT_MEASURED and "Python's own clocks tell nothing of this GPU" in told(verdict)


@pytest.mark.parametrize(
    ("body", "cause", "says"),
    [
        ("while True:\n        run()", Cause.ENDLESS_MEASUREMENT, "Choose the number of rounds by the time"),
        ("while True:\n        device.now()", Cause.ENDLESS_MEASUREMENT, "looks at the clock"),
        ("device.sleep(1 << 40)\n    device.synchronize()\n    run()", Cause.ENDLESS_MEASUREMENT, "a real GPU would"),
        ("while True:\n        pass", Cause.TIME_LIMIT, "seconds_of was stopped after 4 s"),
        ("import time\n    time.sleep(600)", Cause.TIME_LIMIT, "seconds_of was stopped after 4 s"),
        ("import os\n    os._exit(3)", Cause.PROCESS_EXIT, "ended its process (exit status 3)"),
        ("run(1)", "host", "raises TypeError in line 3"),
        ("device.sleep(0.5)", "host", "sleep takes a whole number of cycles"),
        ("device.elapsed(1, 2)", "host", "elapsed takes two events"),
    ],
)
def test_what_comes_to_no_answer_is_told_and_nothing_is_lost(judged, body, cause, says):
    judge = judged(f"def seconds_of(run, device):\n    # begins\n    {body}\n")
    verdict = of(judge, 1e-3)
    assert (verdict.outcome, verdict.id) == (FAIL, cause) and says in told(verdict)
    following = of(judge, 1e-3, test="test_another")
    waits = cause in (Cause.ENDLESS_MEASUREMENT, Cause.TIME_LIMIT, Cause.PROCESS_EXIT)
    assert following.outcome == (SKIPPED if waits else FAIL)


def test_a_file_that_cannot_be_imported_is_told(judged):
    verdict = of(judged("import statistic\n"), 1e-3)
    assert verdict.kind == "file" and "No module named 'statistic'" in told(verdict)
    assert of(judged("def seconds(run, device):\n    return 1.0\n"), 1e-3).id == Cause.NO_ENTRY


@pytest.mark.parametrize(
    "message",
    [
        '{"kind": "calls"}, b"12345"',  # no whole number of calls
        '{"kind": "calls"}, bytes([99] + [0] * 16)',  # a call that there is not
        '{"kind": "calls"}, bytes([5] + [1] + [0] * 15)',  # an event that nobody recorded
        '{"kind": "passed"}, b""',
        '{"kind": "measured", "seconds": "1"}, b""',
        '{"kind": "measured", "seconds": True}, b""',
    ],
)
def test_a_forged_message_is_refused(judged, message):
    text = f"""
    def seconds_of(run, device):
        run()
        device._ask({message})
        return 1.0
    """
    assert of(judged(text), 1e-3).id == Cause.GARBLED


def test_a_part_is_told_only_where_the_function_is_right_without_it(judged):
    """Two mistakes: each is named, and what the function does besides is right."""
    text = SOLUTION.read_text()
    for left_out in ("    run.draw_inputs()\n", "        device.flush_cache()\n"):
        assert text.count(left_out) == 1
        text = text.replace(left_out, "")
    verdict = of(judged(text), 5e-6)
    assert verdict.id == Cause.WARM_CACHE
    assert "if nothing stays in the cache and zeros take as long as other numbers" in told(verdict)


def test_a_function_that_is_wrong_on_any_gpu_is_told_so(judged):
    text = SOLUTION.read_text().replace("return statistics.median(rounds", "return 1e3 * statistics.median(rounds")
    verdict = of(judged(text), 1e-3)
    assert verdict.id == Cause.WRONG_TIME and "Are these the seconds of one launch?" in told(verdict)


ROUNDS = "rounds = min(max(60, round(0.3 / estimate)), 400)"


def failures_of(judged, text: str, *seconds: float, count: int) -> list[str]:
    """What is told of this text in those of so many measurements that it gets wrong."""
    judge, found = judged(text), []
    for number in range(count):
        judge.run.history.explained = 0
        verdict = of(judge, *seconds, test=f"test_{number}")
        found += [told(verdict)] if verdict.outcome == FAIL else []
    return found


def test_a_median_of_few_rounds_is_never_told_to_be_no_median(judged):
    text = SOLUTION.read_text()
    assert text.count(ROUNDS) == 1
    found = failures_of(judged, text.replace(ROUNDS, "rounds = 20"), 3e-6, 10e-6, count=40)
    assert any("these were too few" in one for one in found)
    assert not any("is not their middle" in one or "moves a mean" in one for one in found)


def test_a_median_of_means_is_told_by_the_launches_of_a_round(judged):
    text = SOLUTION.read_text()
    for old, new in (
        ("        run()\n        events", "        for _ in range(60):\n            run()\n        events"),
        ("device.elapsed(start, end) for", "device.elapsed(start, end) / 60 for"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    found = failures_of(judged, text, 5e-3, count=2)
    assert len(found) == 2 and all("rounds with 60 launches between two marks" in one for one in found), found


LESSON = COURSE / "exercises" / "42_measure_it"
OPENING = (  # the mistakes behind the rows of the lesson's first table, in their order
    "launch_timed", "host_timed", "synchronized_rounds", "warm_cache", "zeros", "mean", "least_of_the_rounds",
)  # fmt: skip
ITS_GPU = {"launch": 20e-6, "synchronization": 8e-6, "saved_share": 0.5, "disturbed": 0.05}


def test_the_functions_of_the_lessons_first_table_answer_what_it_says():
    rows = re.findall(r"^\| .* \| (\d+) µs \| (\d\.\d+) ms \|$", (LESSON / "README.md").read_text(), re.MULTILINE)

    def answer(mistake: str, seconds: float) -> float:
        return fact_of(Folder(LESSON), {"fact": "answer", "seconds": seconds, "mutant": mistake, "gpu": ITS_GPU})

    assert rows == [(f"{answer(one, 30e-6):.0f}", f"{answer(one, 1e-3) / 1000:.2f}") for one in OPENING]
