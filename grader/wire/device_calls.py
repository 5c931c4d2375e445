"""What a child says while its file measures: calls of a device that the judge simulates, then the file's answer.

The device lies in the judge. The child has functions that note calls; it sends them when it needs a number, and gets
numbers alone: the host's clock, and the times of the events that the device has come to.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from grader.wire.fields import checked
from grader.wire.frames import JsonObject, ProtocolError
from grader.wire.messages import Failure
from grader.wire.reply import failure_of

RUN, DRAW_INPUTS, FLUSH_CACHE, SLEEP = "run", "draw_inputs", "flush_cache", "sleep"  # what is launched
RECORD, ELAPSED, SYNCHRONIZE, NOW = "record", "elapsed", "synchronize", "now"
NAMES = (RUN, DRAW_INPUTS, FLUSH_CACHE, SLEEP, RECORD, ELAPSED, SYNCHRONIZE, NOW)
CALL = struct.Struct("<BQQ")  # a name's place in NAMES, and two numbers
MOST_CALLS = 4096  # of one message
MOST_CYCLES = 1 << 40  # of a sleep


@dataclass(frozen=True)
class DeviceCall:
    """A call of the device. `first`: the cycles of a sleep, or the number of an event; `second`: of another event."""

    name: str
    first: int = 0
    second: int = 0


@dataclass(frozen=True)
class Answer:
    """What the entry returned, or why it did not. `seconds`: None where it is no finite number."""

    error: Failure | None
    type: str = ""
    seconds: float | None = None


def packed(calls: Iterable[DeviceCall]) -> bytes:
    return b"".join(CALL.pack(NAMES.index(call.name), call.first, call.second) for call in calls)


def read_told(header: JsonObject, blob: bytes) -> list[DeviceCall] | Answer:
    """Returns the calls of a message, in order, or the file's answer. Raises ProtocolError."""
    if header["kind"] == "calls":
        if len(blob) % CALL.size or len(blob) > MOST_CALLS * CALL.size:
            raise ProtocolError("these are no calls of a device")
        return [_call(*numbers) for numbers in CALL.iter_unpack(blob)]
    if header["kind"] != "measured":
        raise ProtocolError("calls or an answer were expected")
    return Answer(failure_of(header.get("error")), checked(header.get("type", ""), "str", "type"), _seconds(header))


def _call(name: int, first: int, second: int) -> DeviceCall:
    if name >= len(NAMES) or max(first, second) > MOST_CYCLES:
        raise ProtocolError("a call is none of a device")
    return DeviceCall(NAMES[name], first, second)


def _seconds(header: JsonObject) -> float | None:
    number = header.get("seconds")
    if number is None:
        return None
    if type(number) not in (int, float) or abs(number) > 1e300 or not math.isfinite(number):
        raise ProtocolError("the answer is no number")
    return float(number)
