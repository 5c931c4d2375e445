"""A Dask cluster as a person starts it: a scheduler and workers, processes of their own that can be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from pathlib import Path

from tests.classroom.instructor import BIN, environment
from tests.waiting import NEVER, until


class DaskCluster:
    """A context; what it started ends with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._processes: list[subprocess.Popen] = []

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            self.kill(process)

    def scheduler(self) -> subprocess.Popen:
        command = ["scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        process = self._start(command)
        until(lambda: process.poll() is not None or listens(self.port))
        assert process.poll() is None
        return process

    def worker(self, *options: str, **more: str) -> subprocess.Popen:
        """A worker that judges one text at a time, and that nobody starts anew when it dies."""
        command = ["worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *options]
        return self._start(command, **more)

    def _start(self, command: list[str], **more: str) -> subprocess.Popen:
        log = (self.folder / f"{command[0]}-{len(self._processes)}.log").open("w")
        process = subprocess.Popen(
            [BIN / "dask", *command], cwd=self.folder, env=environment(**more), stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        self._processes.append(process)
        return process

    @staticmethod
    def kill(process: subprocess.Popen) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(NEVER)


def listens(port: int) -> bool:
    """True where somebody takes connections at this port of this machine."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
