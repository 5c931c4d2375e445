"""The parent's end of a process that is asked in frames over two pipes, one request at a time, under a deadline.

Children, compilers and replay processes differ in how they start and end. How they are asked is the same, and stands
here once, with the deadline that no answer may pass.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from grader.processes.call_clock import LAST_RESORT, process_times
from grader.processes.environment import python_calling
from grader.processes.faults import ProcessEnded
from grader.wire.frames import OURS, JsonObject, Limits, ProtocolError
from grader.wire.timed_frames import Deadline, received, send

MOST_WAITING = 9  # times a limit: so long a process may wait for a core, which is a tenth of a core on the whole


class AskedProcess:
    """Frames to a process and back. A derived class starts the process, ends it, and tells how it has ended.

    `limits`: how large its answers may be. `_theirs`: its ends of the pipes, to be closed here once it has them.
    """

    Ended: type[ProcessEnded] = ProcessEnded  # the error that tells that a request took too long

    def __init__(self, limits: Limits = OURS) -> None:
        self._limits = limits
        theirs_in, self._request = os.pipe()
        self._reply, theirs_out = os.pipe()
        self._theirs = theirs_in, theirs_out
        for ours in (self._request, self._reply):
            os.set_blocking(ours, False)

    def _how_it_ended(self, error: Exception) -> Exception:
        """Returns the error to raise for a BrokenPipeError, an EOFError or a ProtocolError."""
        raise NotImplementedError

    def _answer(
        self, deadline: Deadline, header: JsonObject | None = None, blob: bytes = b""
    ) -> tuple[JsonObject, bytes]:
        """Sends a frame, if there is one, and returns the next one that comes.

        Raises Ended("time", "") at the deadline, and what _how_it_ended returns if the process is gone.
        """
        with self._told_how_it_ended():
            if header is not None:
                send(self._request, header, blob, deadline)
            return self._receive(deadline)

    def _receive(self, deadline: Deadline) -> tuple[JsonObject, bytes]:
        return received(self._reply, deadline, self._limits)

    @contextlib.contextmanager
    def _told_how_it_ended(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise self.Ended("time", "") from None
        except (BrokenPipeError, EOFError, ProtocolError) as error:
            raise self._how_it_ended(error) from None

    @property
    def has_ended(self) -> bool:
        """True once its pipes are closed."""
        return self._request < 0

    def _close_pipes(self) -> None:
        """Closes each pipe once: another thread may end the process too, and a closed number is soon another file's."""
        ours, (self._request, self._reply) = {self._request, self._reply}, (-1, -1)
        for descriptor in ours - {-1}:
            os.close(descriptor)


class PythonProcess(AskedProcess):
    """A process with a Python of its own: it calls `main` of a module of ours with ends of the pipes and `arguments`.

    It starts at once, in a process group of its own. An error ends it, an interrupt too: the answer to a request that
    nobody waits for would be taken for the next request's.
    """

    def __init__(
        self, module: str, *arguments: object, environment: dict[str, str],
        folder: str | Path = "/", stderr: int | IO[bytes] = subprocess.DEVNULL,
    ) -> None:  # fmt: skip
        super().__init__()
        self._process = subprocess.Popen(
            python_calling(module, *self._theirs, *arguments),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
            pass_fds=self._theirs, start_new_session=True, cwd=folder, env=environment,
        )  # fmt: skip
        for theirs in self._theirs:
            os.close(theirs)

    @property
    def pid(self) -> int:
        return self._process.pid

    def _exchanged(self, limit: float, header: JsonObject | None = None, blob: bytes = b"") -> tuple[JsonObject, bytes]:
        """Returns what _answer returns, within `limit` seconds for which the process need not wait for a core."""
        try:
            return self._answer(self._deadline(limit), header, blob)
        except BaseException:
            self.end()
            raise

    def _deadline(self, limit: float) -> Deadline:
        """Returns the deadline of a request that begins now. It moves on by the time that the process waits for a core:
        by MOST_WAITING times the limit, and by LAST_RESORT, at most."""
        at, queued, most = time.monotonic() + limit, self._seconds_in_queue(), min(LAST_RESORT, MOST_WAITING * limit)
        return Deadline(at, lambda: at + min(most, max(0.0, self._seconds_in_queue() - queued)))

    def _seconds_in_queue(self) -> float:
        """Returns how long the process has waited for a core since it began; 0 where that is not known."""
        times = process_times(self._process.pid)
        return times.queued if times else 0.0

    def kill(self) -> None:
        """Kills the process and all that it has started, without waiting; a thread that waits for its answer learns
        that it is gone."""
        if self._process.returncode is None:
            kill_group(self._process.pid)

    def end(self) -> None:
        """Kills the process and closes its pipes. May be called again."""
        if not self.has_ended:
            self.kill()
            self._process.wait()
            self._close_pipes()


def kill_group(leader: int) -> None:
    """Kills a process and all that it has started, at the same moment: a fork that is under way comes to nothing.

    Processes that a submission starts cannot leave the child's process group: see grader/child/seccomp.py.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
