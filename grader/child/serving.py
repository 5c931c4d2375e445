"""A child's main loop: reads requests, has its host answer them, and writes the replies."""

from __future__ import annotations

import faulthandler
import os
import platform
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from grader.child.enclosing import close_fence
from grader.child.limits import limit_cpu, limit_memory_and_files, lower
from grader.child.printed import reveal
from grader.wire.frames import LENGTHS, JsonObject, pack, unpack_header, unpack_lengths

MORE_MEMORY = 2 << 30  # address space for the learner's data, beyond what the libraries have mapped
MOST_FILE_BYTES = 64 << 20
MOST_OPEN_FILES = 256  # of each process: pipes and files without a name hold memory that no other limit counts
MOST_CPU_SECONDS = 600  # of a whole run; each request's own limit is far below, but a parent may be killed


class Host(Protocol):
    """Answers a parent's requests: a frame for a frame."""

    def handle(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]: ...


@runtime_checkable
class AsksBack(Host, Protocol):
    """A host that asks the parent while it answers a request. `ask_back` sends a message and returns the parent's."""

    ask_back: Callable[[JsonObject, bytes], JsonObject]


class Pipe:
    """Frames over two file descriptors. The functions are bound here, before any code of the learner runs."""

    def __init__(
        self,
        request_fd: int,
        reply_fd: int,
        read: Callable[[int, int], bytes] = os.read,
        write: Callable[[int, bytes | memoryview], int] = os.write,
    ) -> None:
        self.request_fd, self.reply_fd = request_fd, reply_fd
        self._read, self._write = read, write
        os.set_inheritable(request_fd, False)
        os.set_inheritable(reply_fd, False)

    def receive(self) -> tuple[JsonObject, bytes] | None:
        """Returns (header, blob) of the next frame, or None at the end."""
        start = self._exactly(LENGTHS.size)
        if start is None:
            return None
        header_bytes, blob_bytes = unpack_lengths(start)
        header, blob = self._exactly(header_bytes), self._exactly(blob_bytes)
        return None if header is None or blob is None else (unpack_header(header), blob)

    def _exactly(self, count: int) -> bytes | None:
        parts = []
        while count:
            part = self._read(self.request_fd, min(count, 1 << 20))
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def send(self, header: JsonObject, blob: bytes = b"") -> None:
        frame = memoryview(pack(header, blob))
        while frame:
            frame = frame[self._write(self.reply_fd, frame) :]


def ready(versions: dict[str, str]) -> JsonObject:
    """Sets up torch and Python, and returns the message that all that needs no submission is done, with versions."""
    torch.set_num_threads(1)
    sys.dont_write_bytecode = True
    versions = {"python": platform.python_version(), "torch": torch.__version__, **versions}
    return {"kind": "ready", "versions": {**versions, "numpy": np.__version__}}


def serve(host: Host, request_fd: int, reply_fd: int, readable: list[str]) -> None:
    """Answers the requests of one run, inside a fence with these places to read. Never returns."""
    pipe = Pipe(request_fd, reply_fd)
    reveal()
    leave = os._exit  # without the learner's atexit functions and destructors
    _limit_resources()
    faulthandler.register(signal.SIGXCPU, file=2, all_threads=False, chain=True)  # the line it was in, then its end
    pipe.send({"kind": "ready", "fence": asdict(close_fence(readable))})

    def ask_back(header: JsonObject, blob: bytes) -> JsonObject:
        pipe.send(header, blob)
        if (request := pipe.receive()) is None:
            leave(1)
        limit_cpu(request[0]["seconds"])
        return request[0]

    if isinstance(host, AsksBack):
        host.ask_back = ask_back
    try:
        while (request := pipe.receive()) is not None:
            limit_cpu(request[0]["seconds"])
            pipe.send(*host.handle(*request))
            limit_cpu(MOST_CPU_SECONDS)  # for the time between requests
    except OSError:  # the parent is gone, or the learner's file closed the pipe
        leave(1)
    leave(0)


def _limit_resources() -> None:
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    limit_memory_and_files(mapped + MORE_MEMORY, MOST_FILE_BYTES)
    lower(resource.RLIMIT_CPU, MOST_CPU_SECONDS)
    lower(resource.RLIMIT_NOFILE, MOST_OPEN_FILES)
