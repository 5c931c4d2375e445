"""Landlock's rights at each of its versions: a kernel takes a fence whole, or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from grader.child import landlock

NEWEST = 7
# From linux/landlock.h: the file rights that each ABI knows, its network rights, its scopes, its structure's size.
KNOWN = {
    1: ((1 << 13) - 1, 0, 0, 8),
    2: ((1 << 14) - 1, 0, 0, 8),
    3: ((1 << 15) - 1, 0, 0, 8),
    4: ((1 << 15) - 1, 0b11, 0, 16),
    5: ((1 << 16) - 1, 0b11, 0, 16),
    6: ((1 << 16) - 1, 0b11, 0b11, 24),
    7: ((1 << 16) - 1, 0b11, 0b11, 24),
}


@pytest.mark.parametrize("abi", KNOWN)
def test_it_asks_each_version_for_all_that_it_knows_and_nothing_else(abi):
    rights = landlock.rights_at(abi)
    assert (rights.files, rights.network, rights.scoped, rights.size) == KNOWN[abi]


def test_a_version_yet_to_come_gets_what_the_newest_known_one_gets():
    assert landlock.rights_at(NEWEST + 1) == landlock.rights_at(NEWEST)


def in_a_fork(look) -> object:
    """Returns what `look()` returns in a process of its own, which may fence itself in."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(look()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as said:
        text = said.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def seen(act) -> str:
    try:
        act()
    except OSError as error:
        return type(error).__name__
    return "done"


@pytest.mark.parametrize("abi", [abi for abi in KNOWN if abi <= landlock.abi_here()])
def test_a_newer_kernel_takes_the_fence_of_every_version(abi, tmp_path):
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    (other / "kept").write_text("kept")
    (read := tmp_path / "read").write_text("read")

    def look() -> list:
        held = landlock._close_at(abi, str(own), [str(read)])
        acts = [
            lambda: (own / "new").write_text("x"),
            lambda: Path(os.devnull).write_text("x"),
            lambda: (other / "new").write_text("x"),
            lambda: (other / "kept").unlink(),
            lambda: (other / "kept").read_text(),
            lambda: os.listdir(other),
            lambda: (other / "kept").rename(own / "kept"),
            lambda: read.write_text("x"),
            lambda: read.read_text() + (own / "new").read_text() + str(os.listdir(own)),
            lambda: Path("/proc/self/status").read_text(),
        ]
        return [held, *(seen(act) for act in acts)]

    refused = "PermissionError"
    held, *inside, moved, written, seen_here, of_itself = in_a_fork(look)
    assert held and inside == ["done", "done", refused, refused, refused, refused] and written == refused
    assert moved in (refused, "OSError")  # the first version answers EXDEV
    assert seen_here == of_itself == "done"
    assert (other / "kept").read_text() == "kept"


@pytest.mark.parametrize("answer", [-1, 0])
def test_a_kernel_without_it_is_told(monkeypatch, answer):
    class Libc:
        def syscall(self, *_) -> int:
            return answer

    monkeypatch.setattr(landlock, "LIBC", Libc())
    assert landlock.close(".", []) == 0


def test_a_kernel_that_refuses_the_ruleset_is_told():
    """As one that does not know a right: nothing may be taken for fenced then."""

    def look() -> int:
        landlock.rights_at = lambda abi: landlock.Rights(1 << 40, 0, 0, 24)
        return landlock.close(os.getcwd(), [])

    assert in_a_fork(look) == 0
