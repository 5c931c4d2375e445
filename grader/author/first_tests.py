"""The first tests of a mutant: a few tests that are enough to reject it.

Most mutants pass many tests before a test rejects them. Asking this test first takes a sixth of the time. If the first
tests do not reject a mutant with its sentence, all tests are asked in the order of their file. So a file of first tests
that has grown old costs time, and proves no less.
"""

from __future__ import annotations

import json
from pathlib import Path

from grader.author.proof import Outcome
from grader.files import write_whole

FILE = "solutions/first_tests.json"
FIRST_OF_FILE = 2  # these may have to be asked too: the sentence about a large call can rest on what a small call shows


def read(root: Path) -> dict[str, tuple[str, ...]]:
    """Returns the names of the first tests of each mutant that has some, by the name of the mutant's proof."""
    file = root / FILE
    if not file.exists():
        return {}
    return {name: tuple(tests.split()) for name, tests in json.loads(file.read_text(encoding="utf-8")).items()}


def write(root: Path, outcomes: list[Outcome]) -> None:
    """Writes the first tests that were found with `Way.finds_first_tests`. Raises OSError.

    Of exercises that no outcome is of, the file keeps what it has.
    """
    exercises = {outcome.proof.exercise.name for outcome in outcomes}
    kept = {name: tests for name, tests in read(root).items() if _exercise_of(name) not in exercises}
    kept |= {outcome.proof.name: outcome.first_tests for outcome in outcomes if outcome.first_tests}
    lines = {name: " ".join(tests) for name, tests in kept.items()}
    write_whole(root / FILE, json.dumps(lines, indent=0, sort_keys=True) + "\n")


def _exercise_of(name: str) -> str:
    """Returns the exercise's id in the name of a proof, as in solutions/NN_name/mistakes.toml: no_mask."""
    return name.split("/")[1]


def candidates(in_order: list[str], rejecting: str) -> list[tuple[str, ...]]:
    """Returns the groups of tests to try as first tests of a mutant, the smallest first. `in_order`: all tests."""
    return [(rejecting,), (*(name for name in in_order[:FIRST_OF_FILE] if name != rejecting), rejecting)]
