"""A student's work on an exercise, with its result: the data of the exports and of the report page."""

from __future__ import annotations

from dataclasses import dataclass

from grader.classroom.handin import HandIn
from grader.classroom.result_store import Text
from grader.classroom.rubric import Item, counted, is_decided, items_of
from grader.explain.verdict import PASS
from grader.sentences import joined

GRADED, PARTLY, NOT_GRADED, MISSING = "graded", "partly graded", "not graded", "missing"


@dataclass(frozen=True)
class Judged:
    """A student's text with its result, which no fault of the machine prevented.

    `result` holds all tests; `without` are the items that do not count in this class,
    `together` all students whose hand-in it is.
    """

    student: str
    text: Text
    result: dict
    without: tuple[str, ...] = ()
    together: tuple[str, ...] = ()

    @property
    def tests(self) -> list[dict]:
        """The results of the tests that count."""
        return counted(self.result, self.without)

    @property
    def counted(self) -> dict:
        """The result with only the tests that count."""
        return {**self.result, "tests": self.tests}

    @property
    def items(self) -> dict[str, Item]:
        return items_of(self.result, self.without)

    @property
    def points(self) -> float:
        """The points of the tests that passed."""
        return sum(test["points"] for test in self.tests if test["outcome"] == PASS)

    @property
    def possible(self) -> float:
        """The points of all tests that count, whether this machine could judge them or not."""
        return sum(test["points"] for test in self.tests)

    @property
    def open_points(self) -> float:
        return sum(test["points"] for test in self.tests if not is_decided(test))

    @property
    def open(self) -> list[str]:
        """The reasons why tests are not decided, in the order of the tests."""
        return [test["message"] or test["outcome"] for test in self.tests if not is_decided(test)]


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
    together: tuple[str, ...] = ()  # all students whose hand-in it is

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
    def judged(self) -> Judged | None:
        """The text with its result; None where there is nothing to judge, no result, or a fault."""
        if self.text is None or self.result is None or self.fault:
            return None
        return Judged(self.student, self.text, self.result, self.without, self.together)

    @property
    def open(self) -> list[str]:
        """The reasons why tests are not decided, in the order of the tests."""
        return self.judged.open if self.judged else []

    @property
    def score(self) -> float | None:
        """The points that count; None unless all tests are decided."""
        return self.judged.points if self.judged and self.status == GRADED else None

    @property
    def status(self) -> str:
        if self.hand_in.absent:
            return MISSING
        if self.judged is None:
            return NOT_GRADED
        return PARTLY if self.open else GRADED

    @property
    def note(self) -> str:
        """Notes, problem, fault and the reason of the first open test, in one line."""
        return joined((*self.hand_in.notes, self.hand_in.problem, self.fault, *self.open[:1]))
