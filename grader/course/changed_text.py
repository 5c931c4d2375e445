"""A version of a solution, stated as changes to it: pairs of old and new text.

Each old text occurs exactly once in the solution, so a version cannot drift away from the solution it is made from.
"""

from __future__ import annotations


class BadChange(ValueError):
    """A change that cannot be made. The message continues a sentence that names the version with the change."""


def changed(solution: str, changes: list) -> str:
    """Returns the solution with all of its changes. Raises BadChange where a change is no pair of texts, where an old
    text does not occur exactly once, and where two changes overlap."""
    places = []
    for number, pair in enumerate(changes, 1):
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise BadChange(f"change {number} is no pair of old and new text.")
        old, new = pair
        if (count := solution.count(old)) != 1:
            often = "does not stand" if not count else f"stands {count} times"
            raise BadChange(f"the old text of change {number} {often} in the solution: {old!r}")
        places.append((solution.index(old), len(old), new))
    text, end = "", 0
    for start, length, new in sorted(places):
        if start < end:
            raise BadChange(f"two changes overlap at {solution[start:end]!r}.")
        text, end = text + solution[end:start] + new, start + length
    return text + solution[end:]
