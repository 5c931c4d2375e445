"""The choice of the way in which `course check` makes each proof of an exercise."""

from __future__ import annotations

import functools
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from grader.author.proof import Proof, Way
from grader.course.code_digest import digest_of_code
from grader.places import PACKAGE

BY_OPERATORS = 8  # of an exercise's mutants that operators make; all of them are more than all others
STATED_OF_EACH, BY_OPERATORS_OF_EACH = 20, 4  # of an exercise's mutants, where all exercises are checked at once
SHARE_IN_ORDER = 0.1  # of the mutants are asked all tests in the order of their file, as in a learner's run
BY_PYTEST = ("stub", "solution", "mutant")  # of each kind, one proof is drawn that uses pytest


@dataclass(frozen=True)
class ProofChoice:
    """The options of a check. `whole`: each run goes on to its end, also after a mutant is rejected, and no mutant is
    left out. `seed`: of all runs; None: each run draws its own, and a few of the mutants that operators make.

    `of_each`: all exercises are checked at once, and of each a part is proven. The grader's code draws it: a change of
    the grader has another part proven, and the same code with the same seed the same part. `first_tests`: the first
    tests of mutants are looked for. `compares`: the findings will be compared with the findings of another check.
    """

    whole: bool = False
    seed: int | None = None
    of_each: bool = False
    first_tests: bool = False
    compares: bool = False

    def ways(self, id: str, proofs: list[Proof], first: dict[str, tuple[str, ...]]) -> Iterator[tuple[Proof, Way]]:
        """Yields the proofs of an exercise, each with its way. `first`: known first tests, by the name of a proof."""
        numbers = random.Random(None if self.seed is None else f"{self.seed} {id}")
        if not (self.whole or self.compares):
            proofs = self._some(proofs, numbers, first)
        usual = _usual_first_tests(proofs, first)
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
                    half=f"{numbers.random()} {_text_of_grader()}" if self.of_each and proof.kind == "accepted" else "",
                    first_tests=() if in_order else first.get(proof.name, usual if proof.by_operator else ()),
                    finds_first_tests=self.first_tests and not proof.by_operator,
                ),
            )

    def _some(self, proofs: list[Proof], numbers: random.Random, first: dict[str, tuple[str, ...]]) -> list[Proof]:
        """Returns the proofs without the mutants that are not drawn."""
        left_out = set[Proof]()
        if self.of_each:
            numbers = random.Random(f"{numbers.random()} {_text_of_grader()}")
        mutants = [one for one in proofs if one.kind == "mutant"]
        drawn = numbers.sample(mutants, len(mutants))
        if self.of_each:
            drawn = _by_first_tests(drawn, first, numbers)
        for by_operator, most in (
            (True, BY_OPERATORS_OF_EACH if self.of_each else BY_OPERATORS),
            (False, STATED_OF_EACH if self.of_each else len(proofs)),
        ):
            left_out |= {*[one for one in drawn if one.by_operator == by_operator][most:]}
        return [one for one in proofs if one not in left_out]


def _usual_first_tests(proofs: list[Proof], first: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the first tests that most of these mutants have; () where none has any. Most mutants that operators make,
    whose first tests nobody looks for, are rejected by these as well."""
    known = Counter(first[one.name] for one in proofs if one.kind == "mutant" and one.name in first)
    return known.most_common(1)[0][0] if known else ()


def _by_first_tests(mutants: list[Proof], first: dict[str, tuple[str, ...]], numbers: random.Random) -> list[Proof]:
    """Returns the mutants in another order, in which those stand together that the same test rejects first: what the
    exercise's mistakes give in a call of it is computed once for all of them."""
    by_test: dict[str, list[Proof]] = defaultdict(list)
    for one in mutants:
        by_test[first.get(one.name, (one.name,))[-1]].append(one)
    return [one for test in numbers.sample(list(by_test), len(by_test)) for one in by_test[test]]


@functools.cache
def _text_of_grader() -> str:
    """Returns a digest of the grader's code, comments and docstrings aside."""
    return " ".join(digest_of_code(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py")))
