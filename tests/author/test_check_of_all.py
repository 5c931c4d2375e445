"""`course check` without a number: which part of each exercise is proven, and by which worker."""

from __future__ import annotations

import re

import pytest

from grader.author import check, proving
from grader.author.check import Checked
from grader.author.choice import BY_OPERATORS_OF_EACH, STATED_OF_EACH, ProofChoice
from grader.author.proof import Outcome
from grader.course.folder import all_folders
from tests.author.conftest import AtOnce
from tests.conftest import ROOT
from tests.learn.conftest import Course


@pytest.fixture
def jobs(monkeypatch) -> list[list[str]]:
    """The exercises of the proofs that each job makes, none of which is really made."""
    given: list[list[str]] = []

    def run_all(chosen):
        given.append([one.exercise.name for one, _ in chosen])
        return [Outcome(one, "") for one, _ in chosen]

    monkeypatch.setattr(proving, "run_all", run_all)
    monkeypatch.setattr(check, "_complaints_of_code", lambda folder: [])
    monkeypatch.setattr(check, "ProcessPoolExecutor", AtOnce)
    return given


@pytest.mark.parametrize(("workers", "a_job_each"), [(2, False), (64, True)])
def test_one_worker_makes_all_proofs_of_an_exercise_where_there_are_many_for_each(jobs, workers, a_job_each):
    folders, lines, done = all_folders(ROOT), [], []
    checked = check.check(folders, workers, lines.append, lambda total: lambda: done.append(total), ProofChoice(seed=1))
    assert all(len(set(job)) == 1 for job in jobs)
    assert len(jobs) == (len(checked.outcomes) if a_job_each else len(folders))
    assert done == [len(checked.outcomes)] * len(checked.outcomes) and len(lines) == len(folders)


def test_a_part_of_the_mutants_of_each_is_proven(jobs):
    lines: list[str] = []
    check.check(all_folders(ROOT), 1, lines.append, lambda total: lambda: None, ProofChoice(seed=1, of_each=True))
    count = STATED_OF_EACH + BY_OPERATORS_OF_EACH
    proven = [re.search(r"mutants rejected with their sentence (\d+) of (\d+), ", line) for line in lines]
    assert all(one and one[1] == one[2] and int(one[2]) <= count for one in proven)
    assert len([one for one in proven if one and int(one[2]) == count]) >= len(proven) - 1  # 42 has no kernel to change


@pytest.mark.parametrize(
    ("options", "of_each"),
    [((), True), (("--seed", "61"), True), (("03",), False), (("--whole",), False), (("--first-tests",), False)],
)
def test_all_is_proven_of_a_named_exercise_and_where_that_is_asked_for(tmp_path, monkeypatch, options, of_each):
    choices: list[ProofChoice] = []

    def kept(folders, jobs, say, begin, choice):
        choices.append(choice)
        return Checked(0, [])

    monkeypatch.setattr(check, "check", kept)
    assert Course(tmp_path).here("check", *options).status == 0
    assert [choice.of_each for choice in choices] == [of_each]
