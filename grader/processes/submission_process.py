"""A submission in a child: loaded when first asked, asked again in a new child when one has died."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from grader.processes.child import ChildProcess
from grader.processes.faults import ChildEnded, MachineFault
from grader.submission.text import Submission
from grader.wire.fence import Fence
from grader.wire.frames import ProtocolError
from grader.wire.messages import Failure, GpuModel
from grader.wire.reply import failure_of

LOAD_LIMIT = 10.0  # seconds for the submission's own import
MOST_WAITING = 6.0  # seconds for something else than a core, of all calls together
LIMIT_AFTER_AN_END = 2.0  # once a call ended its process, the next ones get less, so that a run ends

T = TypeVar("T")


class Runner:
    """The children of one submission, one at a time, that record its calls for `model`.

    `sandbox`: as in ChildProcess.
    """

    def __init__(self, submission: Submission, filename: str, model: GpuModel, sandbox: int | None = None) -> None:
        self.submission, self.filename, self.model, self.sandbox = submission, filename, model, sandbox
        self.load_failure: Failure | None = None
        self.load_ended: ChildEnded | None = None  # the child died or hung while it imported the submission
        self.constants: dict[str, int] = {}  # the module's own block sizes
        self.printed = ""
        self.printed_bytes = 0
        self.versions: dict[str, str] = {}
        self.fence: Fence | None = None  # around its children; None before there was one
        self._child: ChildProcess | None = None
        self._has_ended = False
        self._first_limit = ""  # of the first call that took longer
        self._waiting = 0.0  # seconds that the children before this one have waited
        self._computed = 0.0  # seconds of a core that they took

    def ask(self, request: dict, blob: bytes, limit: float, read: Callable[[dict, bytes], T]) -> T:
        """The answer to a request, as `read` understands it. Raises ChildEnded."""
        limit = min(limit, LIMIT_AFTER_AN_END) if self._has_ended else limit
        try:
            self._load()
            self._refuse_to_wait_longer()
            return read(*self._answer(request, blob, limit))
        except ChildEnded as ended:
            self._has_ended = True
            self.end()
            raise self._with_first_limit(ended) from None
        except ProtocolError as error:
            self.end()
            raise ChildEnded("garbled", str(error)) from None

    def _refuse_to_wait_longer(self) -> None:
        """Calls that sleep a little, each within its limit, would make a run of a hundred calls take minutes."""
        if self._waiting + self._child.seconds_waiting > MOST_WAITING:
            raise ChildEnded("time", f"the {MOST_WAITING:g} s that all its calls together may wait")

    def _with_first_limit(self, ended: ChildEnded) -> ChildEnded:
        """A later call has little time: that the first one had more is part of what is told."""
        if ended.how != "time" or ended is self.load_ended:
            return ended
        if self._first_limit:
            limits = f"{self._first_limit}, nor another call within {ended.detail}"
            return ChildEnded("time", limits, ended.where)
        self._first_limit = ended.detail
        return ended

    def _load(self) -> None:
        if self.load_ended is not None:
            raise self.load_ended
        if self._child is not None and self._child.loaded:
            return
        self._child = self._child or ChildProcess(self.model, self.sandbox)
        self.fence = self._child.fence
        try:
            request = {"kind": "load", "filename": self.filename}
            answer, _ = self._answer(request, self.submission.source, LOAD_LIMIT)
        except ChildEnded as ended:
            self.load_ended = ended
            raise
        self._child.loaded = True
        self.versions = self._child.versions
        self.load_failure = failure_of(answer.get("error"))
        constants = answer.get("constants")
        if isinstance(constants, dict):
            self.constants = {str(k): v for k, v in constants.items() if type(v) is int}

    def _answer(self, header: dict, blob: bytes, limit: float) -> tuple[dict, bytes]:
        answer, answer_blob = self._child.ask(header, blob, limit)
        if answer["kind"] == "fault":
            self.end()
            last = str(answer.get("message", "")).strip().splitlines()[-1:]
            raise MachineFault(f"the process that runs a submission failed in our own code: {''.join(last)[:200]}")
        return {**answer, "processes": self._child.started.processes}, answer_blob

    @property
    def fenced(self) -> bool:
        """Whether the kernel keeps the child from writing outside of its folder."""
        return self.fence is None or self.fence.keeps_files

    def kill(self) -> None:
        """Ends a call that another thread waits for; that thread clears up."""
        if (child := self._child) is not None:
            child.kill()

    def end(self) -> None:
        if self._child is not None:
            self._computed += self._child.seconds_of_a_core
            self._child.end()
            self.printed = self.printed or self._child.printed
            self.printed_bytes += self._child.printed_bytes
            self._waiting += self._child.seconds_waiting
            self._child = None

    @property
    def seconds_of_a_core(self) -> float:
        """Returns how long its children have had a core so far."""
        child = self._child
        return self._computed + (child.seconds_of_a_core if child else 0.0)
