"""The plugin of a Dask worker: warm judges, one for each of its threads. Requests and results are plain data."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import LifoQueue

from distributed import Worker, WorkerPlugin, get_worker
from distributed.comm import get_address_host

from grader.classroom.cluster import gpus
from grader.classroom.cluster.door import Door, Offer
from grader.classroom.cluster.lending import Standing
from grader.classroom.cluster.warm_judge import Unconnected, WarmJudge
from grader.classroom.result_store import faulty, version_of
from grader.course.folder import Folder, found_here
from grader.gpu.pool.shared_pool import SharedPool

GPU = "GPU"  # the resource that a Dask worker with a GPU announces
LENT = "LENT_GPU"  # announced as well by a worker that uses another worker's GPU
PATIENCE = 120  # seconds to wait for another GPU while the lent GPU does not answer


class Judges(WorkerPlugin):
    """Starts a worker's judges with the worker, before any text is known, and ends them with it.

    `level`: how submissions are isolated. `pins`: the UUID of the only GPU that each of the workers numbered 0, 1, ...
    may see; if empty, a worker uses the first GPU of its environment. `wants_gpu`: judges of a worker that announces no
    GPU wait until a GPU is lent to it. `version`: the command's `version_of` for these exercises; a worker that has
    another version lends no GPU.
    """

    def __init__(
        self, name: str, level: str, pins: list[str], wants_gpu: bool, exercises: list[Folder], version: str
    ) -> None:
        self.name, self.level, self.pins, self.wants_gpu = name, level, pins, wants_gpu
        self.exercises, self.version = exercises, version

    def setup(self, worker: Worker) -> None:
        self._ending = False
        self._pool: SharedPool | None = None
        self._door: Door | None = None
        self._pooling = threading.Lock()
        self._borrows = self.wants_gpu and not has_own_gpu(worker.state.total_resources)
        self._borrowed: Offer | None = None
        self._lending = threading.Condition()
        connected: Callable[[], socket.socket] | None
        if self._borrows:
            self._gpu, connected = "", self._connected_elsewhere
        else:
            self._gpu = self.pins[worker.name] if self.pins else next(iter(gpus.identifiers()), "")
            connected = self._connected if self._gpu else None
        self._judges = [
            WarmJudge(self.level, self._gpu, connected, ahead=not self._borrows) for _ in range(worker.state.nthreads)
        ]
        self._idle: LifoQueue[WarmJudge] = LifoQueue()
        for judge in self._judges:
            self._idle.put(judge)

    async def teardown(self, worker: Worker) -> None:
        self._ending = True
        with self._lending:
            self._lending.notify_all()
        others = [one for one in worker.plugins.values() if isinstance(one, Judges) and one is not self]
        if self._borrowed and not any(other._borrows for other in others):  # another command may use it, too
            with contextlib.suppress(Exception):  # the scheduler may be gone
                await asyncio.wait_for(worker.set_resources(**{GPU: 0, LENT: 0}), 2)
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
        """Returns the pool of this worker's GPU; a new pool if there was none, or the last is gone."""
        with self._pooling:
            if self._pool is None or not self._pool.alive:
                self._pool = SharedPool(self._gpu)
            return self._pool

    def _connected(self) -> socket.socket:
        return self._pool_of_now().connection()

    def _offer(self, worker: Worker) -> Offer | None:
        """Returns this worker's offer to judges of other workers; nothing listens before the first call.

        None where it has no GPU, Dask's network is encrypted, or its course differs from the command's.
        """
        if not self._gpu or not worker.address.startswith("tcp://"):  # tls: its users trust no network
            return None
        if self._door is None:
            if version_of(map(found_here, self.exercises)) != self.version:  # the borrower would not notice
                return None
            host = get_address_host(worker.address)
            self._door = Door(worker.address, host, lambda connection: self._pool_of_now().serve(connection))
        return self._door.offer

    # ---- the GPU of another worker ----------------------------------------------------------------------------------

    async def borrow(self, worker: Worker, offer: Offer, count: int) -> None:
        """Makes the judges use the offered GPU from now on, and announces it for `count` texts at a time.

        Raises OSError where it cannot be reached.
        """
        (await asyncio.to_thread(offer.connection)).close()
        with self._lending:
            self._borrowed = offer
            self._lending.notify_all()
        await worker.set_resources(**{GPU: count, LENT: count})

    def _connected_elsewhere(self) -> socket.socket:
        """Returns a connection with the pool of the lent GPU; waits until a GPU is lent and answers.

        Raises Unconnected after PATIENCE seconds, or when the worker ends.
        """
        deadline = time.monotonic() + PATIENCE
        while not self._ending and time.monotonic() < deadline:
            if self._borrowed is not None:
                with contextlib.suppress(OSError):
                    return self._borrowed.connection()
            with self._lending:
                self._lending.wait(1)
        raise Unconnected(f"no worker with a GPU has answered for {PATIENCE} s")

    def standing(self, worker: Worker) -> Standing:
        announced = worker.state.total_resources.get(LENT, 0)
        judges = int(self._borrowed and announced or worker.state.nthreads)
        waiting = bool(worker.state.constrained)
        return Standing(judges, self._offer(worker), self._borrows, self._borrowed, bool(announced), waiting)


class NoJudges(LookupError):
    """Raised where a worker has no plugin of this name, or no more."""


def _judges_of(worker: Worker, name: str) -> Judges:
    plugin = worker.plugins.get(name)
    if not isinstance(plugin, Judges):
        raise NoJudges(name)
    return plugin


def has_own_gpu(resources: dict) -> bool:
    """Returns whether a worker has its own GPU, by the resources that it announces."""
    return bool(resources.get(GPU)) and LENT not in resources  # LENT stays there once a GPU was lent


def judge_there(judges: str, request: dict) -> dict:
    """Returns the judge's result for a request, with this worker's address as "worker"; a Dask task.

    `judges`: the name of the worker's plugin.
    """
    worker = get_worker()
    try:
        return {**_judges_of(worker, judges).judge(request), "worker": worker.address}
    except NoJudges:
        return faulty(request["exercise"], "the worker has no judges any more")


def standing_there(judges: str, dask_worker: Worker) -> Standing:
    """Returns the Standing of the worker on which it runs."""
    return _judges_of(dask_worker, judges).standing(dask_worker)


async def borrow_there(judges: str, offer: Offer, count: int, dask_worker: Worker) -> str:
    """Lends an offered GPU to the worker on which it runs; returns why that failed, "" if it did not."""
    try:
        await _judges_of(dask_worker, judges).borrow(dask_worker, offer, count)
    except OSError as error:
        return f"it cannot reach {offer.host}:{offer.port}: {error}"
    return ""
