"""The processes that take samples of speed: the choice of the next process, and the trust in a used process.

The places of memory in a process make its samples alike, so each sample of a call comes from another process. Making a
context takes a while, and the driver makes contexts one after the other, whatever the number of GPUs; so a process that
has taken a sample may serve other calls too. Kernels of another submission ran in it, and nothing keeps a kernel from
its process's memory: the sample of a used process counts only if its results are right and its anchor takes the usual
time. Otherwise a fresh process takes the sample.

The usual time was itself measured while kernels of a submission ran. A submission that slows the anchor in its own
process gets a better share of the anchor's speed, in a fresh process as well, and may give one to the submission that
this process serves next.
"""

from __future__ import annotations

import math
import statistics
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager

from grader.gpu.answers import ANCHOR, Measurement
from grader.gpu.lock import gpu_held, next_to_measure
from grader.gpu.pool.replay_process import ReplayEnded, Replayer

MEASURE_LIMIT = 60.0  # seconds, where a sample takes 2
USUAL = 0.05  # how far an anchor's time may differ from the time in fresh processes for the same work, as a share


class Samplers:
    """The samplers on one GPU, for any number of threads; one thread at a time is served.

    `kept`: the most processes that are kept after their samples. `spare`: the number of fresh processes started ahead.
    """

    def __init__(self, uuid: str, kept: int, spare: int = 0) -> None:
        self._uuid, self._kept, self._spare = uuid, kept, spare
        self._idle: list[Replayer] = []
        self._usual: dict[str, list[float]] = {}  # an anchor's seconds in fresh processes, by its work
        self._lock = threading.RLock()

    def start(self, count: int) -> None:
        """Starts processes until `count` of them have taken no sample."""
        with self._lock:
            for replayer in [sampler for sampler in self._idle if not sampler.alive]:
                self._idle.remove(replayer)
                replayer.end()
            while sum(not sampler.samples for sampler in self._idle) < count:
                self._idle.append(Replayer(self._uuid))

    def sample(self, request: dict, blob: bytes, work: str, served: Collection[int]) -> tuple[dict, int]:
        """Returns a sample, and the pid of the process that took it. Raises ReplayEnded, GpuBusy.

        `work`: the work of the call's anchor, in any words; "" if unknown: then only a fresh process is asked.
        `served`: the pids of the processes that have taken samples of this call; none of them is asked.
        """
        if work in self._usual and (confirmed := self._confirmed(request, blob, work, served)) is not None:
            return confirmed
        replayer, reply = self._fresh_sample(request, blob)
        anchor = Measurement.from_json(reply).seconds(ANCHOR)
        if work and not reply["wrong"] and not math.isnan(anchor):
            self._usual.setdefault(work, []).append(anchor)
        self._keep_or_end(replayer, ended=bool(reply["wrong"]))
        return reply, replayer.pid

    def ceilings(self, request: dict) -> dict:
        """Returns a fresh process's reply "ceilings". Raises ReplayEnded, GpuBusy."""
        replayer, reply = self._fresh_sample(request, b"")
        replayer.end()
        return reply

    @contextmanager
    def lent(self, request: dict) -> Iterator[tuple[Replayer, dict]]:
        """Lends a fresh process and its reply "lent", while nobody else uses the GPU. Raises ReplayEnded, GpuBusy."""
        with next_to_measure(self._uuid):
            replayer = self._fresh()
            try:
                replayer.wait_until_ready()
                with gpu_held(self._uuid, alone=True):
                    yield replayer, replayer.ask(request, b"", MEASURE_LIMIT)[0]
            finally:
                replayer.end()

    def all(self) -> list[Replayer]:
        return list(self._idle)

    def _confirmed(self, request: dict, blob: bytes, work: str, served: Collection[int]) -> tuple[dict, int] | None:
        """Returns the sample of a process that has served other calls; None if a fresh process has to be asked.

        A fresh process is needed if no used process is left, or if the sample is wrong or its anchor's time unusual.
        """
        try:
            replayer, reply = self._sample_of(lambda: self._used(served), request, blob)
        except (_NoneLeft, ReplayEnded):
            return None
        anchor = Measurement.from_json(reply).seconds(ANCHOR)
        unusual = reply["wrong"] or not abs(anchor / statistics.median(self._usual[work]) - 1) <= USUAL
        self._keep_or_end(replayer, ended=bool(unusual))
        return None if unusual else (reply, replayer.pid)

    def _fresh_sample(self, request: dict, blob: bytes) -> tuple[Replayer, dict]:
        """Returns a fresh process and its reply; if memory is short, another process gets the GPU to itself."""
        try:
            return self._sample_of(self._fresh, request, blob)
        except ReplayEnded as ended:
            if ended.how != "no-room":
                raise
        return self._sample_of(self._fresh, request, blob, alone=True)

    def _sample_of(
        self, chosen: Callable[[], Replayer], request: dict, blob: bytes, alone: bool = False
    ) -> tuple[Replayer, dict]:
        """Returns the chosen process and its reply.

        It prepares the sample while checks run and times it alone; if `alone`, it has the GPU to itself for both.
        """
        limit = request.get("limit", MEASURE_LIMIT)
        with ExitStack() as preparing:
            preparing.enter_context(next_to_measure(self._uuid))
            replayer = chosen()
            try:
                replayer.wait_until_ready()  # before this thread holds the GPU: contexts are made while others use it
                with gpu_held(self._uuid, alone):
                    replayer.ask(request, blob, limit)
                    if alone:
                        return replayer, replayer.ask({"kind": "go"}, b"", limit)[0]
                with gpu_held(self._uuid, alone=True):
                    preparing.close()
                    return replayer, replayer.ask({"kind": "go"}, b"", limit)[0]
            except BaseException:
                replayer.end()
                raise

    def _used(self, served: Collection[int]) -> Replayer:
        with self._lock:
            for replayer in self._idle:
                if replayer.samples and replayer.pid not in served and replayer.alive:
                    self._idle.remove(replayer)
                    return replayer
        raise _NoneLeft

    def _fresh(self) -> Replayer:
        with self._lock:
            self.start(1)
            replayer = next(sampler for sampler in self._idle if not sampler.samples)
            self._idle.remove(replayer)
            self.start(self._spare)
            return replayer

    def _keep_or_end(self, replayer: Replayer, ended: bool) -> None:
        """Counts a sample of the process, and keeps the process; ends it if `ended`, or if enough are kept."""
        replayer.samples += 1
        with self._lock:
            if not ended and sum(bool(sampler.samples) for sampler in self._idle) < self._kept:
                self._idle.append(replayer)
                return
        replayer.end()


class _NoneLeft(Exception):
    """There is no used process that may be asked."""
