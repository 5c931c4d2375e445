"""A grading holds an exercise in a session and the results of its tests, and chooses the failure that is told.

The report, the file of results and `--why` read it, and the session fills it in; none of them has to know the session.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.course.folder import Folder
from grader.course.trial import short_dtype
from grader.course.wanted_results import rounds_anything
from grader.explain import mend
from grader.explain.medal_words import lowest_medal
from grader.explain.smallest_step import smallest_step
from grader.explain.unused_names import add_unused
from grader.explain.verdict import (
    FAIL,
    INCOMPLETE,
    INCONCLUSIVE,
    NOT_ATTEMPTED,
    NOT_RUN,
    ORDINARY,
    PASS,
    SPECIAL,
    UNJUDGED,
    Verdict,
    is_contradicted,
)
from grader.judging.judge import Judge
from grader.judging.mended_calls import WORK, mended
from grader.judging.run import Run
from grader.session import hidden_items
from grader.session.rubric_items import HIDDEN
from grader.wire.reply import DTYPES

OPEN = (NOT_RUN, INCONCLUSIVE, UNJUDGED)  # ids of skips whose points another run decides


@dataclass
class TestResult:
    name: str  # test_one_full_block
    item: str
    points: float
    verdict: Verdict
    drawn: bool = False  # its calls come from the seed
    core: bool | None = None  # True: the idea is right as far as this test asks for it; None: the test belongs to full
    step: int = 1  # the graded step of the exercise that it belongs to
    only_on_gpu: bool = False  # without a GPU it cannot pass; a sample of its programs may still fail it

    @property
    def title(self) -> str:
        return self.name if self.hidden else self.name.removeprefix("test_").replace("_", " ")

    @property
    def hidden(self) -> bool:
        return self.item == HIDDEN

    @property
    def is_undecided(self) -> bool:
        """True where another run decides, even if an error in the file fails here what needs a GPU to pass."""
        return self.verdict.id in OPEN or self.only_on_gpu and self.verdict.kind == "file"

    @property
    def shown(self) -> Verdict:
        """The part of the verdict that a learner may read: the name and outcome alone for a hidden case."""
        return hidden_items.shown(self.name, self.verdict) if self.hidden else self.verdict


@dataclass
class Grading:
    """An exercise in a session, with the results of its tests."""

    folder: Folder
    run: Run
    judge: Judge | None = None
    results: list[TestResult] = field(default_factory=list)
    tests: int = 0  # in the test file, chosen or not
    core_tests: int = 0  # of these, tests of the core
    has_kernels: bool = True
    ended: bool = False
    fault: str | None = None  # a sentence about a fault of the machine or the grader, never of the learner
    started: float = 0.0
    seconds: float = 0.0
    unkept: str = ""  # why progress could not be written
    right_in_the_open: int = 0  # right calls of tests that are not hidden, which come first
    edits: list[str] = field(default_factory=list)  # that mend, for `course mend`: no report tells them

    @property
    def own(self) -> bool:
        """True for the learner's own file: other submissions leave the progress here as it is."""
        return self.run.submission.path == self.folder.learner_file

    @property
    def outcome(self) -> str:
        outcomes = {test.verdict.outcome for test in self.results}
        if self.fault or FAIL in outcomes:
            return FAIL
        if NOT_ATTEMPTED in outcomes:
            return NOT_ATTEMPTED
        if self.unjudged:
            return INCOMPLETE
        return PASS if self.results and len(self.results) == self.tests else INCOMPLETE

    @property
    def core_passed(self) -> bool:
        """True if all core tests were judged and the idea is right in each."""
        core = [test.core for test in self.results if test.core is not None]
        return bool(core) and len(core) == self.core_tests and all(core)

    @property
    def in_dtype_of_core(self) -> str:
        """ ", in fp32": tests of the core are right in the exercise's first dtype; "" where none has a dtype."""
        if self.judge is None or not self.judge.exercise.has_kernels:
            return ""
        return f", in {short_dtype(DTYPES[self.judge.exercise.dtypes[0]])}"

    @property
    def medal(self) -> str:
        """The lowest medal of its tests of speed, once all is right; "" without a GPU or without a solution."""
        return lowest_medal(test.verdict.figures for test in self.results) if self.outcome == PASS else ""

    @property
    def failures(self) -> list[TestResult]:
        return [test for test in self.results if test.verdict.outcome == FAIL]

    @property
    def unjudged(self) -> TestResult | None:
        """The first test with a call that this machine cannot judge, and that does what no other call does; or None."""
        return next((test for test in self.results if test.verdict.id == UNJUDGED), None)

    @property
    def diagnosis(self) -> TestResult | None:
        """The failed test whose verdict names the most direct cause; a hidden test only if no other test failed.

        A case with a name says more than a drawn call, and a small call more than a sample of a large call. An earlier
        step of the exercise comes before a later step: that is the order in which a learner works. Values that are
        wrong only where NaN or infinities come in explain no other failure, and come after the other failures. An
        explanation that the other failing calls contradict is not told.
        """
        ordinary = any(test.verdict.wrong == ORDINARY and not test.hidden for test in self.failures)
        candidates = [test for test in self.failures if not self._is_contradicted(test)]
        return min(candidates or self.failures, key=lambda test: _directness(test, ordinary), default=None)

    def _is_contradicted(self, test: TestResult) -> bool:
        others = (failure.verdict for failure in self.failures if failure is not test and not failure.hidden)
        return is_contradicted(test.verdict, others)

    def conclude(self) -> None:
        """Adds to the diagnosis of values that nothing explains how small a step leads from a right call to a wrong."""
        diagnosis, history = self.diagnosis, self.run.history
        if diagnosis is not None and diagnosis.verdict.kind == "values" and not diagnosis.hidden:
            open_ones = [failure.verdict for failure in self.failures if not failure.hidden]
            alike = [verdict for verdict in open_ones if verdict.wrong == diagnosis.verdict.wrong]
            wrong = [trial for verdict in alike if (trial := history.trial_of(verdict)) is not None]
            right = history.right_trials[: self.right_in_the_open]
            diagnosis.verdict.said += filter(None, [smallest_step(right, wrong)])

    def mend(self, work: int = WORK) -> None:
        """Adds to the diagnosis the line in which one change makes wrong calls right, or else a name that is not used.

        A cause that is named with its line stays as it is. `work`: for all tries.
        """
        diagnosis, history = self.diagnosis, self.run.history
        if diagnosis is None or diagnosis.hidden or not mend.is_asked_for(diagnosis.verdict):
            return
        of_values = [one.verdict for one in self.failures if not one.hidden and mend.is_of_values(one.verdict)]
        wrong = [
            (trial, verdict.kind == "memory")
            for trial, verdict in history.failures if any(verdict is one for one in of_values)
        ]  # fmt: skip
        mends = mended(self.run, wrong, history.right_trials[: self.right_in_the_open], work)
        if mends is None:
            add_unused(diagnosis.verdict, self.run.submission)
        else:
            said, rounds = self.run.submission, any(map(rounds_anything, (trial for trial, _ in wrong)))
            mend.add_to(diagnosis.verdict, mends.line, mends.kinds, mends.calls, mends.of, rounds, said)
            self.edits = mend.told(mends.edits, mends.line, mends.by_edit, mends.of, rounds, said)

    @property
    def points(self) -> tuple[float, float]:
        """The points reached, and the points possible here: what this machine could not judge does not count."""
        reached = sum(test.points for test in self.results if test.verdict.outcome == PASS)
        return reached, sum(test.points for test in self.results if not test.is_undecided)


def _directness(test: TestResult, steps_back: bool) -> tuple[bool, int, bool, bool, int, bool]:
    """Returns the key that sorts failures, the most direct first. `steps_back`: special values come after ordinary."""
    verdict = test.verdict
    special = steps_back and verdict.wrong == SPECIAL
    return test.hidden, test.step, test.drawn or verdict.sampled, special, verdict.rank, verdict.sampled
