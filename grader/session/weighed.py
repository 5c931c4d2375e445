"""`--why`: which explanations of wrong values a run has weighed, which calls each fits, and why it was not told.

It is for whoever mends a sentence: a false one fits calls by chance, and a true one that is not told was contradicted,
or came too late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.explain.verdict import is_contradicted
from grader.wire.printable import one_line

if TYPE_CHECKING:
    from grader.session.grading import Grading, TestResult


@dataclass
class Weighed:
    """An explanation. `candidate`: the id of its sentence. `lost`: why it was not told; "" if it was."""

    candidate: str
    text: str
    fits: list[str]  # tests
    against: list[str]
    lost: str = ""


def weighed(grading: Grading) -> list[Weighed]:
    """Returns the explanations that fit some failed test, that which is told first, then those that fit most."""
    failures = [test for test in grading.failures if not test.hidden]
    diagnosis = grading.diagnosis
    if diagnosis is None or diagnosis.hidden:
        return []
    in_order = sorted(failures, key=lambda test: test is diagnosis)  # what is told is quoted as it is told
    texts = {_own(test): test.verdict.lines[0] for test in in_order if test.verdict.said}
    for test in in_order:
        texts |= {candidate: one_line(said.text) for candidate, said in test.verdict.fitting.items()}
    explanations = []
    for candidate, text in texts.items():
        fits = [test.title for test in failures if candidate in (_own(test), *test.verdict.fitting)]
        against = [test.title for test in failures if candidate in test.verdict.refuted]
        lost = "" if candidate == _own(diagnosis) else _why_lost(candidate, failures, diagnosis)
        explanations.append(Weighed(candidate, text, fits, against, lost))
    return sorted(explanations, key=lambda one: (one.lost != "", -len(one.fits)))


def as_lines(grading: Grading) -> Iterator[str]:
    """Yields the lines of the report."""
    explanations = weighed(grading)
    if not explanations:
        yield "No explanation was weighed: nothing failed that a learner may read about."
        return
    yield "Explanations that were weighed, by the ids of their sentences:"
    for explanation in explanations:
        yield f"{explanation.candidate}: {explanation.lost or 'told'}"
        yield f"    {explanation.text}"
        yield f"    fits {_tests(explanation.fits)}; contradicted by {_tests(explanation.against)}"
    fitting = {explanation.candidate for explanation in explanations}
    refuted = {one for test in grading.failures if not test.hidden for one in test.verdict.refuted} - fitting
    if refuted:
        yield f"Fit no failed test: {', '.join(sorted(refuted))}"


def _own(test: TestResult) -> str:
    """Returns the id of the sentence that a failed test would tell by itself."""
    verdict = test.verdict
    return verdict.candidate or (verdict.said[0].sentence.id if verdict.said else verdict.id)


def _why_lost(candidate: str, failures: list[TestResult], told: TestResult) -> str:
    own = [test for test in failures if _own(test) == candidate]
    if not own:
        earlier = {_own(test) for test in failures if candidate in test.verdict.fitting}
        return f"not told, for where it fits another fits that comes before it: {', '.join(sorted(earlier))}"
    others = {id(test): [failure.verdict for failure in failures if failure is not test] for test in own}
    if all(is_contradicted(test.verdict, others[id(test)]) for test in own):
        return "dropped, for other failed tests contradict it, or nothing explains them"
    if min(test.verdict.rank for test in own) > told.verdict.rank:
        return (
            f"not told, for a failure of the kind {told.verdict.kind} is more direct than one of {own[0].verdict.kind}"
        )
    return f"not told, for the test {told.title} comes first"


def _tests(titles: list[str]) -> str:
    return f"{len(titles)} ({', '.join(titles)})" if 0 < len(titles) <= 3 else str(len(titles))
