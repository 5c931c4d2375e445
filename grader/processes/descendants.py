"""The processes and threads that a child has started, read from /proc.

None of them can get out of sight: a child adopts its orphans (grader/child/enclosing.py), so that all it has started is
below it in the tree of processes for as long as it lives.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from grader.processes.call_clock import TICKS_A_SECOND

MOST_TASKS = 64  # threads of a child and of all that it has started; a right submission has one or two


@dataclass(frozen=True)
class Started:
    """Counts. processes: all below the child, including ended processes that nobody has waited for. tasks: all threads,
    the child's own included."""

    processes: int
    tasks: int


def started_by(pid: int | None, most_tasks: int = MOST_TASKS) -> Started:
    """Returns what a process and its descendants have started so far; looks no further than past `most_tasks` threads.

    None, a process that is gone, and a process that /proc does not show have started nothing.
    """
    pids, tasks = [] if pid is None else [pid], 0
    for one in pids:
        threads = _threads(one)
        tasks += len(threads)
        for thread in threads:
            pids += _children(thread)
        if tasks > most_tasks:
            break
    return Started(max(0, len(pids) - 1), tasks)


def seconds_of_a_core(pid: int) -> float:
    """Returns how long a process and its descendants have had a core; of those that have ended, the ones that were
    waited for."""
    pids, seconds = [pid], 0.0
    for one in pids:
        with contextlib.suppress(OSError), open(f"/proc/{one}/stat", "rb", buffering=0) as file:  # or it has ended
            fields = file.readall().rpartition(b")")[2].split()  # the name before may hold anything
            seconds += sum(map(int, fields[11:15])) / TICKS_A_SECOND
        for thread in _threads(one):
            pids += _children(thread)
    return seconds


def own_children() -> list[int]:
    """Returns the process numbers of this process's children, adopted orphans included."""
    return [child for thread in _threads("self") for child in _children(thread)]


def _threads(pid: int | str) -> list[str]:
    """Returns the folders of a process's threads in /proc, as texts: pathlib would take most of the time of a look."""
    with contextlib.suppress(OSError):
        return [f"/proc/{pid}/task/{name}" for name in os.listdir(f"/proc/{pid}/task")]
    return []


def _children(thread: str) -> list[int]:
    with contextlib.suppress(OSError), open(f"{thread}/children", "rb", buffering=0) as file:  # or it has ended
        return [int(pid) for pid in file.readall().split()]
    return []
