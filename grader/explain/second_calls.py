"""Explains a second call, with the same inputs, that does something else than the first."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.verdict import Verdict, failed
from grader.sentences import Sentence


class SecondCall(Sentence):
    KEPT_RESULT = "The second call launched no kernel: {entry} returns a result it kept."
    FIRST_IN_ORDER = "So it is in a second call with the same inputs; the first was in order."
    ANOTHER_RESULT = "A second call with the same inputs gives another result."
    ANOTHER_OF_SEVERAL = "A second call with the same inputs gives another {name}."
    ORDER_MATTERS = "{count:#element} of {name} change when the programs run in reverse order: a race between programs."


def not_in_the_first(verdict: Verdict, entry: str) -> Verdict:
    """Adds to a failure of the second call that the first call was right."""
    if verdict.id == Cause.NO_LAUNCH:
        verdict.said[0] = SecondCall.KEPT_RESULT(entry=entry)
    else:
        verdict.said.append(SecondCall.FIRST_IN_ORDER())
    return verdict


def another_result(name: str, is_alone: bool) -> Verdict:
    """Returns the verdict on a result that the second call changes. is_alone: the call has no other result."""
    said = SecondCall.ANOTHER_RESULT() if is_alone else SecondCall.ANOTHER_OF_SEVERAL(name=name)
    return failed(Cause.STATEFUL, said, kind="memory")


def order_matters(name: str, differing: int) -> Verdict:
    """Returns the verdict on a result of which `differing` elements depend on the order of the programs."""
    return failed(Cause.RACE, SecondCall.ORDER_MATTERS(count=differing, name=name), kind="memory")
