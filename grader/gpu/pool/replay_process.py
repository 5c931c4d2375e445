"""The parent's end of the replay processes: started ahead, asked under a time limit, replaced when ruined."""

from __future__ import annotations

import os

from grader.processes.asked_process import PythonProcess
from grader.processes.environment import ONE_THREAD
from grader.processes.faults import ProcessEnded

START_LIMIT = 120.0  # seconds to import torch and make a context


class ReplayEnded(ProcessEnded):
    """A replay process is gone. how: "time", "failed" (`detail`: the driver's error), "no-room" (memory), or "died"."""


class Replayer(PythonProcess):
    """A replay process on the GPU with this UUID. It starts at once; the first request waits until it is ready."""

    Ended = ReplayEnded

    def __init__(self, uuid: str) -> None:
        self._ready = False
        self.samples = 0  # samples of speed that it has taken
        super().__init__("grader.gpu.inside.process", uuid, environment={**os.environ, **ONE_THREAD})

    def wait_until_ready(self) -> None:
        """Waits until the process has its context; raises ReplayEnded if it does not come up."""
        if self._ready:
            return
        try:
            self._exchanged(START_LIMIT)
        except ReplayEnded:
            raise ReplayEnded("died", "it did not come up") from None
        self._ready = True

    def ask(self, request: dict, blob: bytes, limit: float) -> tuple[dict, bytes]:
        """Returns the reply and its blob. Raises ReplayEnded, after which the process is ended.

        `limit`: the seconds, once the process is ready, to send the request and to receive the reply.
        """
        self.wait_until_ready()
        reply, reply_blob = self._exchanged(limit, request, blob)
        if reply["kind"] in ("failed", "no-room", "died"):
            self.end()
            raise ReplayEnded(reply["kind"], str(reply.get("message", "")))
        return reply, reply_blob

    def _how_it_ended(self, error: Exception) -> ReplayEnded:
        return ReplayEnded("died", str(error) or "the replay process ended")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None
