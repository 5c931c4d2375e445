"""A Dask cluster as a person starts it: a scheduler and workers, processes of their own that can be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections import Counter
from pathlib import Path

from tests.classroom.instructor import BIN, environment
from tests.waiting import NEVER, until

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
        self._log, self._let_go = folder / "waiting", folder / "let go"

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

    # ---- workers whose judges only wait ----------------------------------------------------------------------------

    def waiting_worker(self, name: str, judges: int, gpu: bool = False, **more: str) -> subprocess.Popen:
        """A worker each of whose judges holds its text until that is let go: tests/classroom/waiting_judges.py.

        The other methods call such a judge by its worker and the GPU that it is connected with: "WORKER with GPU", or
        "WORKER with nothing".
        """
        options = ["--nthreads", str(judges), "--preload", str(WAITING), *(["--resources", f"GPU={judges}"] * gpu)]
        more |= {"WAITING_NAME": name, "WAITING_GPU": f"GPU-{name}" if gpu else ""}
        return self.worker(*options, WAITING_LOG=str(self._log), WAITING_LET_GO=str(self._let_go), **more)

    def let_go(self, *texts: str) -> None:
        """From now on nobody holds these texts; nobody holds any text if none is named."""
        self._let_go.mkdir(exist_ok=True)
        for text in texts or ["all"]:
            (self._let_go / text).touch()

    def all_held(self, who: str, count: int) -> list[str]:
        """Waits until judges called `who` hold so many texts at the same time; returns these texts."""
        return until(lambda: len(held := self.held(who)) == count and held, self.noted)

    def held(self, who: str) -> list[str]:
        last = {(text, by): what for what, text, by in self._notes()}
        return [text for (text, by), what in last.items() if by == who and what == "begins"]

    def begun(self) -> Counter[str]:
        """Counts the texts that each has begun, also where it did not end them."""
        return Counter(by for what, _, by in self._notes() if what == "begins")

    def judged(self) -> Counter[str]:
        """Counts the texts that each has judged."""
        return Counter(by for what, _, by in self._notes() if what == "judged")

    def noted(self) -> str:
        """Returns line by line what judges began and how it ended, in this order."""
        return self._log.read_text() if self._log.exists() else ""

    def _notes(self) -> list[list[str]]:
        """Returns (begins, judged or fails; the text; who) for each line that is written to its end."""
        return [line.split("\t") for line in self.noted().rpartition("\n")[0].splitlines()]

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
