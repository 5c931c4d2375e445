"""The ends of processes that we asked, and the faults of the machine and of our own code."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.processes.where import Where
from grader.wire.frames import JsonObject

MOST_SAID = 200  # characters of what a process says of itself


@dataclass
class ProcessEnded(Exception):
    """A process that we asked is gone. how: "time", or as a derived class tells."""

    how: str
    detail: str


@dataclass
class ChildEnded(ProcessEnded):
    """The child is gone.

    how, with its detail: "exit" (status), "signal" (number), "time" (the limit), "processes" (how many it may have),
    "work" (operations of the kernels in all calls), "garbled" (what was wrong).
    """

    where: Where = field(default_factory=Where, compare=False)  # where its time was used up; of "work", the launch


def fault_told(answer: JsonObject) -> str | None:
    """Returns the last line in which a process tells that our own code has failed in it; None for another answer."""
    if answer["kind"] != "fault":
        return None
    return "".join(str(answer.get("message", "")).strip().splitlines()[-1:])[:MOST_SAID]


class MachineFault(Exception):
    """A fault that is never the learner's, as when no child could be started."""


class ServerLeft(MachineFault):
    """A fork server is gone without a reason: it was killed, or has left because it was tampered with."""
