"""The mistake of counting the lanes past the end of a row, which belong to a block and to no element."""

from __future__ import annotations

from grader.sentences import Said, Sentence

CAUSES = ("padding-counted",)


class Lanes(Sentence):
    """Sentences about lanes past the end that take part in a sum; {opening} begins them, and {rest} ends them."""

    ONE = "{opening} lane past the end of {row} takes part in the {sum}{rest}"
    SEVERAL = "{opening} {lanes} lanes past the end of {row} take part in the {sum}{rest}"


def counted(lanes: int, row: str = "each row", sum: str = "sum", opening: str = "The", rest: str = ".") -> Said:
    """Returns what is said of lanes past the end that count."""
    found = dict(opening=opening, row=row, sum=sum, rest=rest)
    return Lanes.ONE(**found) if lanes == 1 else Lanes.SEVERAL(**found, lanes=lanes)


def next_power_of_2(count: int) -> int:
    """Returns the lanes of a block that holds a row of `count` numbers."""
    return 1 << (count - 1).bit_length()
