"""Which proofs `course check` makes, and in which way each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from grader.author import choice
from grader.author.choice import BY_OPERATORS, BY_OPERATORS_OF_EACH, STATED_OF_EACH, ProofChoice
from grader.author.proof import Proof

KINDS = ["stub", "solution", *["accepted"] * 5, *["mutant"] * 40, "cheat"]
PROOFS = [Proof(kind, f"{kind} {number}", Path("exercises/03_few"), "", "fail") for number, kind in enumerate(KINDS)]
FIRST = {proof.name: ("test_a",) for proof in PROOFS if proof.kind == "mutant"}


def ways(**chosen):
    return list(ProofChoice(**chosen).ways("03_few", PROOFS, FIRST))


def test_all_are_made_and_each_kind_once_with_the_command_of_a_learner():
    chosen = ways(seed=1)
    assert [proof for proof, _ in chosen] == PROOFS
    assert [proof.kind for proof, way in chosen if way.by_pytest] == ["stub", "solution", "mutant"]


def test_of_the_mutants_that_operators_make_a_few_are_drawn_and_all_where_everything_counts():
    made = [replace(PROOFS[-2], name=f"mutant no_stride_{number}", by_operator=True) for number in range(30)]
    proofs = [*PROOFS, *made]

    def proven(**chosen) -> list[Proof]:
        return [proof for proof, _ in ProofChoice(**chosen).ways("03_few", proofs, FIRST)]

    assert proven(whole=True) == proofs == proven(compares=True)
    some = [proof for proof in proven(seed=1) if proof.by_operator]
    assert len(some) == BY_OPERATORS and some != [proof for proof in proven(seed=2) if proof.by_operator]
    assert [proof for proof in proven(seed=1) if not proof.by_operator] == PROOFS


def test_where_all_exercises_are_checked_the_graders_text_draws_a_part_of_each_ones_mutants(monkeypatch):
    made = [replace(PROOFS[-2], name=f"mutant no_stride_{number}", by_operator=True) for number in range(30)]
    others = [proof for proof in PROOFS if proof.kind != "mutant"]

    def proven() -> list[Proof]:
        return [proof for proof, _ in ProofChoice(seed=1, of_each=True).ways("03_few", [*PROOFS, *made], FIRST)]

    some = proven()
    assert [proof for proof in some if proof.kind != "mutant"] == others
    assert [sum(proof.by_operator is kind for proof in some if proof.kind == "mutant") for kind in (False, True)] == [
        STATED_OF_EACH, BY_OPERATORS_OF_EACH,
    ]  # fmt: skip
    assert proven() == some
    texts = [f"text {number}" for number in range(9)]
    seen = set[Proof]()
    for text in texts:
        monkeypatch.setattr(choice, "_text_of_grader", lambda text=text: text)
        seen |= {*proven()}
    assert {*PROOFS} <= seen  # none is left out for good


def test_where_all_exercises_are_checked_mutants_are_drawn_together_that_the_same_test_rejects(monkeypatch):
    first = {proof.name: (f"test_{number % 8}",) for number, proof in enumerate(PROOFS)}  # five mutants each
    times = Counter[Proof]()
    for number in range(200):
        monkeypatch.setattr(choice, "_text_of_grader", lambda number=number: f"text {number}")
        some = [one for one, _ in ProofChoice(seed=1, of_each=True).ways("03_few", PROOFS, first)]
        mutants = [one for one in some if one.kind == "mutant"]
        assert len(mutants) == STATED_OF_EACH and len({first[one.name] for one in mutants}) == STATED_OF_EACH // 5
        times.update(mutants)
    assert len(times) == 40 and min(times.values()) > 60  # each is drawn in about half of them


def test_where_all_exercises_are_checked_an_accepted_kernel_is_asked_half_of_the_tests():
    chosen = ways(seed=1, of_each=True)
    assert [proof.kind for proof, way in chosen if way.half] == ["accepted"] * 5
    assert len({way.half for _, way in chosen}) == 6 and not any(way.half for _, way in ways(seed=1))


def test_the_mutant_that_pytest_judges_and_those_asked_in_order_are_drawn():
    drawn = {
        tuple(proof.name for proof, way in ways(seed=seed) if way.by_pytest or not way.first_tests) for seed in range(9)
    }
    assert len(drawn) == 9 and ways(seed=3) == ways(seed=3)


def test_a_mutant_that_an_operator_makes_is_asked_the_first_tests_of_most_others():
    made = replace(PROOFS[-2], name="mutant no_stride_1", by_operator=True)
    first = {proof.name: ("test_b", "test_a") if number % 3 else ("test_c",) for number, proof in enumerate(PROOFS)}
    asked = {
        way.first_tests
        for seed in range(20)
        for proof, way in ProofChoice(seed=seed).ways("03_few", [*PROOFS, made], first)
        if proof == made
    }
    assert asked == {("test_b", "test_a"), ()}
    assert not list(ProofChoice(seed=1).ways("03_few", [made], {}))[0][1].first_tests


def test_most_mutants_are_asked_their_first_tests():
    in_order = [sum(not way.first_tests for proof, way in ways(seed=n) if proof.kind == "mutant") for n in range(50)]
    assert 0 < sum(in_order) < 0.2 * 50 * len(FIRST)


@pytest.mark.parametrize("reason", ["whole", "first_tests", "compares"])
def test_all_are_asked_in_order_where_the_order_counts(reason):
    assert not any(way.first_tests for _, way in ways(**{reason: True}))


def test_all_drawn_calls_are_judged_where_runs_are_whole():
    assert all(way.all_drawn for _, way in ways(whole=True))
    assert not any(way.all_drawn for _, way in ways())
