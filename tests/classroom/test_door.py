"""Who is let in at the door of a worker that lends its GPU, and what is behind it."""

from __future__ import annotations

import errno
import socket
from dataclasses import replace

import pytest

from grader.classroom.cluster.door import MOST_GREETED, Door
from grader.gpu.device import NO_GPU
from grader.gpu.pool.shared_pool import PoolElsewhere, SharedPool
from tests.waiting import NEVER, until

HERE = "127.0.0.1"


@pytest.fixture
def door():
    """A door behind which everybody is told "hello"."""
    door = Door("worker", HERE, lambda connection: connection.sendall(b"hello"))
    yield door
    door.close()


def told(connection: socket.socket) -> bytes:
    connection.settimeout(NEVER)
    return b"".join(iter(lambda: connection.recv(100), b""))


def test_whoever_knows_the_token_is_let_in(door):
    with door.offer.connection() as connection:
        assert told(connection) == b"hello"


@pytest.mark.parametrize("token", [b"x" * 32, b"short", b""], ids=["another one", "a part", "none"])
def test_nobody_else_is(door, token):
    with socket.create_connection((HERE, door.offer.port)) as connection:
        connection.sendall(token)
        connection.shutdown(socket.SHUT_WR)
        assert told(connection) == b""
    with pytest.raises(ConnectionError, match="the door of somebody else"):
        replace(door.offer, token=token.ljust(32)).connection()


def test_a_token_may_come_in_pieces(door):
    with socket.create_connection((HERE, door.offer.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(door.offer.token[:5])
        until(lambda: door._greeting._value < MOST_GREETED)
        connection.sendall(door.offer.token[5:])
        assert told(connection) == b"!hello"


def test_those_who_say_nothing_keep_nobody_out(door):
    silent = [socket.create_connection((HERE, door.offer.port)) for _ in range(10)]
    with door.offer.connection() as connection:
        assert told(connection) == b"hello"
    for one in silent:
        one.close()


def test_a_door_stays_open_when_a_visitor_cannot_be_taken(door, monkeypatch):
    taken = door._listener.accept
    failures = [OSError(errno.EMFILE, "Too many open files"), RuntimeError("can't start new thread")]

    class Listener:
        def accept(self):
            if failures:
                raise failures.pop()
            return taken()

        def shutdown(self, how: int) -> None:
            listener.shutdown(how)

        def close(self) -> None:
            listener.close()

    listener = door._listener
    door._listener = Listener()
    for _ in range(4):  # the first is taken by the real one, which waits already
        with door.offer.connection() as connection:
            assert told(connection) == b"hello"
    assert not failures


def test_behind_the_door_a_real_pool_answers():
    """A process of its own; there is no such GPU, and that is what it says."""
    pool = SharedPool("GPU-of-nobody")
    door = Door("worker", HERE, pool.serve)
    try:
        with door.offer.connection() as connection:
            assert PoolElsewhere(connection).device() == NO_GPU
    finally:
        door.close()
        pool.end()


def test_a_closed_door_takes_nobody(door):
    door.close()
    with pytest.raises(OSError):
        door.offer.connection()


def test_each_door_has_a_token_of_its_own_and_does_not_tell_it(door):
    other = Door("worker", HERE, lambda connection: None)
    other.close()
    assert other.offer.token != door.offer.token
    assert repr(door.offer.token)[2:10] not in repr(door.offer)
