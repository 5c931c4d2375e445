"""A sample of the proofs of `course check`, for a release of Triton that is neither the learners' nor the oldest nor
the newest: what it compiles is read and judged as well.

All solutions, and of each exercise an accepted kernel, asked half of the tests, and a mutant, drawn by its name.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from grader.author import first_tests, proving
from grader.author.choice import ProofChoice
from grader.author.proof import Proof, Way, proofs_of
from grader.course.folder import all_folders
from tests.conftest import ROOT
from tests.parts import SEED

DRAWN = {"solution": None, "accepted": 1, "mutant": 1}  # of each kind so many of an exercise; None: all


def sample() -> Iterator[tuple[Proof, Way]]:
    first = first_tests.read(ROOT)
    for folder in all_folders(ROOT):
        proofs = list(proofs_of(folder))
        numbers = random.Random(folder.id)
        for kind, count in DRAWN.items():
            of_kind = [proof for proof in proofs if proof.kind == kind]
            chosen = of_kind if count is None else numbers.sample(of_kind, count)
            for proof, way in ProofChoice(seed=SEED, of_each=True).ways(folder.id, chosen, first):
                yield proof, replace(way, by_pytest=False)


@pytest.mark.parametrize(("proof", "way"), [pytest.param(*one, id=one[0].name) for one in sample()])
def test_it_is_judged_as_on_other_releases(proof, way):
    assert proving.run(proof, way).complaint == ""
