"""The tests that a mutant is asked first: those that alone have rejected it, when everything was last proven.

Most mutants pass many tests before the one that rejects them. Asked first, it takes a sixth of the time. Where these
tests do not reject a mutant with its sentence, all are asked in the order of their file.
"""

from __future__ import annotations

import json
from pathlib import Path

from grader.author.proof import Outcome
from grader.files import write_whole

FILE = "tests/mutants/first_tests.json"
FIRST_OF_FILE = 2  # tests that may have to come before: what a small call shows, a larger one's sentence rests on


def read(root: Path) -> dict[str, tuple[str, ...]]:
    """Returns the names of tests for each mutant that has some, by its own name in messages."""
    file = root / FILE
    if not file.exists():
        return {}
    return {name: tuple(tests) for name, tests in json.loads(file.read_text(encoding="utf-8")).items()}


def write(root: Path, outcomes: list[Outcome]) -> None:
    """Keeps the tests that were found with `Way.finds_first_tests`. Raises OSError."""
    found = {outcome.proof.name: list(outcome.first_tests) for outcome in outcomes if outcome.first_tests}
    write_whole(root / FILE, json.dumps(found, indent=0, sort_keys=True) + "\n")


def candidates(in_order: list[str], rejecting: str) -> list[tuple[str, ...]]:
    """Returns what to try as first tests of a mutant, in an exercise with these tests, the fewest first."""
    return [(rejecting,), (*(name for name in in_order[:FIRST_OF_FILE] if name != rejecting), rejecting)]
