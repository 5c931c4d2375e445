"""Frames over pipes, to and from a process that may hang or be gone: sent and received before a deadline."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass

from grader.wire.frames import LENGTHS, OURS, JsonObject, Limits, pack, unpack_header, unpack_lengths

MOST_AT_ONCE = 1 << 20  # bytes


@dataclass(frozen=True)
class Deadline:
    """at: on the clock time.monotonic. later: returns the present deadline, if it may have moved when `at` has come."""

    at: float
    later: Callable[[], float] | None = None

    def wait_for(self, event: int, descriptor: int) -> None:
        """Waits for an event of select.poll. Raises TimeoutError at the deadline."""
        poll = select.poll()
        poll.register(descriptor, event)
        until = self.at
        while not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            until = self.later() if self.later else self.at
            if time.monotonic() >= until:
                raise TimeoutError


def send(descriptor: int, header: JsonObject, blob: bytes, deadline: Deadline) -> None:
    """Sends a frame over a non-blocking descriptor. Raises TimeoutError, BrokenPipeError if the other end is gone."""
    data = memoryview(pack(header, blob))
    while data:
        deadline.wait_for(select.POLLOUT, descriptor)
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            continue


def received(descriptor: int, deadline: Deadline, limits: Limits = OURS) -> tuple[JsonObject, bytes]:
    """Returns (header, blob). Raises TimeoutError, EOFError where the other end is gone, and ProtocolError."""
    header_bytes, blob_bytes = unpack_lengths(_exactly(descriptor, LENGTHS.size, deadline), limits)
    return unpack_header(_exactly(descriptor, header_bytes, deadline)), _exactly(descriptor, blob_bytes, deadline)


def _exactly(descriptor: int, count: int, deadline: Deadline) -> bytes:
    parts = []
    while count:
        deadline.wait_for(select.POLLIN, descriptor)
        try:
            part = os.read(descriptor, min(count, MOST_AT_ONCE))
        except BlockingIOError:
            continue
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
