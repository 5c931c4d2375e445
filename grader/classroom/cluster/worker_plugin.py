"""The plugin of a Dask worker: warm judges, one for each of its threads. Requests and results are plain data."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import LifoQueue

from distributed import Worker, WorkerPlugin, get_worker

from grader.classroom.cluster import gpus
from grader.classroom.cluster.warm_judge import WarmJudge
from grader.classroom.result_store import faulty
from grader.gpu.pool.shared_pool import SharedPool

GPU = "GPU"  # the resource that a Dask worker with a GPU announces


class Judges(WorkerPlugin):
    """Starts a worker's judges with the worker, before any text is known, and ends them with it.

    `level`: how submissions are isolated. `pins`: the UUID of the only GPU that each of the workers numbered 0, 1, ...
    may see; if empty, a worker uses the first GPU of its environment.
    """

    def __init__(self, name: str, level: str, pins: list[str]) -> None:
        self.name, self.level, self.pins = name, level, pins

    def setup(self, worker: Worker) -> None:
        self._ending = False
        self._pool: SharedPool | None = None
        self._pooling = threading.Lock()
        self._gpu = self.pins[worker.name] if self.pins else next(iter(gpus.identifiers()), "")
        connected = self._connected if self._gpu else None
        self._judges = [WarmJudge(self.level, self._gpu, connected) for _ in range(worker.state.nthreads)]
        self._idle: LifoQueue[WarmJudge] = LifoQueue()
        for judge in self._judges:
            self._idle.put(judge)

    async def teardown(self, worker: Worker) -> None:
        self._ending = True
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        with ThreadPoolExecutor(len(self._judges)) as side_by_side:
            list(side_by_side.map(WarmJudge.end, self._judges))
        if self._pool is not None:
            self._pool.end()

    def judge(self, request: dict) -> dict:
        judge = self._idle.get()
        try:
            if self._ending:
                return faulty(request["exercise"], "the worker ends")
            return judge.judge(request)
        finally:
            self._idle.put(judge)

    def _connected(self) -> socket.socket:
        """Returns a connection with the pool of the GPU; a new pool starts if there was none, or the last is gone."""
        with self._pooling:
            if self._pool is None or not self._pool.alive:
                self._pool = SharedPool(self._gpu)
            return self._pool.connection()


def judge_there(judges: str, request: dict) -> dict:
    """Returns the judge's result for a request, with this worker's address as "worker"; a Dask task.

    `judges`: the name of the worker's plugin.
    """
    worker = get_worker()
    plugin = worker.plugins.get(judges)
    if not isinstance(plugin, Judges):
        return faulty(request["exercise"], "the worker has no judges any more")
    return {**plugin.judge(request), "worker": worker.address}
