"""The parent's end of the process that tells a story: it waits for messages, and names the kernel that ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from grader.learn.story.messages import Doing, Message, StorySpeeds, WholeStory, Wrong, read
from grader.processes.asked_process import PythonProcess
from grader.processes.environment import PATIENT
from grader.processes.faults import MachineFault, ProcessEnded
from grader.wire.frames import ProtocolError

CALL_LIMIT = 60  # seconds for one call of a kernel, or one import of its file
OTHER_LIMIT = 600  # seconds for what else the story does: torch.compile takes a minute


class Teller(PythonProcess):
    """A process that runs learners' files as `python file.py` would: nothing that it says is a verdict."""

    def __init__(self, story: Path, root: Path, files: dict[str, list[str]], gpu: str, count: int) -> None:
        environment = {**os.environ, **PATIENT, "TRITON_INTERPRET": "0" if gpu else "1"}
        if not gpu:
            environment["CUDA_VISIBLE_DEVICES"] = ""  # one that the judge cannot use is no place for a story
        super().__init__(
            "grader.learn.story.telling", str(story), files, gpu, count,
            environment=environment, folder=root,
        )  # fmt: skip
        self._doing = Doing("")

    def messages(self, show: Callable[[str], None]) -> Iterator[WholeStory | Wrong | StorySpeeds]:
        """Yields what comes of the story, until the process is done. `show`: gets what it does now, as a text.

        Raises MachineFault where the process ends and no kernel is to blame.
        """
        while True:
            try:
                message = self._next()
            except EOFError:
                return
            except (ProcessEnded, ProtocolError) as error:
                yield self._ended_by(error)
                return
            if isinstance(message, Doing):
                self._doing = message
                show(message.what or f"token {message.token}: {message.kernel}")
            else:
                self._doing = Doing("")
                yield message

    def _next(self) -> Message:
        header, _ = self._exchanged(CALL_LIMIT if self._doing.kernel else OTHER_LIMIT)
        return read(header)

    def _how_it_ended(self, error: Exception) -> Exception:
        status = self._process.wait()
        return EOFError() if status == 0 else ProcessEnded("exit", str(status))

    def _ended_by(self, error: Exception) -> Wrong:
        doing = self._doing
        if not doing.kernel:
            how = f"{error.how} {error.detail}".strip() if isinstance(error, ProcessEnded) else str(error)
            raise MachineFault(f"the process that tells the story has ended ({how})")
        if isinstance(error, ProcessEnded) and error.how == "time":
            why = f"it has not come to an end after {CALL_LIMIT} s"
        elif isinstance(error, ProcessEnded) and int(error.detail) < 0:
            why = f"its process was ended by {signal.Signals(-int(error.detail)).name}: it may have left its tensors"
        else:
            why = "its process has ended"
        return Wrong(doing.kernel, doing.token, raised=why)
