"""The processes that take samples of speed: which one takes the next, and how far one is trusted that served before.

Where memory lies in a process makes its samples alike, so each sample of a call comes from another process. Making a
context takes a while, and the driver makes them one after the other, whatever the number of GPUs; so a process that
took a sample may serve other calls too. Kernels of another submission ran in it, and nothing keeps a kernel from its
process's memory: what it says counts only if all is as usual. Anything else is asked again, of a fresh one. What is
usual was told while the kernels of some submission ran: one that slows the anchor in its own process deceives about
itself, here as before, and may do so for whoever comes next in that process.
"""

from __future__ import annotations

import math
import statistics
import threading
from collections.abc import Callable, Collection
from contextlib import ExitStack

from grader.gpu.answers import ANCHOR, Measurement
from grader.gpu.lock import gpu_held, next_to_measure
from grader.gpu.pool.replay_process import ReplayEnded, Replayer

MEASURE_LIMIT = 60.0  # seconds, where a sample takes 2
USUAL = 0.05  # by how much an anchor's time may differ from what fresh processes told of the same work


class Samplers:
    """Those on one GPU. `kept`: processes that go on after their samples. `spare`: fresh ones, started ahead.

    Several threads may ask; one at a time is served.
    """

    def __init__(self, uuid: str, kept: int, spare: int = 0) -> None:
        self._uuid, self._kept, self._spare = uuid, kept, spare
        self._idle: list[Replayer] = []
        self._usual: dict[str, list[float]] = {}  # an anchor's seconds, by its work, as fresh processes told them
        self._lock = threading.RLock()

    def start(self, count: int) -> None:
        """Starts processes, until so many are there that have taken no sample."""
        with self._lock:
            for replayer in [one for one in self._idle if not one.alive]:
                self._idle.remove(replayer)
                replayer.end()
            while sum(not one.samples for one in self._idle) < count:
                self._idle.append(Replayer(self._uuid))

    def sample(self, request: dict, blob: bytes, work: str, served: Collection[int]) -> tuple[dict, int]:
        """A sample, and the process that took it: none of those in `served`. Raises ReplayEnded, GpuBusy.

        `work`: of the call's anchor, in any words; "" if it is not known: then only a fresh process is asked.
        """
        if work in self._usual and (confirmed := self._confirmed(request, blob, work, served)) is not None:
            return confirmed
        replayer, reply = self._told(request, blob)
        anchor = Measurement.from_json(reply).seconds(ANCHOR)
        if work and not reply["wrong"] and not math.isnan(anchor):
            self._usual.setdefault(work, []).append(anchor)
        self._keep_or_end(replayer, ended=bool(reply["wrong"]))
        return reply, replayer.pid

    def ceilings(self, request: dict) -> dict:
        """By a fresh process. Raises ReplayEnded, GpuBusy."""
        replayer, reply = self._told(request, b"")
        replayer.end()
        return reply

    def all(self) -> list[Replayer]:
        return list(self._idle)

    def _confirmed(self, request: dict, blob: bytes, work: str, served: Collection[int]) -> tuple[dict, int] | None:
        """What a process says that served other calls; None if a fresh one has to be asked."""
        try:
            replayer, reply = self._asked(lambda: self._used(served), request, blob)
        except (_NoneLeft, ReplayEnded):
            return None
        anchor = Measurement.from_json(reply).seconds(ANCHOR)
        unusual = reply["wrong"] or not abs(anchor / statistics.median(self._usual[work]) - 1) <= USUAL
        self._keep_or_end(replayer, ended=bool(unusual))
        return None if unusual else (reply, replayer.pid)

    def _told(self, request: dict, blob: bytes) -> tuple[Replayer, dict]:
        """By a fresh process; where memory is short, by another one that has the GPU to itself."""
        try:
            return self._asked(self._fresh, request, blob)
        except ReplayEnded as ended:
            if ended.how != "no-room":
                raise
        return self._asked(self._fresh, request, blob, alone=True)

    def _asked(
        self, chosen: Callable[[], Replayer], request: dict, blob: bytes, alone: bool = False
    ) -> tuple[Replayer, dict]:
        """Prepared beside checks and timed alone, or both with the GPU to itself."""
        limit = request.get("limit", MEASURE_LIMIT)
        with ExitStack() as preparing:
            preparing.enter_context(next_to_measure(self._uuid))
            replayer = chosen()
            try:
                replayer.wait_until_ready()  # its context is made beside others: not while this one holds the GPU
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
            replayer = next(one for one in self._idle if not one.samples)
            self._idle.remove(replayer)
            self.start(self._spare)
            return replayer

    def _keep_or_end(self, replayer: Replayer, ended: bool) -> None:
        """After a sample."""
        replayer.samples += 1
        with self._lock:
            if not ended and sum(bool(one.samples) for one in self._idle) < self._kept:
                self._idle.append(replayer)
                return
        replayer.end()


class _NoneLeft(Exception):
    """No process is there that may be asked."""
