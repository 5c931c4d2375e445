"""The choice of the way in which `course check` makes each proof of an exercise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from grader.author.proof import Proof, Way

BY_OPERATORS = 8  # of an exercise's mutants that operators make; all of them are more than all others
SHARE_IN_ORDER = 0.1  # of the mutants are asked all tests in the order of their file, as in a learner's run
BY_PYTEST = ("stub", "solution", "mutant")  # of each kind, one proof is drawn that uses pytest


@dataclass(frozen=True)
class ProofChoice:
    """The options of a check. `whole`: each run goes on to its end, also after a mutant is rejected, and no mutant is
    left out. `seed`: of all runs; None: each run draws its own, and a few of the mutants that operators make.

    `first_tests`: the first tests of mutants are looked for. `compares`: the findings will be compared with the
    findings of another check.
    """

    whole: bool = False
    seed: int | None = None
    first_tests: bool = False
    compares: bool = False

    def ways(self, id: str, proofs: list[Proof], first: dict[str, tuple[str, ...]]) -> Iterator[tuple[Proof, Way]]:
        """Yields the proofs of an exercise, each with its way. `first`: known first tests, by the name of a proof."""
        numbers = random.Random(None if self.seed is None else f"{self.seed} {id}")
        if not (self.whole or self.compares):
            made = [one for one in proofs if one.by_operator]
            some = numbers.sample(made, min(len(made), BY_OPERATORS))
            proofs = [one for one in proofs if not one.by_operator or one in some]
        shuffled = numbers.sample(proofs, len(proofs))
        by_pytest = [next((one for one in shuffled if one.kind == kind), None) for kind in BY_PYTEST]
        for proof in proofs:
            in_order = self.whole or self.first_tests or self.compares or numbers.random() < SHARE_IN_ORDER
            yield (
                proof,
                Way(
                    whole=self.whole,
                    seed=self.seed,
                    by_pytest=proof in by_pytest and not (self.first_tests and proof.kind == "mutant"),
                    all_drawn=self.whole,
                    first_tests=() if in_order else first.get(proof.name, ()),
                    finds_first_tests=self.first_tests and not proof.by_operator,
                ),
            )
