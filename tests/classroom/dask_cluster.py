"""A Dask cluster as a person starts it: a scheduler and workers, processes of their own that can be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.classroom.instructor import BIN, environment

# Loaded by a worker: it has a GPU as far as it can tell, which judges nothing, and writes down who asks for it.
WITH_A_GPU = """
import socket, threading
from grader.classroom import gpus, judges
from grader.gpu.frames import received, send

class Pool:
    alive = True

    def __init__(self, uuid):
        assert uuid == "GPU-1"

    def connection(self):
        ours, theirs = socket.socketpair()
        self.serve(theirs)
        return ours

    def serve(self, connection):
        threading.Thread(target=self._answer, args=[connection.dup()], daemon=True).start()

    def _answer(self, connection):
        with connection, connection.makefile("rwb") as frames:
            received(frames)
            with open({log!r}, "a") as log:
                print({name!r}, connection.family.name, file=log)
            send(frames, {{"kind": "device", "why": "it is a GPU of a test"}})
            frames.read(1)

    def end(self):
        pass

gpus.identifiers = lambda: ["GPU-1"]
judges.SharedPool = Pool
"""


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

    def gpu_worker(self, name: str) -> subprocess.Popen:
        """One that lends a GPU of this name, or so it seems."""
        preload = self.folder / f"{name}.py"
        preload.write_text(WITH_A_GPU.format(log=str(self.folder / "asked"), name=name))
        return self.worker("--resources", "GPU=1", "--preload", str(preload))

    def asked(self) -> set[str]:
        """Whose GPU was asked for, and how: by judges of its own worker (AF_UNIX), or of another one (AF_INET)."""
        log = self.folder / "asked"
        return set(log.read_text().splitlines()) if log.exists() else set()

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
