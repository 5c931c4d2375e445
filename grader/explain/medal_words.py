"""Bronze, silver and gold: how the speed of a kernel that passed compares with that of the shipped solution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BRONZE, SILVER, GOLD = "bronze", "silver", "gold"
MEDALS = (BRONZE, SILVER, GOLD)  # bronze: the gate is reached
LEAST_OF_SOLUTION = {SILVER: 0.90, GOLD: 0.97}  # of the speed of the shipped solution, timed in the same run


@dataclass(frozen=True)
class Medal:
    """of_solution: the kernel's share of the anchor over the shipped solution's."""

    name: str
    of_solution: float

    @property
    def text(self) -> str:
        """ "silver, 0.93 of the solution's speed" """
        return f"{self.name}, {self.of_solution:.2f} of the solution's speed"

    @property
    def figures(self) -> dict[str, float]:
        return {"medal": MEDALS.index(self.name) + 1, "of_solution": round(self.of_solution, 4)}

    @staticmethod
    def from_figures(figures: dict[str, float]) -> Medal | None:
        """Returns the medal that a test's figures hold, if any. Raises TypeError, ValueError or KeyError."""
        if "medal" not in figures:
            return None
        return Medal(_medal_of(figures["medal"]), float(figures["of_solution"]))


def _medal_of(number: float) -> str:
    """Returns the medal that has this number in figures, from 1 for bronze. Raises ValueError for other numbers."""
    if number not in range(1, len(MEDALS) + 1):
        raise ValueError(f"{number} is the number of no medal")
    return MEDALS[int(number) - 1]


def lowest_medal(figures: Iterable[dict[str, float]]) -> str:
    """Returns the lowest medal among figures of tests; "" where none of them has any."""
    return min((_medal_of(one["medal"]) for one in figures if "medal" in one), key=MEDALS.index, default="")


def better_medal(one: str, two: str) -> str:
    """Returns the higher of two medals, each of which may be "" for none."""
    return max(one, two, key=("", *MEDALS).index)


def told_medal(name: str, of_solution: float) -> str:
    """Returns what a learner reads of an exercise's medal, and what the next asks for."""
    if name == GOLD:
        return f"Speed: gold. Your kernel has {of_solution:.2f} of the speed of the shipped solution, as measured here."
    following = MEDALS[MEDALS.index(name) + 1]
    return (
        f"Speed: {name}. Your kernel has {of_solution:.2f} of the speed of the shipped solution; "
        f"{following} asks for {LEAST_OF_SOLUTION[following]:.2f}."
    )
