"""A submission in a child: imported when first asked, asked again in a new child when a child has ended.

Each call has its limits. A hundred calls that keep to them could still make a run take minutes, and gigabytes: so all
calls of one submission share an account.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NoReturn, TypeVar

from grader.processes.child import ChildProcess
from grader.processes.faults import ChildEnded, fault_told
from grader.processes.where import Where
from grader.submission.text import Submission
from grader.wire.fence import Fence
from grader.wire.frames import SUBMISSIONS, JsonObject, Limits, ProtocolError
from grader.wire.messages import Failure, GpuModel
from grader.wire.printable import one_line
from grader.wire.reply import failure_of

LOAD_LIMIT = 10.0  # seconds of a core for the submission's own import, in all its processes together
MOST_COMPUTING = 10.0  # seconds of a core for all calls together; in a usual run they take 0.3 to 2
MOST_WAITING = 6.0  # seconds for something other than a core, of all calls together
LIMIT_AFTER_AN_END = 2.0  # once a call ended its process, the next ones get less, so that a run ends
MOST_CONSTANTS = 256

MOST_HEADER_BYTES = 16 << 20  # read, they take twenty times as much memory; in a usual run they have less than 1 MiB
MOST_BYTES = 128 << 20  # in a usual run they have less than 10 MiB

T = TypeVar("T")


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


class SubmissionProcess:
    """The children of one submission, one at a time, that record its calls for `model`.

    `sandbox`: as in ChildProcess. `spent`: the account shared with other runners of the same submission in this run.
    """

    def __init__(
        self,
        submission: Submission,
        filename: str,
        model: GpuModel,
        sandbox: int | None = None,
        spent: Spent | None = None,
    ) -> None:
        self.submission, self.filename, self.model, self.sandbox = submission, filename, model, sandbox
        self.spent = spent or Spent()
        self.load_failure: Failure | None = None
        self.load_ended: ChildEnded | None = None  # the child died or hung while it imported the submission
        self.constants: dict[str, int] = {}  # the module's own block sizes
        self.printed = ""
        self.printed_bytes = 0
        self.versions: dict[str, str] = {}
        self.fence: Fence | None = None  # around its children; None before there was one
        self._child: ChildProcess | None = None
        self._has_ended = False
        self._first: ChildEnded | None = None  # the first call that took longer
        self._computed = 0.0  # seconds of a core that the children before this one took
        self._seen = 0.0, 0.0  # seconds of a core and of waiting of this child, as far as they stand in `spent`

    def ask(
        self,
        request: JsonObject,
        blob: bytes,
        limit: float,
        read: Callable[[JsonObject, bytes], T],
        counted: bool = True,
    ) -> T:
        """Returns the answer to a request, as `read` understands it. `limit`: seconds of a core. `counted`: whether
        what the child has used is added up first; that takes longer than a short answer. Raises ChildEnded."""
        limit = min(limit, LIMIT_AFTER_AN_END) if self._has_ended else limit
        try:
            if self.spent.used_up is not None:
                raise self.spent.used_up
            self._load()
            answer = self._within_what_is_left if counted else self._answer
            return read(*answer(request, blob, limit))
        except ChildEnded as ended:
            self._has_ended = True
            self.end()
            raise self._with_first_limit(ended) from None
        except ProtocolError as error:
            self.end()
            raise ChildEnded("garbled", str(error)) from None

    def _within_what_is_left(self, request: JsonObject, blob: bytes, limit: float) -> tuple[JsonObject, bytes]:
        """Returns the answer to a call that may take `limit` seconds of a core, but no more than is left for all
        calls."""
        self.spent.computing += self._seconds_since_counted()
        left = MOST_COMPUTING - self.spent.computing
        if self.spent.waiting > MOST_WAITING:
            self._use_up(f"the {MOST_WAITING:g} s that all its calls together may wait")
        of_all_calls = f"the {MOST_COMPUTING:g} s of a core that all its calls together may take"
        if left <= 0:
            self._use_up(of_all_calls)
        try:
            answer, answer_blob = self._answer(request, blob, min(limit, left))
            return {**answer, "processes": self._started().started.processes}, answer_blob
        except ChildEnded as ended:
            if ended.how == "time" and left < limit:
                self._use_up(of_all_calls, ended.where)
            raise

    def take(self, submission: Submission) -> None:
        """Has the same child import another file: for files of ours, which keep nothing that another would meet."""
        self.submission = submission
        self.load_failure = self.load_ended = None
        if self._child is not None:
            self._child.loaded = False

    def imported(self) -> dict[str, int]:
        """Imports the file where that has not been done yet, and returns its block sizes. Raises ChildEnded."""
        self._load()
        return self.constants

    def _use_up(self, limit: str, where: Where | None = None) -> NoReturn:
        """Raises ChildEnded, now and in each further call. The reason is the first call that took too long by itself,
        if any: it says more than the limit of all calls."""
        used_up = ChildEnded("time", limit, where or Where())
        self.spent.used_up = replace(self._first, where=self._best_where(used_up)) if self._first else used_up
        raise self.spent.used_up

    def _seconds_since_counted(self) -> float:
        """Returns how long the child has had a core since this was last called; adds how long it waited to `spent`."""
        child, before = self._started(), self._seen
        seen = child.seconds_of_a_core, child.seconds_waiting
        self._seen = seen
        self.spent.waiting += max(0.0, seen[1] - before[1])
        return max(0.0, seen[0] - before[0])

    def _with_first_limit(self, ended: ChildEnded) -> ChildEnded:
        """Returns the error to raise. A later call has little time: its error also tells how much the first call
        had."""
        if ended.how != "time" or ended is self.load_ended or ended is self.spent.used_up:
            return ended
        if self._first is None:
            self._first = ended
            return ended
        limits = f"{self._first.detail}, and another call of it after {ended.detail}"
        return ChildEnded("time", limits, self._best_where(ended))

    def _best_where(self, ended: ChildEnded) -> Where:
        return self._first.where if self._first and self._first.where.line else ended.where

    def _load(self) -> None:
        if self.load_ended is not None:
            raise self.load_ended
        if self._child is not None and self._child.loaded:
            return
        child = self._started()
        self.fence = child.fence
        try:
            answer = self._imported()
            self.load_failure = failure_of(answer.get("error"))
        except ChildEnded as ended:
            self.load_ended = ended
            raise
        except ProtocolError as error:
            self.load_ended = ChildEnded("garbled", str(error))
            raise self.load_ended from None
        child.loaded = True
        self.versions = child.versions
        self.constants = _block_sizes(answer.get("constants"))

    def _started(self) -> ChildProcess:
        """Returns the child, after starting it where there is none."""
        self._child = self._child or ChildProcess(self.model, self.sandbox, limits=self.spent.answers)
        return self._child

    def _imported(self) -> JsonObject:
        """Returns the answer to a request to import the file, within LOAD_LIMIT for all imports of it. Raises
        ChildEnded."""
        left = LOAD_LIMIT - self.spent.importing
        of_all = ChildEnded("time", f"the {LOAD_LIMIT:g} s of a core that all its processes together may take for it")
        if left <= 0:
            raise of_all
        try:
            request = {"kind": "load", "filename": self.filename}
            return self._answer(request, self.submission.source, left)[0]
        except ChildEnded as ended:
            raise replace(of_all, where=ended.where) if ended.how == "time" and left < LOAD_LIMIT else ended from None
        finally:
            self.spent.importing += self._seconds_since_counted()

    def _answer(self, header: JsonObject, blob: bytes, limit: float) -> tuple[JsonObject, bytes]:
        child = self._started()
        answer, answer_blob = child.ask(header, blob, limit)
        if (fault := fault_told(answer)) is not None:
            # Code of the file has run in there, so that this is its word: nothing it says makes a fault of ours.
            raise ProtocolError(f"the grader's part of it failed: {one_line(fault)}")
        return answer, answer_blob

    @property
    def fenced(self) -> bool:
        """True where the operating system keeps the child from writing outside of its folder, or there was no child
        yet."""
        return self.fence is None or self.fence.keeps_files

    def kill(self) -> None:
        """Ends a call that another thread waits for; that thread clears up."""
        if (child := self._child) is not None:
            child.kill()

    def end(self) -> None:
        if self._child is not None:
            self.spent.computing += self._seconds_since_counted()
            self._computed, self._seen = self._computed + self._child.seconds_of_a_core, (0.0, 0.0)
            self._child.end()
            self.printed = self.printed or self._child.printed
            self.printed_bytes += self._child.printed_bytes
            self._child = None

    @property
    def seconds_of_a_core(self) -> float:
        """The seconds that its children have had a core so far."""
        child = self._child
        return self._computed + (child.seconds_of_a_core if child else 0.0)


def _block_sizes(constants: object) -> dict[str, int]:
    """Returns the constants that a child says its file has, as far as they are names with numbers that fit a kernel."""
    if not isinstance(constants, dict):
        return {}
    fits = ((name, value) for name, value in constants.items() if type(value) is int and abs(value) < 1 << 62)
    return dict(islice(((name, value) for name, value in fits if name.isidentifier()), MOST_CONSTANTS))
