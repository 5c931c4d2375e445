"""The parent's end of the replay processes: started ahead, asked under a time limit, replaced when ruined."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time

from grader.processes.environment import ONE_THREAD, trusted_path
from grader.wire.frames import ProtocolError
from grader.wire.timed_frames import Deadline, received, send

START_LIMIT = 120.0  # seconds to import torch and make a context
BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from grader.gpu.inside.process import main; main(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])"
)


class ReplayEnded(Exception):
    """A replay process is gone. how: "time", "failed" (`detail`: the driver's error), "no-room" (memory), or "died"."""

    def __init__(self, how: str, detail: str):
        super().__init__(detail)
        self.how, self.detail = how, detail


class Replayer:
    """A replay process on the GPU with this UUID. It starts at once; the first request waits until it is ready."""

    def __init__(self, uuid: str) -> None:
        theirs_in, self._request = os.pipe()
        self._reply, theirs_out = os.pipe()
        os.set_blocking(self._request, False)
        self._ready = False
        self.samples = 0  # samples of speed that it has taken
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", BOOT, json.dumps(trusted_path()), str(theirs_in), str(theirs_out), uuid],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out), start_new_session=True, cwd="/",
            env={**os.environ, **ONE_THREAD},
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)

    def wait_until_ready(self) -> None:
        """Waits until the process has its context; raises ReplayEnded if it does not come up."""
        if self._ready:
            return
        try:
            self._guarded(lambda: self._receive(Deadline(time.monotonic() + START_LIMIT)))
        except ReplayEnded:
            raise ReplayEnded("died", "it did not come up") from None
        self._ready = True

    def ask(self, request: dict, blob: bytes, limit: float) -> tuple[dict, bytes]:
        """Returns the reply and its blob. Raises ReplayEnded, after which the process is ended.

        `limit`: the seconds, once the process is ready, to send the request and to receive the reply.
        """
        self.wait_until_ready()

        def answered():
            deadline = Deadline(time.monotonic() + limit)
            send(self._request, request, blob, deadline)
            return self._receive(deadline)

        reply, reply_blob = self._guarded(answered)
        if reply["kind"] in ("failed", "no-room", "died"):
            self.end()
            raise ReplayEnded(reply["kind"], str(reply.get("message", "")))
        return reply, reply_blob

    def _guarded(self, work):
        try:
            return work()
        except TimeoutError:
            self.end()
            raise ReplayEnded("time", "") from None
        except (BrokenPipeError, EOFError, ProtocolError) as error:
            self.end()
            raise ReplayEnded("died", str(error) or "the replay process ended") from None
        except BaseException:  # after an interrupt, the reply to this request would be taken for the next request's
            self.end()
            raise

    def _receive(self, deadline: Deadline) -> tuple[dict, bytes]:
        return received(self._reply, deadline)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Kills the process without waiting for its end: taking a context down takes 0.1 s."""
        self._process.kill()

    def end(self) -> None:
        if self._request < 0:
            return
        self.kill()
        self._process.wait()
        for descriptor in (self._request, self._reply):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._request = self._reply = -1
