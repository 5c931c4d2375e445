"""The fence around a process that works on what others wrote. The process closes it itself, before that work begins.

Three parts of Linux hold the fence, each as far as it is there: capabilities are given up, Landlock restricts files,
and seccomp system calls. None of them can be undone, and all that the process starts is inside as well.
"""

from __future__ import annotations

import ctypes
import os

from grader.child import landlock, seccomp
from grader.wire.fence import Fence

PR_SET_CHILD_SUBREAPER = 36
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
PR_SET_NO_NEW_PRIVS = 38  # no program that is started from here gets more rights than its starter
VERSION_3 = 0x20080522  # linux/capability.h: 64 bits in two halves
LIBC = ctypes.CDLL(None)


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Half(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def close_fence(readable: list[str]) -> Fence:
    """Closes the fence and returns what holds. The current folder stays to write in, `readable` to read."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # its orphans become its own children, where they are counted
    given_up = _give_up_capabilities()
    abi = landlock.close(os.getcwd(), readable)
    return Fence(abi, seccomp.close(), given_up)


def _give_up_capabilities() -> bool:
    """Gives up the parts of root's power, also for what is started from here. Returns False where some are left."""
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header, none, left = _Header(VERSION_3, 0), (_Half * 2)(), (_Half * 2)()
    LIBC.capset(ctypes.byref(header), none)
    known = LIBC.capget(ctypes.byref(header), left) == 0
    return known and not any(half.effective or half.permitted or half.inheritable for half in left)
