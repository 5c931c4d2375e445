"""The trials of a promise: what a file's text does to the search for calls toward its branches decides no verdict."""

from __future__ import annotations

import pytest

from grader.course.folder import Folder, load_test_file
from grader.course.large_calls import is_sampled
from grader.explain.verdict import NOT_RUN, SKIPPED, Verdict
from grader.judging import drawn_trials
from grader.judging.drawn_trials import DrawnTrials
from grader.judging.in_samples import TOO_LONG
from grader.judging.uses import DrawnUse, uses_asked
from grader.submission import branches
from tests.conftest import ROOT

FOLDER = Folder(ROOT / "exercises/01_masked_add")
STORE = "    tl.store(z_ptr + offsets, x + y, mask=mask)"
WITH_A_BRANCH = FOLDER.solution_file.read_text().replace(STORE, f"    if N % 1009 == 77:\n        x = y\n{STORE}")


@pytest.fixture
def trials(bench) -> DrawnTrials:
    module = load_test_file(FOLDER)
    (use,) = uses_asked(module, DrawnUse)
    return DrawnTrials(module.exercise, bench(WITH_A_BRANCH).run, use.test, use.promise(module.exercise))


def test_the_calls_that_are_recorded_ahead_and_those_that_are_judged_are_drawn_once(bench):
    judge, module = bench(WITH_A_BRANCH).judge, load_test_file(FOLDER)
    ahead, judged = (uses_asked(module, DrawnUse)[0].drawn_trials(judge) for _ in range(2))
    assert ahead is judged
    others = DrawnUse.of(ahead.name, **uses_asked(module, DrawnUse)[0].options | {"dtypes": ("float16",)})
    assert others.drawn_trials(judge).promise.dtypes != judged.promise.dtypes


def no_search(*arguments: object) -> None:
    raise AttributeError("an expression that nobody has thought of")


def test_calls_toward_branches_follow_the_drawn_calls(trials):
    *drawn, last = trials.calls
    assert last.sizes["N"] % 1009 == 77 and all(call.sizes["N"] % 1009 != 77 for call in drawn[:-2])
    assert [call.number for call in trials.calls] == list(range(1, len(trials.calls) + 1))


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [(branches, "MOST_READ", 0), (drawn_trials, "calls_toward", no_search), (drawn_trials, "branches_of", no_search)],
    ids=["it reads too much", "it fails", "it fails at once"],
)
def test_where_the_search_fails_the_other_calls_are_judged(trials, monkeypatch, module, name, value):
    monkeypatch.setattr(module, name, value)
    calls = trials.calls
    assert len(calls) > 25 and all(call.sizes["N"] % 1009 != 77 for call in calls)


def test_a_sample_that_takes_too_long_in_the_blocks_of_the_file_is_run_in_those_of_the_test(bench, monkeypatch):
    folder = Folder(ROOT / "exercises/05_grouped_matmul")
    module = load_test_file(folder)
    use, *_ = uses_asked(module, DrawnUse)
    judge = bench(folder.solution_file.read_text(), folder.id).judge
    promise, told = use.promise(module.exercise), []
    trials = DrawnTrials(module.exercise, judge.run, use.test, promise)

    def sample(_, trial):
        told.append(trial.constants)
        return Verdict(SKIPPED, NOT_RUN, note="right" if trial.constants else TOO_LONG)

    monkeypatch.setattr(drawn_trials, "_sample", sample)
    call = next(call for call in trials.large(0) if is_sampled(promise, call) and not call.constants)
    assert drawn_trials._large(judge, trials, call).note == "right" and told == [{}, promise.blocks[0]]
