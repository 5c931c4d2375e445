"""The fence around a process that works on what others wrote. The process closes it itself, before that work begins.

Three parts of Linux hold the fence, each as far as it is there: capabilities are given up, Landlock restricts files,
and seccomp system calls. None of them can be undone, and all that the process starts is inside as well.
"""

from __future__ import annotations

import ctypes
import os

from grader.child import capabilities, landlock, seccomp
from grader.wire.fence import Fence

PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None)


def close_fence(readable: list[str]) -> Fence:
    """Closes the fence and returns what holds. The current folder stays to write in, `readable` to read."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # its orphans become its own children, where they are counted
    given_up = capabilities.drop()
    abi = landlock.close(os.getcwd(), readable)
    return Fence(abi, seccomp.close(), given_up)
