"""A fork whose child belongs to the parent of the process that forks it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.waiting import NEVER

# This process waits for a child that the child which it starts has forked, and learns how it ended.
SCRIPT = """
import ctypes, os, random, sys
from grader.forkservers import sibling
{before}
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
random.seed(1)
reading, writing = os.pipe()
middle = os.fork()
if middle == 0:
    pid = sibling.{fork}()
    if pid == 0:
        os.write(writing, f"{{os.getpid()}} {{random.random()}} ".encode())
        os._exit(7)
    os.write(writing, f"{{pid}} {{random.random()}} ".encode())
    os._exit(0)
os.waitpid(middle, 0)
pid, status = os.waitpid(-1, 0)
os.close(writing)
told = os.read(reading, 1000).decode().split()
print(os.waitstatus_to_exitcode(status), {{told[0], told[2]}} == {{str(pid)}}, told[1] != told[3])
"""


@pytest.mark.parametrize(
    "fork, before",
    [
        ("fork_sibling", "sibling.fork_orphan = None"),
        ("fork_orphan", ""),
        ("fork_sibling", "sibling.CLONE.clear()"),
        ("fork_sibling", "sibling.CLONE_PARENT |= 1 << 16 | 1 << 9  # CLONE_THREAD without CLONE_SIGHAND is refused"),
    ],
    ids=["sibling", "orphan", "another machine", "refused"],
)
def test_the_parent_waits_for_the_child_of_its_child(fork, before):
    """And Python's own handlers of a fork have run: the random numbers of the two go different ways."""
    script = SCRIPT.format(fork=fork, before=before)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=NEVER)
    assert done.stdout.split() == ["7", "True", "True"], done.stderr
