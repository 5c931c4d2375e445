"""Gives up capabilities, the parts of root's power, for good: a child that runs as root becomes an ordinary process."""

from __future__ import annotations

import ctypes

PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
PR_SET_NO_NEW_PRIVS = 38  # no program that is started from here gets more rights than its starter
VERSION_3 = 0x20080522  # linux/capability.h: 64 bits in two halves
LIBC = ctypes.CDLL(None)


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Half(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def drop() -> bool:
    """Gives up all capabilities, also for processes that are started from here. Returns False where some are left."""
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header, none, left = _Header(VERSION_3, 0), (_Half * 2)(), (_Half * 2)()
    LIBC.capset(ctypes.byref(header), none)
    known = LIBC.capget(ctypes.byref(header), left) == 0
    return known and not any(half.effective or half.permitted or half.inheritable for half in left)
