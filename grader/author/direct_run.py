"""Judges a submission with the fixtures and the session of pytest's plugin, without a run of pytest.

A run of pytest takes longer than most verdicts. So an exercise's tests are collected once in a process, and called
with the fixtures that the plugin would give them.
"""

from __future__ import annotations

import contextlib
import functools
import io
import math
import random
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.author import exact_proofs
from grader.author.first_tests import candidates
from grader.author.proof import Outcome, Proof, Way, is_found, outcome_of
from grader.course.folder import Folder
from grader.explain.verdict import INCOMPLETE
from grader.judging.uses import USES
from grader.processes import bubblewrap
from grader.processes.interpreter_process import Interpreter
from grader.session.grading import Grading
from grader.session.machine import Machine, machine_for
from grader.session.result_file import as_json
from grader.session.session import Session

SHARE_OF_DRAWN = 1 / 3  # for an accepted kernel: each run draws other calls, and the stated calls are judged as well


def outcome(proof: Proof, submission: Path, way: Way) -> Outcome:
    """Returns the outcome of the first tests if they reject a mutant; else of all tests in the order of their file."""
    tests = {test.name: test for test in tests_of(proof.exercise)}
    if way.first_tests and all(name in tests for name in way.first_tests):
        grading = _graded(proof, submission, way, [tests[name] for name in way.first_tests])
        if _tells_enough(proof, grading):
            return outcome_of(proof, as_json(grading))
    asked = _half(list(tests.values()), way.half)
    grading = _graded(proof, submission, way, asked)
    if len(asked) < len(tests) and grading.outcome == INCOMPLETE:  # the other half may tell which kernels it launches
        asked = list(tests.values())
        grading = _graded(proof, submission, way, asked)
    found = outcome_of(proof, as_json(grading))
    if proof.kind in ("solution", "accepted") and not found.complaint and grading.judge is not None:
        names = {test.name for test in asked}
        found.complaint = "; ".join(exact_proofs.complaints(grading.judge, asked[0].module, names))
    diagnosis = grading.diagnosis
    if diagnosis is not None:
        found.kind, found.line = diagnosis.shown.kind, diagnosis.shown.line
    if way.finds_first_tests and diagnosis is not None and _tells_enough(proof, grading):
        found.first_tests = _first_tests(proof, submission, grading, diagnosis.name, tests)
    return found


def _half(tests: list[pytest.Function], drawn_by: str) -> list[pytest.Function]:
    """Returns the half of the tests that this text draws, in their order; all tests for no text."""
    if not drawn_by:
        return tests
    drawn = random.Random(drawn_by).sample(range(len(tests)), math.ceil(len(tests) / 2))
    return [tests[number] for number in sorted(drawn)]


def _first_tests(
    proof: Proof, submission: Path, grading: Grading, failed: str, tests: dict[str, pytest.Function]
) -> tuple:
    """Returns the names of a few tests that reject the mutant with this run's data, and so with most others; or ()."""
    asked = tuple(test.name for test in grading.results)
    for names in candidates(list(tests), failed):
        if names == asked:
            return names
        again = _graded(proof, submission, Way(seed=grading.run.seed), [tests[name] for name in names])
        if _tells_enough(proof, again):
            return names
    return ()


def _tells_enough(proof: Proof, grading: Grading) -> bool:
    return grading.diagnosis is not None and is_found(proof, grading.diagnosis.shown)


def _graded(proof: Proof, submission: Path, way: Way, items: list[pytest.Function]) -> Grading:
    """Asks these tests in order, up to the finding unless the run is to be whole. Returns the grading."""
    session = _session(proof, submission, way)
    (grading,) = session.gradings.values()
    grading.tests, grading.started = len(items), time.monotonic()
    try:
        for item in items:
            session.keep_result(item, _error_of(session, item))
            if not way.whole and _tells_enough(proof, grading):
                break
    finally:
        grading.conclude()
        if way.whole:  # what a proof asks for is known, and a mend takes longer than most proofs
            grading.mend()
        grading.run.end()
    grading.seconds = time.monotonic() - grading.started
    return grading


def _session(proof: Proof, submission: Path, way: Way) -> Session:
    """Returns a session for this submission. Mutants alone are trusted: a cheat of another kind must be noticed."""
    option = SimpleNamespace(
        submission=str(submission), seed=way.seed, device="auto", target=None, hidden=None, result=None, thorough=False
    )
    return Session(
        SimpleNamespace(option=option),
        [Folder(proof.exercise)],
        _machine(),
        interpreter=interpreter(),
        trusted=proof.kind == "mutant",
        share_of_drawn=SHARE_OF_DRAWN if proof.kind == "accepted" and not way.all_drawn else 1.0,
    )


def _error_of(session: Session, item: pytest.Function) -> BaseException | None:
    """Calls a test. Returns the exception that ended it, which pytest would turn into its outcome; None without."""
    try:
        asked = {name: kind for name, kind in USES.items() if name in item.fixturenames}
        item.obj(**{name: functools.partial(session.settle, item, kind) for name, kind in asked.items()})
    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
        return error
    return None


@functools.cache
def tests_of(exercise: Path) -> list[pytest.Function]:
    """Returns the tests of an exercise as pytest collects them, once in this process."""
    collected = _Collected()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        pytest.main([str(exercise), "--collect-only"], plugins=[collected])
    if not collected.items:
        raise RuntimeError(f"pytest finds no tests in {exercise}: {printed.getvalue().strip()[-300:]}")
    return collected.items


class _Collected:
    def __init__(self) -> None:
        self.items: list[pytest.Function] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = [item for item in session.items if isinstance(item, pytest.Function)]


@functools.cache
def _machine() -> Machine:
    """Returns the machine of all runs in this process. Triton fork servers start with the first submission that needs
    them."""
    option = SimpleNamespace(device="auto", target=None, isolation=bubblewrap.LIMITS, collectonly=True)
    return machine_for(option, [])


@functools.cache
def interpreter() -> Interpreter:
    """Returns the interpreter of all runs in this process: it keeps nothing from one call to the next."""
    return Interpreter()
