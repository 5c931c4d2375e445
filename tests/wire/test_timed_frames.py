"""Frames over pipes to a process that is slow, silent or gone."""

from __future__ import annotations

import os
import threading
import time

import pytest

from grader.wire.frames import LENGTHS, SUBMISSIONS, ProtocolError, pack
from grader.wire.timed_frames import Deadline, received, send
from tests.waiting import NEVER

HEADER, BLOB = {"kind": "run"}, bytes(3 << 20)  # more than a pipe holds


@pytest.fixture
def pipe():
    """(reading end, writing end, which does not block); a test closes an end and puts None in its place."""
    ends = list(os.pipe())
    os.set_blocking(ends[1], False)
    yield ends
    for end in ends:
        if end is not None:
            os.close(end)


def close(pipe: list, end: int) -> None:
    os.close(pipe[end])
    pipe[end] = None


def soon(seconds: float = 0.05) -> Deadline:
    return Deadline(time.monotonic() + seconds)


def test_a_frame_larger_than_the_pipe_comes_through(pipe):
    sender = threading.Thread(target=send, args=(pipe[1], HEADER, BLOB, soon(NEVER)))
    sender.start()
    assert received(pipe[0], soon(NEVER)) == (HEADER, BLOB)
    sender.join()


def test_whoever_says_nothing_or_reads_nothing_is_not_waited_for(pipe):
    with pytest.raises(TimeoutError):
        received(pipe[0], soon())
    with pytest.raises(TimeoutError):
        send(pipe[1], HEADER, BLOB, soon())


def test_a_frame_that_stops_in_the_middle_is_not_waited_for(pipe):
    os.write(pipe[1], pack(HEADER, b"abc")[:-1])
    with pytest.raises(TimeoutError):
        received(pipe[0], soon())


def test_whoever_is_gone_is_noticed_at_once(pipe):
    os.write(pipe[1], pack(HEADER, b"abc")[:-1])
    close(pipe, 1)
    with pytest.raises(EOFError):
        received(pipe[0], soon(NEVER))


def test_whoever_reads_no_more_is_noticed_at_once(pipe):
    close(pipe, 0)
    with pytest.raises(BrokenPipeError):
        send(pipe[1], HEADER, BLOB, soon(NEVER))


@pytest.mark.parametrize("start", [b"\xff" * 8, LENGTHS.pack(10, 33 << 20)])
def test_a_frame_over_the_limit_is_refused_before_it_is_read(pipe, start):
    os.write(pipe[1], start)
    with pytest.raises(ProtocolError):
        received(pipe[0], soon(NEVER), SUBMISSIONS)


def test_a_deadline_that_moves_is_waited_for(pipe):
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        received(pipe[0], Deadline(begun + 0.05, later=lambda: begun + 0.2))
    assert time.monotonic() - begun >= 0.2
