"""A student's work on an exercise, with its result: the data of the summaries and of the report page."""

from __future__ import annotations

from dataclasses import dataclass

from grader.classroom.handin import HandIn
from grader.classroom.result_store import Text
from grader.classroom.rubric import counted, is_decided
from grader.explain.verdict import PASS

GRADED, PARTLY, NOT_GRADED, MISSING = "graded", "partly graded", "not graded", "missing"


@dataclass(kw_only=True)
class StudentWork:
    """A student's work on an exercise.

    `text` is None where there is nothing to judge, `result` where nothing is judged yet.
    """

    student: str
    exercise: str
    hand_in: HandIn
    text: Text | None = None
    result: dict | None = None
    without: tuple[str, ...] = ()  # items that do not count in this class

    @property
    def name(self) -> str:
        """The name of the exercise's file without its ending: "softmax" for "03_softmax"."""
        return self.exercise[3:]

    @property
    def fault(self) -> str:
        """The reason why the machine did not judge the text; "" if it did, or if there is nothing to judge."""
        if self.text is None:
            return ""
        return (self.result["fault"] or "") if self.result else "there is no result"

    @property
    def tests(self) -> list[dict]:
        """The results of the tests that count; [] where there is no result, or a fault."""
        return counted(self.result, self.without) if self.result and not self.fault else []

    @property
    def open(self) -> list[str]:
        """The reasons why tests are not decided, in the order of the tests."""
        return [test["message"] or test["outcome"] for test in self.tests if not is_decided(test)]

    @property
    def points(self) -> float:
        """The points of the tests that passed."""
        return sum(test["points"] for test in self.tests if test["outcome"] == PASS)

    @property
    def possible(self) -> float:
        """The points of all tests that count, whether this machine could judge them or not."""
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
        """Notes, problem, fault and the reason of the first open test, in one line."""
        return "; ".join(
            part for part in (*self.hand_in.notes, self.hand_in.problem, self.fault, *self.open[:1]) if part
        )
