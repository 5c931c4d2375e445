"""What a Dask worker has of ours: warm judges, one for each of its threads. Only plain data comes and goes."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import LifoQueue

from distributed import Worker, WorkerPlugin, get_worker

from grader.classroom import gpus
from grader.classroom.results import faulty
from grader.classroom.warm_judge import WarmJudge
from grader.gpu.shared_pool import SharedPool


class Judges(WorkerPlugin):
    """Starts them with the worker, before any text is known, and ends them with it.

    `level`: how submissions will be shut in. `pins`: for workers numbered 0, 1, ... the one GPU that each may see; if
    there are none, it is the first one of the worker's environment.
    """

    def __init__(self, name: str, level: str, pins: list[str]) -> None:
        self.name, self.level, self.pins = name, level, pins

    def setup(self, worker: Worker) -> None:
        self._ending, self._pool, self._pooling = False, None, threading.Lock()
        self._gpu = self.pins[worker.name] if self.pins else next(iter(gpus.identifiers()), "")
        connected = self._connected if self._gpu else None
        self._judges = [WarmJudge(self.level, self._gpu, connected) for _ in range(worker.state.nthreads)]
        self._idle: LifoQueue[WarmJudge] = LifoQueue()
        for judge in self._judges:
            self._idle.put(judge)

    def teardown(self, worker: Worker) -> None:
        self._ending = True
        with ThreadPoolExecutor(len(self._judges)) as side_by_side:
            list(side_by_side.map(WarmJudge.end, self._judges))
        if self._pool is not None:
            self._pool.end()

    def _connected(self) -> socket.socket:
        """With the pool of the GPU; with another one if that is gone."""
        with self._pooling:
            if self._pool is None or not self._pool.alive:
                self._pool = SharedPool(self._gpu)
            return self._pool.connection()

    def judge(self, request: dict) -> dict:
        judge = self._idle.get()
        try:
            if self._ending:
                return faulty(request["exercise"], "the worker ends")
            return judge.judge(request)
        finally:
            self._idle.put(judge)


def judge_there(judges: str, request: dict) -> dict:
    """The task: runs on a worker, and the result says which. `judges` is the name of its plugin."""
    worker = get_worker()
    plugin = worker.plugins.get(judges)
    if plugin is None:
        return faulty(request["exercise"], "the worker has no judges any more")
    return {**plugin.judge(request), "worker": worker.address}
