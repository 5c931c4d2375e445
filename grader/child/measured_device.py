"""The device that a measuring function gets, and the kernel that it measures: both lie in the judge.

A call is noted here and sent with the next one that needs a number, so that thousands of launches take a few messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from grader.wire.device_calls import (
    DRAW_INPUTS,
    ELAPSED,
    FLUSH_CACHE,
    MOST_CALLS,
    MOST_CYCLES,
    NOW,
    RECORD,
    RUN,
    SLEEP,
    SYNCHRONIZE,
    DeviceCall,
    packed,
)
from grader.wire.frames import JsonObject

Ask = Callable[[JsonObject, bytes], JsonObject]


class DeviceEvent:
    """A mark in the work of a device, which the device comes to after all that was launched before it."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __repr__(self) -> str:
        return f"<event {self._number}>"


class MeasuredDevice:
    """A GPU with one queue of work, and the clock of its host. All times are in seconds."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._noted: list[DeviceCall] = []
        self._times: list[float] = []  # of the events that the device has come to
        self._events = 0

    def now(self) -> float:
        """Returns what the host's clock shows. Only differences mean anything."""
        return float(self._note(NOW, asks=True) or 0.0)

    def synchronize(self) -> None:
        """Waits until the device has done all that was launched."""
        self._note(SYNCHRONIZE)

    def record(self) -> DeviceEvent:
        """Puts an event into the queue and returns it at once."""
        self._note(RECORD)
        self._events += 1
        return DeviceEvent(self._events - 1)

    def elapsed(self, start: DeviceEvent, end: DeviceEvent) -> float:
        """Returns the seconds between two events. Raises RuntimeError where the device has not come to both yet."""
        if not isinstance(start, DeviceEvent) or not isinstance(end, DeviceEvent):
            raise TypeError("elapsed takes two events, as record() returns them")
        if max(start._number, end._number) >= len(self._times):
            self._send()
        if max(start._number, end._number) >= len(self._times):
            raise RuntimeError("the GPU has not come to this event yet: synchronize() waits for it")
        self._note(ELAPSED, start._number, end._number)
        return self._times[end._number] - self._times[start._number]

    def flush_cache(self) -> None:
        """Launches work that leaves nothing of the kernel's data in the cache."""
        self._note(FLUSH_CACHE)

    def sleep(self, cycles: int) -> None:
        """Launches work that keeps the GPU busy for so many cycles of its clock, and touches no memory."""
        if type(cycles) is not int or not 0 <= cycles <= MOST_CYCLES:
            raise ValueError(f"sleep takes a whole number of cycles, from 0 to 2**40, and was given {cycles!r:.40}")
        self._note(SLEEP, cycles)

    def _note(self, name: str, first: int = 0, second: int = 0, asks: bool = False) -> float | None:
        self._noted.append(DeviceCall(name, first, second))
        return self._send() if asks or len(self._noted) >= MOST_CALLS else None

    def _send(self) -> float | None:
        """Sends what was noted, and keeps the times of events that come back. Returns the clock, if that was asked."""
        noted, self._noted = self._noted, []
        told = self._ask({"kind": "calls"}, packed(noted))
        self._times += told["events"]
        now: float | None = told["now"]
        return now


class MeasuredKernel:
    """The function `run`, which launches one kernel on a device."""

    def __init__(self, device: MeasuredDevice) -> None:
        self._device = device

    def __call__(self) -> None:
        """Launches the kernel, and returns at once."""
        self._device._note(RUN)

    def draw_inputs(self) -> None:
        """Launches work that fills the kernel's inputs with random numbers: they were allocated, and hold zeros."""
        self._device._note(DRAW_INPUTS)


def measured(entry: Callable[..., object], ask: Ask) -> JsonObject:
    """Returns the message with what the entry answers. What the file raises goes through."""
    device = MeasuredDevice(ask)
    returned = entry(MeasuredKernel(device), device)
    device._send()  # which events were read last
    number: float | None = None
    if isinstance(returned, int | float) and not isinstance(returned, bool) and abs(returned) < 1e300:
        number = float(returned)
    kind = type(returned).__name__[:40]
    if isinstance(returned, float) and not math.isfinite(returned):
        kind = repr(float(returned))
    return {"kind": "measured", "error": None, "type": kind, "seconds": number}
