"""A socket of one worker's that takes connections from others, and the offer that leads to it."""

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
