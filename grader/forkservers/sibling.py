"""A fork whose child is a child of this process's parent, which can wait for it and learn how it ended."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal

CLONE_PARENT = 0x8000  # linux/sched.h
CLONE = {"x86_64": 56, "aarch64": 220}  # the number of the system call, asm/unistd.h


def fork_sibling() -> int:
    """Forks; returns 0 in the child and its process number here. The child's parent is the parent of this process.

    Only for a process with one thread: Python's handlers of a fork run, but not the C library's, which free the locks
    of other threads. If Linux refuses a sibling, the child is an orphan, which the next subreaper adopts.
    """
    with contextlib.suppress(OSError):
        return _cloned()
    return fork_orphan()


def _cloned() -> int:
    """Forks a sibling; returns as os.fork does. Raises OSError where Linux refuses, or this machine's clone is unknown.

    The first process of a container has no siblings.
    """
    if (number := CLONE.get(platform.machine())) is None:
        raise OSError("the number of clone is unknown for this machine")
    python, libc = ctypes.pythonapi, ctypes.PyDLL(None, use_errno=True)  # both keep Python's lock
    python.PyOS_BeforeFork()
    pid = libc.syscall(ctypes.c_long(number), ctypes.c_ulong(CLONE_PARENT | signal.SIGCHLD), *[ctypes.c_void_p(0)] * 4)
    error = ctypes.get_errno()
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(error, os.strerror(error))
    return pid


def fork_orphan() -> int:
    """Forks twice, so that the child's own parent ends at once. Returns as os.fork does."""
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.close(writing)
            return 0
        os.write(writing, str(pid).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(middle, 0)
    pid = int(os.read(reading, 20))
    os.close(reading)
    return pid
