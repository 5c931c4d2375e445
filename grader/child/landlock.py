"""A fence around the child, where the kernel offers one: Linux' Landlock, which needs no privileges.

Inside it a submission, and whatever it starts, can write only below its own temporary folder, opens no TCP
connection, and sends no signal to a process outside. It can still read files and use CPU time: this keeps accidents
and simple mischief in, it is no sandbox for hostile code.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system call numbers, the same on all architectures
VERSION_FLAG, PATH_BENEATH = 1, 1
PR_SET_NO_NEW_PRIVS = 38

WRITE_FILE = 1 << 1
REMOVE_AND_MAKE = 0b111_1111_1111 << 4  # remove a folder or file, make any kind of file, refer (ABI 2)
REFER, TRUNCATE = 1 << 13, 1 << 14  # from ABI 2 and 3
TCP_BIND_AND_CONNECT = 0b11  # from ABI 4
SCOPE_SIGNALS = 0b10  # from ABI 6


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def close(*writable: Path) -> bool:
    """Closes the fence for this process and its children; False where the kernel has no Landlock."""
    libc = ctypes.CDLL(None, use_errno=True)
    abi = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION_FLAG)
    if abi < 1:
        return False
    writing = WRITE_FILE | REMOVE_AND_MAKE
    writing = (writing | TRUNCATE) if abi >= 3 else writing if abi >= 2 else writing & ~REFER
    rules = _Ruleset(writing, TCP_BIND_AND_CONNECT if abi >= 4 else 0, SCOPE_SIGNALS if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = libc.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    try:
        for path in writable:
            _allow(libc, ruleset, path, writing)
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return libc.syscall(RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, writing: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        allowed = writing if path.is_dir() else writing & (WRITE_FILE | TRUNCATE)
        rule = _PathRule(allowed, parent)
        libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)
