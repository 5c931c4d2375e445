"""Proofs without a run of pytest's, and the tests that a mutant is asked first."""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from grader.author import direct_run, first_tests
from grader.author.proof import Outcome, Proof, Way, proofs_of
from grader.author.proving import run, run_all
from grader.course.folder import Folder
from grader.explain.verdict import PASS, SKIPPED, UNJUDGED, Verdict
from tests.conftest import ROOT

ADD = Folder(ROOT / "exercises" / "01_masked_add")
PROOFS = list(proofs_of(ADD))


def mutant(name: str) -> Proof:
    return next(proof for proof in PROOFS if proof.name.endswith(f": {name}"))


ONE_OF_A_KIND = {proof.kind: proof for proof in [*PROOFS, mutant("no_mask")]}


@pytest.fixture
def asked(monkeypatch) -> list[list[str]]:
    """The tests that each run without pytest asks."""
    runs, graded = [], direct_run._graded

    def kept(proof, submission, way, items):
        grading = graded(proof, submission, way, items)
        runs.append([test.name for test in grading.results])
        return grading

    monkeypatch.setattr(direct_run, "_graded", kept)
    return runs


@pytest.mark.parametrize("kind", ONE_OF_A_KIND)
def test_pytest_and_the_direct_run_find_the_same(kind):
    found = [run(ONE_OF_A_KIND[kind], Way(whole=True, all_drawn=True, seed=5, by_pytest=way)) for way in (False, True)]
    one, other = (replace(outcome, seconds=0.0, kind="", line=0) for outcome in found)  # pytest tells no kind or line
    assert one == other and one.complaint == ""


def test_a_mutant_that_is_rejected_by_its_first_tests_is_asked_no_others(asked):
    rejecting = run(mutant("no_mask"), Way(seed=5, finds_first_tests=True)).first_tests
    asked.clear()
    outcome = run(mutant("no_mask"), Way(seed=5, first_tests=rejecting))
    assert outcome.complaint == "" and asked == [list(rejecting)] and len(rejecting) == 1


@pytest.mark.parametrize("first", [("test_one_full_block",), ("test_that_is_gone",)])
def test_where_the_first_tests_do_not_reject_it_all_are_asked_in_their_order(asked, first):
    outcome = run(mutant("no_mask"), Way(seed=5, first_tests=first))
    in_order = [test.name for test in direct_run.tests_of(ADD.path)]
    assert outcome.complaint == "" and asked[-1] == in_order[: len(asked[-1])] and len(asked[-1]) > 1


def test_half_of_the_tests_are_asked_in_their_order(asked):
    kernel, in_order = ONE_OF_A_KIND["accepted"], [test.name for test in direct_run.tests_of(ADD.path)]
    assert run(kernel, Way(seed=5, half="a text")).complaint == ""
    (half,) = asked
    assert half == [name for name in in_order if name in half] and len(half) == (len(in_order) + 1) // 2


def test_all_tests_are_asked_where_half_of_them_leaves_a_call_undecided(asked, monkeypatch):
    monkeypatch.setattr(
        "grader.judging.uses.CheckUse.verdict",
        lambda use, judge: Verdict(SKIPPED, UNJUDGED) if len(asked) == 0 else Verdict(PASS),
    )
    assert run(ONE_OF_A_KIND["accepted"], Way(seed=5, half="a text")).complaint == ""
    assert len(asked) == 2 and asked[1] == [test.name for test in direct_run.tests_of(ADD.path)]


def test_what_goes_to_a_worker_and_comes_back_is_pickled():
    sent = run_all, [(mutant("no_mask"), Way(whole=True, seed=5, first_tests=("test_a",)))]
    outcome = [Outcome(mutant("no_mask"), "a complaint", 1.5, "fail", ("oob-load",), "told", ("test_a",))]
    assert pickle.loads(pickle.dumps((sent, outcome))) == (sent, outcome)


def test_an_error_of_the_graders_is_a_complaint(monkeypatch):
    monkeypatch.setattr("grader.judging.uses.CheckUse.verdict", lambda use, judge: 1 // 0)
    assert "not judged: the grader failed with ZeroDivisionError" in run(mutant("no_mask"), Way()).complaint


def test_what_was_found_is_kept_and_read_again(tmp_path):
    (tmp_path / "solutions").mkdir()
    assert first_tests.read(tmp_path) == {}
    outcomes = [Outcome(proof, "", first_tests=("test_a",) if proof.kind == "mutant" else ()) for proof in PROOFS]
    first_tests.write(tmp_path, outcomes)
    names = {proof.name for proof in PROOFS if proof.kind == "mutant"}
    assert first_tests.read(tmp_path) == dict.fromkeys(names, ("test_a",))


def test_of_other_exercises_what_was_kept_stays(tmp_path):
    (tmp_path / "solutions").mkdir()
    of_another = Proof("mutant", "solutions/02_other/mistakes.toml: no_mask", Path("exercises/02_other"), "", "fail")
    first_tests.write(tmp_path, [Outcome(of_another, "", first_tests=("test_b", "test_c"))])
    first_tests.write(tmp_path, [Outcome(mutant("no_mask"), "", first_tests=("test_a",))])
    assert first_tests.read(tmp_path) == {mutant("no_mask").name: ("test_a",), of_another.name: ("test_b", "test_c")}


def test_the_fewest_tests_are_tried_first():
    in_order = ["test_a", "test_b", "test_c"]
    assert first_tests.candidates(in_order, "test_c") == [("test_c",), ("test_a", "test_b", "test_c")]
    assert first_tests.candidates(in_order, "test_a") == [("test_a",), ("test_b", "test_a")]


POOL = """
import os, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from grader.author import proving

if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=proving.prepare) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        sys.stdin.read()
"""


def test_a_worker_ends_with_the_check_that_is_killed(tmp_path):
    (tmp_path / "pool.py").write_text(POOL)
    with subprocess.Popen(
        [sys.executable, tmp_path / "pool.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    ) as check:
        worker = os.pidfd_open(int(check.stdout.readline()))
        check.kill()
    select.select([worker], [], [])  # ready once the worker has ended
    os.close(worker)
