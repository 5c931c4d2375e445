"""The account of a run: seconds and bytes that all calls of one submission have used up together.

Each call has its limits. A hundred calls that keep to them could still make a run take minutes, and gigabytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.processes.faults import ChildEnded
from grader.wire.frames import SUBMISSIONS, Limits, ProtocolError

MOST_HEADER_BYTES = 16 << 20  # read, they take twenty times as much memory; in a usual run they have less than 1 MiB
MOST_BYTES = 128 << 20  # in a usual run they have less than 10 MiB


class Answers(Limits):
    """The limits of each answer, and of all answers together."""

    def __init__(self) -> None:
        super().__init__(SUBMISSIONS.header, SUBMISSIONS.frame)
        self._headers = self._bytes = 0

    def accept(self, header_bytes: int, frame_bytes: int) -> None:
        super().accept(header_bytes, frame_bytes)
        headers, all_bytes = self._headers + header_bytes, self._bytes + frame_bytes
        for what, count, most in (
            ("headers of the answers", headers, MOST_HEADER_BYTES),
            ("answers", all_bytes, MOST_BYTES),
        ):
            if count > most:
                raise ProtocolError(f"the {what} to all calls together have more than {most >> 20} MiB")
        self._headers, self._bytes = headers, all_bytes


@dataclass
class Spent:
    """The seconds and bytes used up so far. `used_up`: how the call ended that found nothing left; further calls end
    the same way."""

    importing: float = 0.0  # seconds of a core for imports, which each process makes anew
    computing: float = 0.0  # seconds of a core, in calls
    waiting: float = 0.0  # seconds for something other than a core
    answers: Answers = field(default_factory=Answers)
    used_up: ChildEnded | None = None
