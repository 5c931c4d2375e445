"""The parent's end of the torch fork server: one per process, started when the first Triton fork server is needed,
asked to fork each Triton fork server.

A process that imported torch before it knew anything may fork its torch fork server instead: see
session/judging_process.py.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
from dataclasses import asdict

from grader.processes.environment import ONE_THREAD, python_calling
from grader.wire.frames import is_hung_up
from grader.wire.messages import GpuModel

PR_SET_CHILD_SUBREAPER = 36


class TorchForkServer:
    """A process that imports torch and forks Triton fork servers. A request returns at once: it forks once it has
    imported torch.

    `process`: a Popen, or a ForkedProcess. `control`: the socket for requests. `errors`: a descriptor to read its
    stderr.
    """

    def __init__(self, process: subprocess.Popen[bytes] | ForkedProcess, control: socket.socket, errors: int) -> None:
        self.forked: list[int] = []  # process numbers of the Triton fork servers that are ready
        adopt_orphans()
        self._process, self._control, self._errors = process, control, errors
        os.set_blocking(errors, False)

    @property
    def alive(self) -> bool:
        return not is_hung_up(self._control.fileno())

    def fork(
        self, folder: str, environment: dict[str, str], model: GpuModel | None, readable: list[str],
        control: int, errors: int,
    ) -> None:  # fmt: skip
        """Asks for a Triton fork server that works in this folder, gets requests through `control`, and writes stderr
        to `errors`."""
        request = {"folder": folder, "environment": environment, "model": model and asdict(model), "readable": readable}
        socket.send_fds(self._control, [json.dumps(request).encode()], [control, errors])

    def last_lines(self) -> list[str]:
        """Returns the lines that it wrote to stderr before it ended."""
        words = b""
        with contextlib.suppress(BlockingIOError):
            words = os.read(self._errors, 1 << 16)
        return words.decode("utf-8", "replace").strip().splitlines()

    def end(self) -> None:
        """Ends the torch fork server, and each Triton fork server that does not leave by itself because a submission
        has stopped it."""
        self._control.close()
        self._process.kill()
        self._process.wait()
        os.close(self._errors)
        for pid in self.forked:
            with contextlib.suppress(ChildProcessError):  # it has left, or was never adopted
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


class ForkedProcess:
    """A fork of this process, which can be ended as a Popen is."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


_starting = threading.Lock()
_shared: list[TorchForkServer] = []


def shared_torch_fork_server() -> TorchForkServer:
    """Returns this process's torch fork server, started if there is none."""
    with _starting:
        if not _shared or not _shared[-1].alive:
            share_torch_fork_server(_started())
        return _shared[-1]


def share_torch_fork_server(server: TorchForkServer) -> None:
    """Makes this the torch fork server of this process, until the end of both."""
    _shared.append(server)
    atexit.register(server.end)


def _started() -> TorchForkServer:
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    errors, writer = os.pipe()
    try:
        process = subprocess.Popen(
            python_calling("grader.forkservers.torch_forkserver", theirs.fileno(), collects=False),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer, pass_fds=[theirs.fileno()], cwd="/",
            env=clean_environment(tempfile.gettempdir()), start_new_session=True,
        )  # fmt: skip
    finally:
        theirs.close()
        os.close(writer)
    return TorchForkServer(process, control, errors)


def clean_environment(folder: str) -> dict[str, str]:
    """Returns an environment with nothing of ours but the paths: a submission learns no secret from it."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {
        **kept,
        "LANG": "C.UTF-8",
        "HOME": folder,
        "TMPDIR": folder,
        "TRITON_HOME": folder,
        "TRITON_DEFAULT_FP_FUSION": "1",
        "CUDA_VISIBLE_DEVICES": "",  # the child never touches a GPU
        "PYTHONDONTWRITEBYTECODE": "1",
        **ONE_THREAD,
    }


def adopt_orphans() -> None:
    """Makes Linux hand orphaned descendants to this process: the Triton fork server's children, and what they leave
    behind."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
