"""A pool of replay processes that all judges of a class on a GPU share, in its own process.

The driver makes contexts one after the other, 0.1 to 0.2 s each on an H200, whatever the number of GPUs: with three
contexts for each of 32 judges, the last judge was ready after 24 s, and the GPUs waited. A pool starts with three
contexts, has at most eight, and serves a dozen judges.

    judge -> pool    device   {}
                     check    {request, limit, alone}     with a blob
                     sample   {request, work, served}     with a blob
    pool -> judge    device   {uuid, model, why}          why: the reason why there is no GPU, else ""
                     reply    {reply, process}            the results of ReplayPool.check (without process),
                     ReplayPool.sample ended    {how, detail}               ReplayEnded
                     busy     {message}                   GpuBusy
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from dataclasses import asdict
from typing import NoReturn

from grader.gpu.device import Device, driver_device
from grader.gpu.lock import GpuBusy
from grader.gpu.pool.pool import ReplayPool
from grader.gpu.pool.replay_process import ReplayEnded
from grader.processes.child import abandon_children
from grader.processes.environment import ONE_THREAD, python_calling
from grader.wire.frames import received, send
from grader.wire.messages import GpuModel

CHECKERS, KEPT, SPARE = 2, 3, 1


class SharedPool:
    """The pool's process, for the GPU with this UUID. It ends with `end`, or when the owner of this object is gone."""

    def __init__(self, uuid: str) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                python_calling(__name__, theirs.fileno()),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], start_new_session=True, cwd="/",
                env={**os.environ, **ONE_THREAD, "CUDA_VISIBLE_DEVICES": uuid},
            )  # fmt: skip

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def connection(self) -> socket.socket:
        """Returns a connection for one more judge, as PoolElsewhere takes it; it is useless if the process is gone."""
        ours, theirs = socket.socketpair()
        with theirs, contextlib.suppress(OSError):
            socket.send_fds(self._control, [b"judge"], [theirs.fileno()])
        return ours

    def end(self) -> None:
        self._control.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class PoolElsewhere:
    """A stand-in for ReplayPool in a judge that is connected with a shared pool; `gone`: the pool's process has
    ended."""

    def __init__(self, connection: socket.socket) -> None:
        self._sent, self._replies = connection.makefile("wb"), connection.makefile("rb")
        self.gone = False

    def device(self) -> Device | str:
        """Returns the pool's GPU, or the reason, in words, why there is none."""
        try:
            reply, _ = self._ask({"kind": "device"}, b"")
        except ReplayEnded as ended:
            return ended.detail
        return reply["why"] or Device(reply["uuid"], GpuModel(**reply["model"]))

    def start(self, samplers: int, checkers: int = 0) -> None:
        """Does nothing: the shared pool's processes run already."""

    def check(self, request: dict, blob: bytes, limit: float, alone: bool) -> tuple[dict, bytes]:
        header, reply_blob = self._ask({"kind": "check", "request": request, "limit": limit, "alone": alone}, blob)
        return header["reply"], reply_blob

    def sample(self, request: dict, blob: bytes, work: str, served: list[int]) -> tuple[dict, int]:
        header, _ = self._ask({"kind": "sample", "request": request, "work": work, "served": served}, blob)
        return header["reply"], header["process"]

    def lent(self, request: dict) -> NoReturn:
        """Raises GpuBusy: a GPU that many judges share is lent to no single file for seconds."""
        raise GpuBusy("judges of a class share the GPU")

    def end(self) -> None:
        """Does nothing: the shared pool serves other judges too."""

    def _ask(self, header: dict, blob: bytes) -> tuple[dict, bytes]:
        try:
            send(self._sent, header, blob)
            reply, reply_blob = received(self._replies)
        except (OSError, EOFError):
            self.gone = True
            raise ReplayEnded("died", "the process that shares a GPU among judges is gone") from None
        if reply["kind"] == "busy":
            raise GpuBusy(reply["message"])
        if reply["kind"] == "ended":
            raise ReplayEnded(reply["how"], reply["detail"])
        return reply, reply_blob


# ---- inside of the process ------------------------------------------------------------------------------------------


def main(control_fd: int) -> None:
    """Serves each connection that comes over the control socket in a thread; ends the process when it closes."""
    device, control = driver_device(), socket.socket(fileno=control_fd)
    pool = ReplayPool(device.uuid, CHECKERS, KEPT, SPARE) if isinstance(device, Device) else None
    if pool is not None:
        pool.start(SPARE, CHECKERS)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 16, 1)
        if not message:
            abandon_children()  # a child in the middle of an endless kernel would not notice
            os._exit(0)
        connection = socket.socket(fileno=descriptors[0])
        threading.Thread(target=_serve, args=[device, pool, connection], daemon=True).start()


def _serve(device: Device | str, pool: ReplayPool | None, connection: socket.socket) -> None:
    with (
        contextlib.suppress(OSError, EOFError), connection,
        connection.makefile("rb") as requests, connection.makefile("wb") as replies,
    ):  # fmt: skip
        while True:
            send(replies, *_answer(device, pool, *received(requests)))


def _answer(device: Device | str, pool: ReplayPool | None, header: dict, blob: bytes) -> tuple[dict, bytes]:
    if header["kind"] == "device":
        answer = {"why": device} if isinstance(device, str) else {"why": "", **asdict(device)}
        return {"kind": "device", **answer}, b""
    if pool is None:
        return {"kind": "ended", "how": "died", "detail": device}, b""
    try:
        if header["kind"] == "check":
            reply, reply_blob = pool.check(header["request"], blob, header["limit"], header["alone"])
            return {"kind": "reply", "reply": reply}, reply_blob
        reply, process = pool.sample(header["request"], blob, header["work"], header["served"])
        return {"kind": "reply", "reply": reply, "process": process}, b""
    except ReplayEnded as ended:
        return {"kind": "ended", "how": ended.how, "detail": ended.detail}, b""
    except GpuBusy as busy:
        return {"kind": "busy", "message": str(busy)}, b""
