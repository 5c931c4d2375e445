"""The parent's end of the replay processes: started ahead, asked under a time limit, replaced when one is ruined."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time

from grader.processes.environment import ONE_THREAD, trusted_path
from grader.wire.frames import LENGTHS, ProtocolError, pack, unpack_header, unpack_lengths

START_LIMIT = 120.0  # seconds to import torch and make a context
BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from grader.gpu.inside.process import main; main(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])"
)


class ReplayEnded(Exception):
    """A replay process is gone. how: "time"; "failed": the driver's error is the detail; "no-room"; "died"."""

    def __init__(self, how: str, detail: str):
        super().__init__(detail)
        self.how, self.detail = how, detail


class Replayer:
    """One replay process, for the GPU with this UUID."""

    def __init__(self, uuid: str) -> None:
        theirs_in, self._request = os.pipe()
        self._reply, theirs_out = os.pipe()
        self._ready = False
        self.samples = 0  # of speed that it has taken
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", BOOT, json.dumps(trusted_path()), str(theirs_in), str(theirs_out), uuid],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out), start_new_session=True, cwd="/",
            env={**os.environ, **ONE_THREAD},
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)

    def wait_until_ready(self) -> None:
        """Raises ReplayEnded if the process does not come up."""
        if self._ready:
            return
        try:
            self._guarded(lambda: self._receive(time.monotonic() + START_LIMIT))
        except ReplayEnded:
            raise ReplayEnded("died", "it did not come up") from None
        self._ready = True

    def ask(self, request: dict, blob: bytes, limit: float) -> tuple[dict, bytes]:
        """Raises ReplayEnded; after that the process is of no more use."""
        self.wait_until_ready()

        def answered():
            deadline = time.monotonic() + limit
            data = memoryview(pack(request, blob))
            while data:
                data = data[os.write(self._request, data[: 1 << 20]) :]
            return self._receive(deadline)

        reply, reply_blob = self._guarded(answered)
        if reply["kind"] in ("failed", "no-room"):
            self.end()
            raise ReplayEnded(reply["kind"], str(reply.get("message", "")))
        return reply, reply_blob

    def _guarded(self, work):
        try:
            return work()
        except (BrokenPipeError, ProtocolError) as error:
            self.end()
            raise ReplayEnded("died", str(error)) from None
        except BaseException:  # whatever interrupted it: the answer to this question would be taken for the next one's
            self.end()
            raise

    def _receive(self, deadline: float) -> tuple[dict, bytes]:
        header_bytes, blob_bytes = unpack_lengths(self._read(LENGTHS.size, deadline))
        return unpack_header(self._read(header_bytes, deadline)), self._read(blob_bytes, deadline)

    def _read(self, count: int, deadline: float) -> bytes:
        parts = []
        while count:
            ready, _, _ = select.select([self._reply], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise ReplayEnded("time", "")
            part = os.read(self._reply, min(count, 1 << 20))
            if not part:
                raise ReplayEnded("died", "the replay process ended")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Begins to end it: taking a context down takes 0.1 s."""
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
