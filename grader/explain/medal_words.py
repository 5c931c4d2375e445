"""Names the medals, bronze, silver and gold, which compare a passed kernel with the shipped solution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BRONZE, SILVER, GOLD = "bronze", "silver", "gold"
MEDALS = (BRONZE, SILVER, GOLD)  # in rising order; bronze asks for no more than the gate
LEAST_OF_SOLUTION = {SILVER: 0.90, GOLD: 0.97}  # of the speed of the shipped solution, timed in the same run


@dataclass(frozen=True)
class Medal:
    """A kernel's medal. of_solution: its speed divided by the shipped solution's, each a share of the anchor's."""

    name: str
    of_solution: float

    @property
    def text(self) -> str:
        """Returns "silver, 0.93 of the solution's speed"."""
        return f"{self.name}, {self.of_solution:.2f} of the solution's speed"

    @property
    def figures(self) -> dict[str, float]:
        return {"medal": MEDALS.index(self.name) + 1, "of_solution": round(self.of_solution, 4)}

    @staticmethod
    def from_figures(figures: dict[str, float]) -> Medal | None:
        """Returns the medal in a test's figures, None if there is none; raises KeyError, ValueError or TypeError."""
        if "medal" not in figures:
            return None
        return Medal(_medal_of(figures["medal"]), float(figures["of_solution"]))


def _medal_of(number: float) -> str:
    """Returns the medal that has this number in figures, from 1 for bronze. Raises ValueError for other numbers."""
    if number not in range(1, len(MEDALS) + 1):
        raise ValueError(f"{number} is the number of no medal")
    return MEDALS[int(number) - 1]


def lowest_medal(figures: Iterable[dict[str, float]]) -> str:
    """Returns the name of the lowest medal in the figures of several tests; "" if there is no medal."""
    return min((_medal_of(one["medal"]) for one in figures if "medal" in one), key=MEDALS.index, default="")


def better_medal(one: str, two: str) -> str:
    """Returns the higher of the names of two medals, each of which may be "" for no medal."""
    return max(one, two, key=("", *MEDALS).index)


def told_medal(name: str, of_solution: float) -> str:
    """Returns the sentence for learners about an exercise's medal, and about the speed that the next medal needs."""
    if name == GOLD:
        return f"Speed: gold. Your kernel has {of_solution:.2f} of the speed of the shipped solution, as measured here."
    following = MEDALS[MEDALS.index(name) + 1]
    return (
        f"Speed: {name}. Your kernel has {of_solution:.2f} of the speed of the shipped solution; "
        f"{following} asks for {LEAST_OF_SOLUTION[following]:.2f}."
    )
