"""The GPU of this process as a device that a measuring function asks, as it asks a simulated one.

Its kernel is the anchor's copy: trusted code, whose time our own measurement tells, too. So a learner sees what their
function says of a real GPU, where an event takes time itself and other things happen that a model leaves out.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import torch

from grader.gpu.answers import ANCHOR
from grader.gpu.inside.anchors import copy_of
from grader.gpu.inside.timing import Chain, Flush, measure
from grader.gpu.nvml import Clocks
from grader.wire import device_calls
from grader.wire.device_calls import DRAW_INPUTS, FLUSH_CACHE, NOW, RECORD, RUN, SLEEP, SYNCHRONIZE, DeviceCall
from grader.wire.frames import JsonObject, ProtocolError

SLOTS = 4  # sets of buffers of our own measurement
MOST_ASLEEP = 5_000_000_000  # cycles of a measurement, 3 s or less


class RealGpu:
    """This process's GPU, on which `run` launches a copy that reads and writes so many bytes together."""

    def __init__(self, bytes_of_copy: int, l2_bytes: int) -> None:
        self._copy, self._flush = copy_of(bytes_of_copy, 1), Flush(l2_bytes)
        self._copy.inputs[0].zero_()
        self._asleep = 0
        self._events: list[torch.cuda.Event] = []
        self._times: list[float] = []  # in seconds since the first event, of those that the GPU has come to

    def answer(self, calls: list[DeviceCall]) -> tuple[float | None, list[float]]:
        """Carries the calls of a message out. Returns what the host's clock shows, where the last call asks, and the
        times of the events that the GPU has come to and that were not told before.

        Raises ProtocolError where the GPU would sleep for longer than MOST_ASLEEP.
        """
        now = None
        for call in calls:
            now = self._do(call)
        return now, self._new_times()

    def _do(self, call: DeviceCall) -> float | None:
        if call.name == RUN:
            self._copy.calls[0]()
        elif call.name == DRAW_INPUTS:
            self._copy.inputs[0].normal_()
        elif call.name == FLUSH_CACHE:
            self._flush()
        elif call.name == SLEEP:
            self._asleep += call.first
            if self._asleep > MOST_ASLEEP:
                raise ProtocolError("the GPU would sleep for seconds")
            torch.cuda._sleep(call.first)
        elif call.name == RECORD:
            self._events.append(torch.cuda.Event(enable_timing=True))
            self._events[-1].record()
        elif call.name == SYNCHRONIZE:
            torch.cuda.synchronize()
        elif call.name == NOW:
            return time.perf_counter()
        return None

    def _new_times(self) -> list[float]:
        """Adds up the times between neighbours: the driver tells a time in 32 bits, too few for a long one."""
        told = len(self._times)
        while (number := len(self._times)) < len(self._events) and self._events[number].query():
            before = self._events[max(number - 1, 0)]
            since = before.elapsed_time(self._events[number]) / 1000 if number else 0.0
            self._times.append((self._times[-1] if number else 0.0) + since)
        return self._times[told:]


def seconds_of_copy(bytes_of_copy: int, l2_bytes: int, uuid: str, seed: int) -> float:
    """Returns what a copy takes by our own measurement; nan where noise leaves no round."""
    anchor = copy_of(bytes_of_copy, SLOTS)

    def refresh() -> None:
        for tensor in anchor.inputs:
            tensor.normal_()

    chains = {ANCHOR: Chain(anchor.calls, refresh)}
    return measure(chains, Flush(l2_bytes), Clocks(uuid), random.Random(seed)).seconds(ANCHOR)


def lend(header: JsonObject, asked: Callable[[JsonObject], tuple[JsonObject, bytes]]) -> JsonObject:
    """Measures a copy, then answers calls of the device until something else is asked. Returns the last reply.

    `asked`: sends a reply and returns the next request.
    """
    size, l2_bytes = header["bytes"], header["l2_bytes"]
    reply: JsonObject = {"kind": "lent", "seconds": seconds_of_copy(size, l2_bytes, header["uuid"], header["seed"])}
    gpu = RealGpu(size, l2_bytes)
    while True:
        request, blob = asked(reply)
        if request["kind"] != "calls":
            return {"kind": "returned"}
        calls = device_calls.read_told(request, blob)
        if not isinstance(calls, list):
            raise ProtocolError("calls of a device were expected")
        now, times = gpu.answer(calls)
        reply = {"kind": "told", "now": now, "events": times}
