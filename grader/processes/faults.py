"""The two reasons why a process that we started is gone: its submission, or the machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.processes.where import Where


@dataclass
class ChildEnded(Exception):
    """The child is gone.

    how, with its detail: "exit" (status), "signal" (number), "time" (the limit), "processes" (how many it may have),
    "garbled" (what was wrong).
    """

    how: str
    detail: str
    where: Where = field(default_factory=Where, compare=False)  # where it was when its time was used up


class MachineFault(Exception):
    """A fault that is never the learner's, as when no child could be started."""


class ServerLeft(MachineFault):
    """A fork server is gone without a reason: it was killed, or has left because it was tampered with."""
