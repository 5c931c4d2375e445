"""`course check --seed`: the number from which all runs draw their data."""

from __future__ import annotations

import random
from pathlib import Path

from grader.author.git import NoRevision, tree

DIGITS = 15  # hexadecimal digits of a seed: 60 bits


class NoSeed(ValueError):
    """A text is no seed; the message says why, in one sentence."""


def seed_of(text: str) -> int:
    """Returns the seed that a text gives. Raises NoSeed."""
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 63):
        raise NoSeed(f"--seed {text}: a whole number from 0 to 2**63 - 1 was expected, tree, or recorded.")
    return int(text)


def seed_of_tree(root: Path) -> tuple[int, str]:
    """Returns a seed made from the committed files, or drawn where git fails, and a line that says which of both."""
    try:
        seed = int(tree(root)[:DIGITS], 16)
        return seed, f"Seed {seed}, from the committed files."
    except NoRevision as why:
        seed = random.randrange(16**DIGITS)
        return seed, f"Seed {seed}, drawn: {why}"
