"""A GPU lent to workers without one: their judges interpret and compile, and ask that GPU's pool over the network.

    worker with a GPU       a Door takes connections of those who know its token, and hands them to its pool
    the command             looks what each worker says of itself, its Standing, and lends: grader.classroom.loans
    worker without a GPU    announces a GPU like the others from then on, so Dask gives it texts

Where a text is judged changes no verdict: whoever asks, the pool of a GPU does what it always does.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

HANDSHAKE_LIMIT = 10.0  # seconds
LOST_AFTER = 120  # seconds in which the machine at the other end says nothing at all
MOST_GREETED = 64  # connections at a time that have not shown their token
TOKEN_BYTES = 32
WELCOME = b"!"


@dataclass(frozen=True)
class Offer:
    """Where the pool of a worker's GPU takes connections, and the bytes that each has to begin with."""

    worker: str  # its address for Dask
    host: str
    port: int
    token: bytes = field(repr=False)

    def connection(self) -> socket.socket:
        """For one judge. Raises OSError where nobody answers, or not as this offer's worker would."""
        connection = socket.create_connection((self.host, self.port), HANDSHAKE_LIMIT)
        try:
            connection.sendall(self.token)
            if connection.recv(1) != WELCOME:
                raise ConnectionError(f"{self.host}:{self.port} is the door of somebody else now")
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection


class Door:
    """Takes connections at an address of this host; `admit` gets those with the token, each in a thread of its own."""

    def __init__(self, worker: str, host: str, admit: Callable[[socket.socket], None]) -> None:
        self._admit, self._open = admit, True
        self._greeting = threading.BoundedSemaphore(MOST_GREETED)
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.offer = Offer(worker, host, self._listener.getsockname()[1], secrets.token_bytes(TOKEN_BYTES))
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self._open = False
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread that waits there
        self._listener.close()

    def _listen(self) -> None:
        while self._open:
            self._greeting.acquire()
            try:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._greet, args=[connection], daemon=True).start()
            except (OSError, RuntimeError):  # no descriptors or threads left, or the visitor is gone: that passes
                self._greeting.release()
                time.sleep(0.1)

    def _greet(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            try:
                connection.settimeout(HANDSHAKE_LIMIT)
                token = _received(connection, TOKEN_BYTES)
            finally:
                self._greeting.release()
            if hmac.compare_digest(token, self.offer.token):
                connection.sendall(WELCOME)
                _prepare(connection)
                self._admit(connection)


def _received(connection: socket.socket, count: int) -> bytes:
    """So many bytes; fewer where the other end has no more to say."""
    data = b""
    while len(data) < count and (part := connection.recv(count - len(data))):
        data += part
    return data


def _prepare(connection: socket.socket) -> None:
    """Answers are small and waited for, for as long as the machine at the other end is there."""
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    seconds = {socket.TCP_KEEPIDLE: LOST_AFTER // 4, socket.TCP_KEEPINTVL: LOST_AFTER // 4, socket.TCP_KEEPCNT: 3}
    for option, value in (*seconds.items(), (socket.TCP_USER_TIMEOUT, 1000 * LOST_AFTER)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


# ---- who gets which --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """What a worker says of itself. judges: as many texts at a time, with a GPU, as it announces; or could."""

    judges: int
    own: Offer | None = None  # of its own GPU
    borrows: bool = False  # it has none
    borrowed: Offer | None = None
    announced: bool = False  # Dask gives it texts that want a GPU
    waiting: bool = False  # it has such texts, and none to judge them with


def loans_for(standings: dict[str, Standing], most_judges: int) -> dict[str, tuple[Offer, int]]:
    """By worker that has no GPU yet: an offer, and how many texts at a time it may judge by it.

    The GPU with the fewest judges comes first, and none gets more than `most_judges`; except that a worker to which
    Dask gives texts already, or gave some before its GPU was taken back, has to have one: nobody takes them from it.
    A worker that has one and announces none, since another command took it back, counts as one that has none.
    """
    load = Counter({one.own: one.judges for one in standings.values() if one.own})
    for one in standings.values():
        if one.borrowed in load and one.announced:
            load[one.borrowed] += one.judges
    loans: dict[str, tuple[Offer, int]] = {}
    for worker, one in sorted(standings.items()):
        if not load or not one.borrows or (one.borrowed and one.announced):
            continue
        offer = min(load, key=lambda offer: (load[offer], offer.worker))
        count = min(one.judges, max(most_judges - load[offer], int(one.announced or one.waiting)))
        if count > 0:
            loans[worker] = offer, count
            load[offer] += count
    return loans


def is_withdrawn(standings: dict[str, Standing], present: Collection[str]) -> bool:
    """Whether a worker uses the GPU of one that is gone, or that began anew. `present`: whom the scheduler knows.

    One that is present and does not answer may only be slow.
    """
    for one in standings.values():
        if (offer := one.borrowed) is None:
            continue
        owner = standings.get(offer.worker)
        if offer.worker not in present or (owner is not None and owner.own != offer):
            return True
    return False
