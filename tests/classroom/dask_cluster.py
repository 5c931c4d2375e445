"""A Dask cluster as a person starts it: a scheduler and workers, processes of their own that can be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.classroom.instructor import BIN, environment

WAITING = Path(__file__).with_name("waiting_judges.py")


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
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return process
            except OSError:
                assert time.monotonic() < deadline and process.poll() is None
                time.sleep(0.1)

    def worker(self, *options: str, **more: str) -> subprocess.Popen:
        """One that judges one text at a time, and that nobody starts anew when it dies."""
        command = ["worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *options]
        return self._start(command, **more)

    def waiting_worker(
        self, name: str, judges: int, gpu: bool = False, seconds: float = 0.4, **more: str
    ) -> subprocess.Popen:
        """One whose judges only wait, for so many seconds a text: tests/classroom/waiting_judges.py."""
        options = ["--nthreads", str(judges), "--preload", str(WAITING), *(["--resources", f"GPU={judges}"] * gpu)]
        more |= {"WAITING_GPU": f"GPU-{name}" if gpu else "", "WAITING_SECONDS": str(seconds)}
        return self.worker(*options, WAITING_LOG=str(self.folder / "waited"), WAITING_NAME=name, **more)

    def waited(self) -> Counter[str]:
        """How many texts by "WORKER with GPU", or "WORKER with nothing"."""
        log = self.folder / "waited"
        return Counter(log.read_text().splitlines()) if log.exists() else Counter()

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
        process.wait(20)


def until(it_is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
