"""A socket on which a worker takes connections from other workers, and the offer that leads to it."""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

HANDSHAKE_LIMIT = 10.0  # seconds
LOST_AFTER = 120  # seconds of silence after which the machine at the other end counts as lost
MOST_GREETED = 64  # connections at a time that have not shown their token
TOKEN_BYTES = 32
WELCOME = b"!"


@dataclass(frozen=True)
class Offer:
    """The address at which a worker's pool takes connections, and the bytes with which each connection has to begin."""

    worker: str  # the worker's Dask address
    host: str
    port: int
    token: bytes = field(repr=False)

    def connection(self) -> socket.socket:
        """Returns a connection for one judge. Raises OSError where nobody answers, or another worker does."""
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
    """Takes connections at an address of this host.

    `admit` is called with each connection that has sent the token, in a thread per connection; afterwards the
    connection is closed.
    """

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
    """Returns `count` bytes, or fewer where the other end closes the connection first."""
    data = b""
    while len(data) < count and (part := connection.recv(count - len(data))):
        data += part
    return data


def _prepare(connection: socket.socket) -> None:
    """Sets a connection up for small answers, which are waited for without a time limit.

    A machine that is silent for LOST_AFTER seconds counts as lost: its connection then raises OSError.
    """
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    seconds = {socket.TCP_KEEPIDLE: LOST_AFTER // 4, socket.TCP_KEEPINTVL: LOST_AFTER // 4, socket.TCP_KEEPCNT: 3}
    for option, value in (*seconds.items(), (socket.TCP_USER_TIMEOUT, 1000 * LOST_AFTER)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
