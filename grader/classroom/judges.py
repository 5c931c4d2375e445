"""What a Dask worker has of ours: warm judges, one for each of its threads. Only plain data comes and goes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import LifoQueue

from distributed import Worker, WorkerPlugin, get_worker
from distributed.comm import get_address_host

from grader.classroom import gpus
from grader.classroom.lending import Door, Offer
from grader.classroom.results import faulty
from grader.classroom.warm_judge import WarmJudge
from grader.gpu.shared_pool import SharedPool

GPU = "GPU"  # the resource that a Dask worker with a GPU announces
LENT = "LENT_GPU"  # announced beside it by one whose GPU is another worker's
PATIENCE = 120  # seconds, while the GPU that was lent does not answer, for another one


class Judges(WorkerPlugin):
    """Starts them with the worker, before any text is known, and ends them with it.

    `level`: how submissions will be shut in. `pins`: for workers numbered 0, 1, ... the one GPU that each may see; if
    there are none, it is the first one of the worker's environment. `wants_gpu`: judges of a worker that announces no
    GPU wait until one is lent to it.
    """

    def __init__(self, name: str, level: str, pins: list[str], wants_gpu: bool = False) -> None:
        self.name, self.level, self.pins, self.wants_gpu = name, level, pins, wants_gpu

    def setup(self, worker: Worker) -> None:
        self._ending = False
        self._pool, self._door, self._pooling = None, None, threading.Lock()
        self._offer, self._lending = None, threading.Condition()
        if self.wants_gpu and not has_own_gpu(worker.state.total_resources):
            self._gpu, connected = "", self._borrowed
        else:
            self._gpu = self.pins[worker.name] if self.pins else next(iter(gpus.identifiers()), "")
            connected = self._connected if self._gpu else None
        ahead = connected != self._borrowed
        self._judges = [WarmJudge(self.level, self._gpu, connected, ahead) for _ in range(worker.state.nthreads)]
        self._idle: LifoQueue[WarmJudge] = LifoQueue()
        for judge in self._judges:
            self._idle.put(judge)

    async def teardown(self, worker: Worker) -> None:
        self._ending = True
        with self._lending:
            self._lending.notify_all()
        if LENT in worker.state.total_resources:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                await worker.set_resources(**{GPU: 0, LENT: 0})
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        if self._door is not None:
            self._door.close()
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

    # ---- the GPU of this worker -------------------------------------------------------------------------------------

    def _pool_of_now(self) -> SharedPool:
        """Another one if that of before is gone."""
        with self._pooling:
            if self._pool is None or not self._pool.alive:
                self._pool = SharedPool(self._gpu)
            return self._pool

    def _connected(self) -> socket.socket:
        return self._pool_of_now().connection()

    def offer(self, worker: Worker) -> Offer | None:
        """For judges of other workers; nothing listens before this is asked for."""
        if not self._gpu or not worker.address.startswith("tcp://"):  # tls: whoever wants that trusts no network
            return None
        if self._door is None:
            host = get_address_host(worker.address)
            self._door = Door(host, lambda connection: self._pool_of_now().serve(connection))
        return self._door.offer

    # ---- the GPU of another worker ----------------------------------------------------------------------------------

    async def borrow(self, worker: Worker, offer: Offer | None) -> None:
        """From now on it is this one; None: there is none, and texts wait for one."""
        with self._lending:
            self._offer = offer
            self._lending.notify_all()
        count = worker.state.nthreads if offer is not None else 0
        await worker.set_resources(**{GPU: count, LENT: count})

    def _borrowed(self) -> socket.socket:
        """Raises OSError."""
        deadline = time.monotonic() + PATIENCE
        while not self._ending and time.monotonic() < deadline:
            if (offer := self._offer) is not None:
                with contextlib.suppress(OSError):
                    return offer.connection()
            with self._lending:
                self._lending.wait(1)
        raise ConnectionError(f"no worker with a GPU has answered for {PATIENCE} s")


def has_own_gpu(resources: dict) -> bool:
    """By what a Dask worker announces."""
    return bool(resources.get(GPU)) and LENT not in resources


def judge_there(judges: str, request: dict) -> dict:
    """The task: runs on a worker, and the result says which. `judges` is the name of its plugin."""
    worker = get_worker()
    plugin = worker.plugins.get(judges)
    if plugin is None:
        return faulty(request["exercise"], "the worker has no judges any more")
    return {**plugin.judge(request), "worker": worker.address}


def offer_there(judges: str, dask_worker: Worker) -> Offer | None:
    """Runs on a worker with a GPU."""
    return dask_worker.plugins[judges].offer(dask_worker)


async def borrow_there(judges: str, offer: Offer | None, dask_worker: Worker) -> bool:
    """Runs on a worker without one. True, for whoever asks cannot tell None from no answer."""
    await dask_worker.plugins[judges].borrow(dask_worker, offer)
    return True
