"""A GPU lent to workers without one: their judges interpret and compile, and ask that GPU's pool over the network.

    worker with a GPU       a Door takes connections of those who know its token, and hands them to its pool
    the command             Lending tells workers without a GPU which Door is theirs, also when workers come and go
    worker without a GPU    announces a GPU like the others from then on, so Dask gives it texts

Where a text is judged changes no verdict: whoever asks, the pool of a GPU does what it always does.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

HANDSHAKE_LIMIT = 10.0  # seconds
TOKEN_BYTES = 32


@dataclass(frozen=True)
class Offer:
    """Where the pool of a GPU takes connections, and the bytes that each has to begin with."""

    host: str
    port: int
    token: bytes

    def connection(self) -> socket.socket:
        """For one judge. Raises OSError where nobody answers."""
        connection = socket.create_connection((self.host, self.port), HANDSHAKE_LIMIT)
        connection.sendall(self.token)
        connection.settimeout(None)
        _prepare(connection)
        return connection


class Door:
    """Takes connections at an address of this host; `admit` gets those with the token, each in a thread of its own."""

    def __init__(self, host: str, admit: Callable[[socket.socket], None]) -> None:
        self._admit = admit
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.offer = Offer(host, self._listener.getsockname()[1], secrets.token_bytes(TOKEN_BYTES))
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread that waits there
        self._listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._greet, args=[connection], daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(HANDSHAKE_LIMIT)
            token = connection.recv(TOKEN_BYTES, socket.MSG_WAITALL)
            if hmac.compare_digest(token, self.offer.token):
                connection.settimeout(None)
                _prepare(connection)
                self._admit(connection)


def _prepare(connection: socket.socket) -> None:
    """Answers are small and waited for; and a machine that falls off is noticed within two minutes."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 30), (socket.TCP_KEEPCNT, 3)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


class Lending:
    """The command's end: which worker's GPU each worker without one uses.

    `offered(worker)` gives the Offer of a worker with a GPU, `lent(worker, offer)` tells a worker which is its own now,
    None for none. Both give None, False, where the worker does not answer: then it is tried again.
    """

    def __init__(
        self, most_judges: int, offered: Callable[[str], Offer | None], lent: Callable[[str, Offer | None], bool]
    ) -> None:
        self._most_judges, self._offered, self._lent = most_judges, offered, lent
        self._owner: dict[str, str] = {}  # by borrower: whose GPU it uses

    def settle(self, judges: dict[str, int], owners: set[str]) -> None:
        """`judges`: how many each worker has; `owners`: the workers with a GPU of their own."""
        borrowers = judges.keys() - owners
        self._owner = {one: owner for one, owner in self._owner.items() if one in borrowers}
        for borrower in sorted(one for one in borrowers if self._owner.get(one) not in owners):
            self._find_owner(borrower, judges, owners)

    def _find_owner(self, borrower: str, judges: dict[str, int], owners: set[str]) -> None:
        """The GPU with the fewest judges, if it has too few; a borrower whose GPU is gone gets none in its place."""
        load = Counter({owner: judges[owner] for owner in owners})
        for other, owner in self._owner.items():
            load[owner] += judges[other]
        for owner in sorted(owners, key=lambda one: (load[one], one)):
            if load[owner] >= self._most_judges:
                break
            offer = self._offered(owner)
            if offer is not None and self._lent(borrower, offer):
                self._owner[borrower] = owner
                return
        if borrower in self._owner and self._lent(borrower, None):
            del self._owner[borrower]
