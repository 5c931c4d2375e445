"""Commands end each run that they have made, also when they refuse the submission."""

from __future__ import annotations

import json

import click
import pytest

from grader.judging.run import Run


@pytest.fixture
def runs(monkeypatch) -> tuple[list[Run], list[Run]]:
    """The runs that were made, and those that were ended."""
    made, ended = [], []
    make, end = Run.__init__, Run.end

    def making(run, *arguments, **options) -> None:
        made.append(run)
        make(run, *arguments, **options)

    def ending(run) -> None:
        ended.append(run)
        end(run)

    monkeypatch.setattr(Run, "__init__", making)
    monkeypatch.setattr(Run, "end", ending)
    return made, ended


@pytest.mark.parametrize("command", ["inspect", "programs", "trace"])
def test_the_run_of_a_refused_submission_is_ended(course, runs, command):
    done = course.here(command, "01")
    assert done.status == 1 and "are empty: there is nothing to show." in done.err
    made, ended = runs
    assert len(made) == 1 and ended == made


def test_the_run_of_a_call_that_cannot_be_judged_again_is_ended(course, runs, monkeypatch):
    def refuses(use, judge):
        raise click.ClickException("no")

    monkeypatch.setattr("grader.judging.uses.CheckUse.verdict", refuses)
    course.write("01_masked_add")
    failed = {"name": "test_the_size_is_a_prime", "outcome": "fail", "id": "oob-load"}
    (course.path / ".course/results").mkdir(parents=True)
    result = {"tests": [failed], "cause": "oob-load", "seed": 3}
    (course.path / ".course/results/01_masked_add.json").write_text(json.dumps(result))
    assert course.here("trace", "01").err == "Error: no\n"
    made, ended = runs
    assert len(made) == 2 and set(ended) == set(made)
