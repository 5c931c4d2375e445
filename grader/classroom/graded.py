"""One student's work on one exercise, and what became of it: what summaries and the report page are made of."""

from __future__ import annotations

from dataclasses import dataclass

from grader.classroom.handin import HandIn
from grader.classroom.results import Text
from grader.classroom.rubric import counted, is_decided
from grader.explain.verdict import PASS

GRADED, PARTLY, NOT_GRADED, MISSING = "graded", "partly graded", "not graded", "missing"


@dataclass(kw_only=True)
class Graded:
    """`text` is None where there is nothing to judge; `result` where nothing is judged yet."""

    student: str
    exercise: str
    hand_in: HandIn
    text: Text | None = None
    result: dict | None = None
    without: tuple[str, ...] = ()  # items that do not count in this class

    @property
    def name(self) -> str:
        """Of the exercise's file, without its ending."""
        return self.exercise[3:]

    @property
    def fault(self) -> str:
        """What the machine is to blame for."""
        if self.text is None:
            return ""
        return (self.result["fault"] or "") if self.result else "there is no result"

    @property
    def tests(self) -> list[dict]:
        """The results of the tests that count; none where the machine is to blame."""
        return counted(self.result, self.without) if self.result and not self.fault else []

    @property
    def open(self) -> list[str]:
        """Why tests are not decided."""
        return [test["message"] or test["outcome"] for test in self.tests if not is_decided(test)]

    @property
    def points(self) -> float:
        """Those reached."""
        return sum(test["points"] for test in self.tests if test["outcome"] == PASS)

    @property
    def possible(self) -> float:
        """The points of all its tests, whether this machine could judge them or not."""
        return sum(test["points"] for test in self.tests)

    @property
    def status(self) -> str:
        if self.hand_in.absent:
            return MISSING
        if self.text is None or self.fault:
            return NOT_GRADED
        return PARTLY if self.open else GRADED

    @property
    def note(self) -> str:
        """What is to be known about it, in one line."""
        return "; ".join(
            part for part in (*self.hand_in.notes, self.hand_in.problem, self.fault, *self.open[:1]) if part
        )
