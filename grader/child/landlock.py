"""A fence around the child, where the kernel offers one: Linux' Landlock, which needs no privileges.

Inside it a submission, and all that it starts, reads and runs only what Python, torch and Triton need, and writes only
below its own temporary folder. It opens no TCP connection, and sends no signal to a process outside.

Each version of Landlock, its ABI, knows more rights than the version before, and refuses a fence that names a right
that it does not know. So a fence asks for all rights that the kernel at hand knows, and for no others.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system call numbers, the same on all architectures
VERSION_FLAG, PATH_BENEATH = 1, 1
PR_SET_NO_NEW_PRIVS = 38
LIBC = ctypes.CDLL(None, use_errno=True)

# Rights, as linux/landlock.h numbers them.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_AND_MAKE = 0b1_1111_1111 << 4  # remove a folder or a file, make any kind of file
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15  # from ABI 2 (move between folders), 3 and 5
TCP_BIND_AND_CONNECT = 0b11  # from ABI 4
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 0b01, 0b10  # from ABI 6
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV  # a rule for a file must name no others
TO_READ = EXECUTE | READ_FILE | READ_DIR
TO_WRITE = READ_FILE | READ_DIR | WRITE_FILE | REMOVE_AND_MAKE | REFER | TRUNCATE
# Files in which libraries look up their own process; other files of that folder tell of the machine's network.
OF_ITSELF = tuple(f"/proc/self/{name}" for name in ("maps", "stat", "statm", "status"))


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


@dataclass(frozen=True)
class Rights:
    """The rights that a fence takes away at one ABI, and the bytes of that ABI's ruleset structure."""

    files: int
    network: int
    scoped: int
    size: int


def rights_at(abi: int) -> Rights:
    """Returns all rights that this ABI can take away."""
    files = TO_READ | WRITE_FILE | REMOVE_AND_MAKE
    files |= REFER if abi >= 2 else 0
    files |= TRUNCATE if abi >= 3 else 0
    files |= IOCTL_DEV if abi >= 5 else 0
    network = TCP_BIND_AND_CONNECT if abi >= 4 else 0
    scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if abi >= 6 else 0
    return Rights(files, network, scoped, 24 if abi >= 6 else 16 if abi >= 4 else 8)


def close(own: str, readable: Iterable[str]) -> int:
    """Closes the fence for this process and its children. Returns the ABI that holds it; 0 where nothing does.

    `own`: the folder that they may write in, and run nothing from. `readable`: paths that they may read and run.
    """
    abi = abi_here()
    return abi if abi and _close_at(abi, own, readable) else 0


def abi_here() -> int:
    """Returns the version of Landlock that this kernel has; 0 where it has none, or where it is switched off."""
    version: int = LIBC.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION_FLAG)
    return max(0, version)


def _close_at(abi: int, own: str, readable: Iterable[str]) -> bool:
    rights = rights_at(abi)
    rules = _Ruleset(rights.files, rights.network, rights.scoped)
    ruleset = LIBC.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(rights.size), 0)
    if ruleset < 0:
        return False
    try:
        for path in (*readable, *OF_ITSELF):
            _allow(ruleset, path, TO_READ)
        for path in (own, os.devnull):
            _allow(ruleset, path, TO_WRITE & rights.files)
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        failed: int = LIBC.syscall(RESTRICT_SELF, ruleset, 0)
        return failed == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # it is not there, or not for this user: then there is nothing to allow
        return
    try:
        rule = _PathRule(rights if stat.S_ISDIR(os.fstat(parent).st_mode) else rights & OF_A_FILE, parent)
        LIBC.syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)
