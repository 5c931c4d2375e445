"""The processes that take samples of speed: which one takes the next, and how far one is trusted that served before.

Where memory lies in a process makes its samples alike, so each sample of a call comes from another process. Making a
context takes a while, on a machine with several GPUs one after the other; so a process that took a sample may serve
other calls too. Kernels of another submission ran in it, and nothing keeps a kernel from its process's memory: what it
says counts only if all is as usual. Anything else is asked again, of a fresh one. What is usual was told while the
kernels of some submission ran: one that slows the anchor in its own process deceives about itself, here as before, and
may do so for whoever comes next in that process.
"""

from __future__ import annotations

import math
import statistics
from contextlib import ExitStack

from grader.gpu.answers import ANCHOR, Measurement
from grader.gpu.lock import gpu_held, next_to_measure
from grader.gpu.replayer import ReplayEnded, Replayer

MEASURE_LIMIT = 60.0  # seconds, where a sample takes 2
MOST_KEPT = 2  # processes that go on after their sample: as many as the samples of most calls
USUAL = 0.05  # by how much an anchor's time may differ from what fresh processes told of the same work


class Samplers:
    """Those of one process of ours, on one GPU."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._waiting: list[Replayer] = []  # with no sample yet of the call that is being measured; used ones first
        self._done: list[Replayer] = []  # with one
        self._work = ""  # of the anchor of that call
        self._usual: dict[str, list[float]] = {}  # an anchor's seconds, by its work, as fresh processes told them

    def start(self, count: int) -> None:
        """Starts processes, until so many can take a sample of the call."""
        for replayer in [one for one in self._waiting if not one.alive]:
            self._waiting.remove(replayer)
            replayer.end()
        while len(self._waiting) < count:
            self._waiting.append(Replayer())

    def begin_call(self, work: str = "") -> None:
        """Another call will be measured. `work`: of its anchor, in any words; "" if it is not known yet."""
        self._waiting, self._done, self._work = self._done + self._waiting, [], work
        if work and work not in self._usual:
            self._end_used()  # so that fresh ones can be started together

    def measure(self, request: dict, blob: bytes) -> dict:
        """A sample by a process that has taken none since `begin_call`. Raises ReplayEnded, GpuBusy."""
        if self._work not in self._usual:
            self._end_used()
        replayer = self._next()
        if replayer.samples:
            if (reply := self._confirmed(replayer, request, blob)) is not None:
                return self._kept(replayer, reply)
            self._end_used()
            replayer = self._next()
        replayer, reply = self._told(replayer, request, blob)
        anchor = Measurement.from_json(reply).seconds(ANCHOR)
        if self._work and not reply["wrong"] and not math.isnan(anchor):
            self._usual.setdefault(self._work, []).append(anchor)
        return self._kept(replayer, reply)

    def ceilings(self, request: dict) -> dict:
        """By a fresh process. Raises ReplayEnded, GpuBusy."""
        self._end_used()
        replayer, reply = self._told(self._next(), request, b"")
        replayer.end()
        return reply

    def all(self) -> list[Replayer]:
        return [*self._waiting, *self._done]

    def _confirmed(self, replayer: Replayer, request: dict, blob: bytes) -> dict | None:
        """What a process says that served before; None if a fresh one has to be asked."""
        try:
            reply = self._asked(replayer, request, blob, alone=False)
        except ReplayEnded:
            return None
        anchor = Measurement.from_json(reply).seconds(ANCHOR)
        if reply["wrong"] or not abs(anchor / statistics.median(self._usual[self._work]) - 1) <= USUAL:
            replayer.end()
            return None
        return reply

    def _told(self, replayer: Replayer, request: dict, blob: bytes) -> tuple[Replayer, dict]:
        """By this process; where memory is short, by a fresh one that has the GPU to itself."""
        try:
            return replayer, self._asked(replayer, request, blob, alone=False)
        except ReplayEnded as ended:
            if ended.how != "no-room":
                raise
        replayer = self._next()
        return replayer, self._asked(replayer, request, blob, alone=True)

    def _asked(self, replayer: Replayer, request: dict, blob: bytes, alone: bool) -> dict:
        """Prepared beside checks and timed alone, or both with the GPU to itself."""
        try:
            with ExitStack() as preparing:
                preparing.enter_context(next_to_measure(self._uuid))
                with gpu_held(self._uuid, alone):
                    replayer.ask(request, blob, MEASURE_LIMIT)
                    if alone:
                        return replayer.ask({"kind": "go"}, b"", MEASURE_LIMIT)[0]
                with gpu_held(self._uuid, alone=True):
                    preparing.close()
                    return replayer.ask({"kind": "go"}, b"", MEASURE_LIMIT)[0]
        except BaseException:
            replayer.end()
            raise

    def _kept(self, replayer: Replayer, reply: dict) -> dict:
        replayer.samples += 1
        if reply["wrong"] or len(self._done) == MOST_KEPT:
            replayer.end()
        else:
            self._done.append(replayer)
        return reply

    def _end_used(self) -> None:
        for replayer in [one for one in self._waiting if one.samples]:
            self._waiting.remove(replayer)
            replayer.end()

    def _next(self) -> Replayer:
        self.start(1)
        for replayer in self._waiting:  # a context in the making would disturb the measurement
            replayer.wait_until_ready()
        return self._waiting.pop(0)
