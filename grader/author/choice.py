"""The choice of the proofs that `course check` makes of an exercise, and of the way that it makes each."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.author.proof import Proof, Way

SHARE_IN_ORDER = 0.1  # of the mutants are asked all tests in the order of their file, as in a learner's run
BY_PYTEST = ("stub", "solution", "mutant")  # of each kind, one proof is drawn that uses pytest


@dataclass(frozen=True)
class ProofChoice:
    """The choice of proofs. `whole`: each run goes on to its end, also after a mutant is rejected. `seed`: of all runs;
    None: each run draws its own.

    `share`: the share of proofs to draw for the exercises in `untouched`, a set of their ids. `records`: the first
    tests of mutants are looked for. `compares`: the findings will be compared with the findings of another check.
    """

    whole: bool = False
    seed: int | None = None
    untouched: frozenset[str] = field(default_factory=frozenset)
    share: float = 1.0
    records: bool = False
    compares: bool = False

    def ways(self, id: str, proofs: list[Proof], first: dict[str, tuple[str, ...]]) -> Iterator[tuple[Proof, Way]]:
        """Yields the proofs to make of an exercise, each with its way. `first`: first tests, by the name of a proof."""
        numbers = random.Random(None if self.seed is None else f"{self.seed} {id}")
        shuffled = numbers.sample(proofs, len(proofs))
        if id in self.untouched:
            chosen = shuffled[: math.ceil(self.share * len(proofs))]
            by_pytest = []
        else:
            chosen = shuffled
            by_pytest = [next((one for one in shuffled if one.kind == kind), None) for kind in BY_PYTEST]
        for proof in (one for one in proofs if one in chosen):
            in_order = self.whole or self.records or self.compares or numbers.random() < SHARE_IN_ORDER
            yield (
                proof,
                Way(
                    whole=self.whole,
                    seed=self.seed,
                    by_pytest=proof in by_pytest and not (self.records and proof.kind == "mutant"),
                    all_drawn=self.whole or self.records,
                    first_tests=() if in_order else first.get(proof.name, ()),
                    finds_first_tests=self.records,
                ),
            )
