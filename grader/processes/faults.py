"""The two reasons why a process that we started is gone: its submission, or the machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.processes.where import Where


@dataclass
class ChildEnded(Exception):
    """The child is gone.

    how: "exit" (status), "signal" (number), "time" (how much), "processes" (how many it may have), "garbled" (what was
    wrong).
    """

    how: str
    detail: str
    where: Where = field(default_factory=Where, compare=False)  # it was when its time was used up


class MachineFault(Exception):
    """Something that is never the learner's fault: no child could be started."""


class ServerLeft(MachineFault):
    """A fork server is gone, and has said no reason: it was killed, or has left because it was tampered with."""
