"""Loaded by a Dask worker: its judges only wait, and while they do they need the connection with their GPU's pool.

Doors, connections and all of Dask are real; in place of the judges and the pool stand these few lines.
"""

from __future__ import annotations

import os
import select
import socket
import threading

from grader.classroom import gpus, judges
from grader.classroom.door import Offer
from grader.classroom.results import faulty

NAME, GPU, LOG = (os.environ[f"WAITING_{name}"] for name in ("NAME", "GPU", "LOG"))
SECONDS = float(os.environ["WAITING_SECONDS"])


class Pool(judges.SharedPool):
    """Tells whoever connects which GPU it is, and keeps the connection. It has no process."""

    alive = True

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid

    def serve(self, connection: socket.socket) -> None:
        threading.Thread(target=self._keep, args=[connection.dup()], daemon=True).start()

    def _keep(self, connection: socket.socket) -> None:
        with connection:
            connection.sendall(self.uuid.encode().ljust(40))
            if "WAITING_POOL" not in os.environ:
                connection.recv(1)

    def end(self) -> None:
        pass


class Judge:
    def __init__(self, level: str, gpu: str, connected=None, ahead: bool = True) -> None:
        self._connected, self._connection, self._uuid = connected, None, "nothing"

    def judge(self, request: dict) -> dict:
        result = {"exercise": request["exercise"], "outcome": "pass", "tests": [], "points": 0, "fault": None}
        if self._connected and self._connection is None:
            try:
                self._connection = self._connected()
            except OSError as error:
                return {**faulty(request["exercise"], str(error)), "unconnected": True}
            self._uuid = self._connection.recv(40, socket.MSG_WAITALL).decode().strip()
        if select.select([self._connection] if self._connection else [], [], [], SECONDS)[0]:
            self.end()
            return {**faulty(request["exercise"], "the pool is gone"), "unconnected": True}
        with open(LOG, "a") as log:
            log.write(f"{NAME} with {self._uuid}\n")
        return result

    def end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


if "WAITING_DOOR" in os.environ:  # what a firewall makes of it
    judges.Door = lambda *given: type(
        "Wall", (), {"offer": Offer(given[0], given[1], 1, b""), "close": lambda self: 0}
    )()
gpus.identifiers = lambda: [GPU] if GPU else []
judges.WarmJudge, judges.SharedPool = Judge, Pool
