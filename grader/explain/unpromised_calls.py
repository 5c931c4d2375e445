"""Explains a call that the lesson does not promise, and that the entry does not refuse as it has to."""

from __future__ import annotations

from dataclasses import dataclass

from grader.explain.causes import Cause
from grader.explain.verdict import Verdict, failed
from grader.sentences import Said, Sentence


class UnpromisedCall(Sentence):
    ACCEPTED = "{entry} accepts what it cannot compute with: {because}."
    ANOTHER_ERROR = "{entry} ends with another error than {error}: {because}."
    TOO_LATE = "{entry} raises {error} when it has already begun its work: {because}."
    ADVICE_RAISE = "It has to raise {error} before it launches anything, so that its caller learns what is wrong."


@dataclass(frozen=True)
class Unpromised:
    """A call to be refused. because: a clause that says why. error: the name of the exception to be raised."""

    because: str
    error: str


def accepted(entry: str, asked: Unpromised) -> Verdict:
    return _not_refused(UnpromisedCall.ACCEPTED(entry=entry, because=asked.because), asked)


def another_error(entry: str, asked: Unpromised, raised: Verdict) -> Verdict:
    """Returns the verdict on a refusal with a wrong exception. raised: the verdict on that exception by itself."""
    said = UnpromisedCall.ANOTHER_ERROR(entry=entry, error=asked.error, because=asked.because)
    verdict = _not_refused(said, asked)
    verdict.said += raised.said
    verdict.line = raised.line
    return verdict


def too_late(entry: str, asked: Unpromised) -> Verdict:
    return _not_refused(UnpromisedCall.TOO_LATE(entry=entry, error=asked.error, because=asked.because), asked)


def _not_refused(said: Said, asked: Unpromised) -> Verdict:
    return failed(Cause.NOT_REFUSED, said, UnpromisedCall.ADVICE_RAISE(error=asked.error), kind="error")
