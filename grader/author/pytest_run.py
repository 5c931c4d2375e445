"""Judges a submission with the command that a learner uses, in this process."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path

import pytest

from grader.author.proof import Outcome, Proof, Way, is_found, outcome_of
from grader.explain.verdict import PASS
from grader.session.plugin import NAME


class UpToTheFinding:
    """A pytest plugin that ends pytest as soon as the submission is rejected as expected."""

    _session: pytest.Session  # once it has started

    def __init__(self, proof: Proof) -> None:
        self._proof = proof

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            course = self._session.config.pluginmanager.get_plugin(NAME)
            diagnosis = next(iter(course.gradings.values())).diagnosis if course is not None else None
            if diagnosis is not None and is_found(self._proof, diagnosis.shown):
                self._session.shouldfail = "the finding is there"  # shouldstop draws a traceback, which takes time


def outcome(proof: Proof, submission: Path, way: Way) -> Outcome:
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        file = Path(folder) / "result.json"
        arguments = [str(proof.exercise), "--submission", str(submission), "--result", str(file)]
        arguments += [] if way.seed is None else ["--seed", str(way.seed)]
        status = pytest.main(arguments, plugins=[] if way.whole else [UpToTheFinding(proof)])
        if not file.exists():
            return Outcome(proof, f"pytest gave no result: {printed.getvalue().strip()[-300:]}")
        found = outcome_of(proof, json.loads(file.read_text()))
    if not found.complaint and (status == pytest.ExitCode.OK) != (found.found == PASS):
        found.complaint = f"pytest's exit status {int(status)} does not fit the outcome {found.found}"
    return found
