"""The parent's end of the process that makes texts of a learner's kernels, replaced when it has ended."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from grader.processes.child import ChildProcess
from grader.processes.faults import ChildEnded, MachineFault, fault_told
from grader.submission.text import Submission, lines_reached
from grader.wire.fields import checked
from grader.wire.frames import JsonObject, ProtocolError
from grader.wire.messages import FRONT_END, Failure, GpuModel
from grader.wire.recorded_call import Recipe
from grader.wire.reply import failure_of

LIMIT = 8.0  # seconds of a core for the text of one kernel
LIMIT_AFTER_AN_END = 2.0  # once a text ended its process, so that a run ends
MOST_COMPUTING = 10.0  # seconds of a core for all texts of a run; those of 17 solutions take 1.2 at most
MOST_TEXT_BYTES, MOST_BYTES = 8 << 20, 64 << 20  # of a text, and of all that a run keeps
Constants = Mapping[str, int]
NONE: Constants = MappingProxyType({})


@dataclass(frozen=True)
class KernelText:
    """The text made of a recipe: `source`, or a failure. `fits`: False if Triton passes over a configuration for it."""

    source: str = ""
    failure: Failure | None = None
    fits: bool = True


class FrontEnd:
    """Makes the texts of one submission's kernels for `model`, each once. `sandbox`: as in ChildProcess."""

    def __init__(self, submission: Submission, filename: str, model: GpuModel, sandbox: int | None = None) -> None:
        self.submission, self.filename, self.model, self.sandbox = submission, filename, model, sandbox
        self.printed = ""  # by tl.static_print
        self.printed_bytes = 0
        self._child: ChildProcess | None = None
        self._made: dict[tuple[bytes | tuple[str, ...], str], KernelText | ChildEnded] = {}  # by file and recipe
        self._one_at_a_time = threading.Lock()  # the judge, and the thread that records ahead
        self._has_ended = False
        self._computed = 0.0  # seconds of a core that the processes before this one took
        self._bytes = 0  # of all texts so far

    def text(self, recipe: Recipe, small_dots: bool = False, constants: Constants = NONE) -> KernelText:
        """Returns the text of a recipe's kernel in a call that sets these constants of the file, or the failure
        instead.

        Raises ChildEnded for a text whose making ended the process, each time that it is requested, and MachineFault.
        """
        told = repr((recipe, small_dots, sorted(constants.items())))
        key = self.submission.source, told
        with self._one_at_a_time:
            if key not in self._made:
                same = lines_reached(self.submission, told), told  # another file may differ elsewhere alone
                if same not in self._made:
                    try:
                        self._made[same] = self._text(vars(recipe) | {"set": dict(constants)}, small_dots)
                    except ChildEnded as ended:
                        self._made[same] = ended
                self._made[key] = self._made[same]
            made = self._made[key]
        if isinstance(made, ChildEnded):
            raise made
        return made

    def take(self, submission: Submission) -> None:
        """Has the same process make the texts of another file: for files of ours."""
        self.submission = submission

    def _text(self, recipe: JsonObject, small_dots: bool) -> KernelText:
        limit, left = LIMIT_AFTER_AN_END if self._has_ended else LIMIT, MOST_COMPUTING - self.seconds_of_a_core
        of_all = ChildEnded("time", f"the {MOST_COMPUTING:g} s of a core that compiling all its kernels may take")
        if left <= 0:
            raise of_all
        try:
            made = self._answer(recipe, small_dots, min(limit, left))
        except ChildEnded as ended:
            raise of_all if ended.how == "time" and left < limit else ended from None
        self._bytes += len(made.source)
        if self._bytes > MOST_BYTES:
            reason = f"the compiler's texts of all calls have more than {MOST_BYTES >> 20} MiB"
            return KernelText(failure=Failure("not-recordable", message=reason))
        return made

    def _answer(self, recipe: JsonObject, small_dots: bool, limit: float) -> KernelText:
        self._child = self._child or ChildProcess(self.model, self.sandbox, FRONT_END)
        request = {"kind": "text", "filename": self.filename, "recipe": recipe, "small_dots": small_dots}
        try:
            answer, blob = self._child.ask(request, self.submission.source, limit)
            if (fault := fault_told(answer)) is not None:
                raise MachineFault(f"the front end failed in our own code: {fault}")
            made = _read(answer, blob)
        except (ChildEnded, MachineFault):
            self._has_ended = True
            self._end_child()
            raise
        except ProtocolError as error:
            self._end_child()
            raise MachineFault(f"the front end gave an answer that cannot be read: {error}") from None
        if answer.get("unfit"):
            self._end_child()
        return made

    @property
    def seconds_of_a_core(self) -> float:
        """The seconds that its processes have had a core so far."""
        child = self._child
        return self._computed + (child.seconds_of_a_core if child else 0.0)

    def kill(self) -> None:
        """Ends the making of a text that another thread waits for; that thread clears up."""
        if (child := self._child) is not None:
            child.kill()

    def end(self) -> None:
        with self._one_at_a_time:
            self._end_child()

    def _end_child(self) -> None:
        if self._child is not None:
            self._computed += self._child.seconds_of_a_core
            self._child.end()
            self.printed = self.printed or self._child.printed
            self.printed_bytes += self._child.printed_bytes
            self._child = None


def _read(answer: JsonObject, blob: bytes) -> KernelText:
    failure = failure_of(answer.get("failure"))
    if len(blob) > MOST_TEXT_BYTES:
        failure = Failure("not-recordable", message=f"the compiler's text has more than {MOST_TEXT_BYTES >> 20} MiB")
    if failure is not None:
        return KernelText(failure=failure, fits=checked(answer.get("fits"), "bool", "fits"))
    return KernelText(blob.decode("utf-8", "replace"))
