"""Which proofs `course check` makes of an exercise, and in which way it makes each."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.author.proof import Proof, Way

SHARE_IN_ORDER = 0.1  # of the mutants: a learner's run asks the tests in the order of their file
BY_PYTEST = ("stub", "solution", "mutant")  # the first of each kind, in a drawn order


@dataclass(frozen=True)
class Choice:
    """`whole`: each run goes on to its end, also where a mutant is rejected before. `seed`: of all runs; without, each
    draws its own.

    `share`: how many proofs are drawn of the exercises in `untouched`, by their ids. `records`: whether the first tests
    of mutants are looked for. `compares`: whether what is found will be compared with what another check finds.
    """

    whole: bool = False
    seed: int | None = None
    untouched: frozenset[str] = field(default_factory=frozenset)
    share: float = 1.0
    records: bool = False
    compares: bool = False

    def ways(self, id: str, proofs: list[Proof], first: dict[str, tuple[str, ...]]) -> Iterator[tuple[Proof, Way]]:
        """Yields the proofs of an exercise that are made, and the way of each. `first`: the first tests of mutants."""
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
