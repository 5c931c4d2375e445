"""Limits that a process sets itself before it works on what others wrote: memory, files, seconds of a core."""

from __future__ import annotations

import math
import resource
import signal


def limit_memory_and_files(address_space: int, file_bytes: int) -> None:
    """Limits this process's address space and the files that it writes, in bytes, for good. No core file is left.

    A write beyond the limit of a file raises OSError.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    lower(resource.RLIMIT_AS, address_space)
    lower(resource.RLIMIT_FSIZE, file_bytes)
    lower(resource.RLIMIT_CORE, 0)


def lower(limit: int, value: int) -> None:
    """Sets a limit for good; a limit that is lower already stays."""
    value = _allowed(limit, value)
    resource.setrlimit(limit, (value, value))


def limit_cpu(seconds: float) -> None:
    """Sets the time of the next request, in seconds of a core from now on; after it SIGXCPU ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    value = _allowed(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (value, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _allowed(limit: int, value: int) -> int:
    _, most = resource.getrlimit(limit)
    return value if most == resource.RLIM_INFINITY else min(value, most)
