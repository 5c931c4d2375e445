"""The state that a fork server passes on to every process that it forks: limits, priority, scheduling, cores.

Another process may change it from outside, and each later child would have the change too. So a server looks before
each fork, and exits if anything is not as it was when it began.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

LIMITS = tuple(sorted(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")))
CHANGED = 3  # the exit status of a server whose state has changed


@dataclass(frozen=True)
class OwnState:
    limits: tuple[tuple[int, int], ...]
    priority: int
    scheduler: int
    cores: frozenset[int]


def own_state() -> OwnState:
    """Returns the state of this process, as it is now."""
    limits = tuple(resource.getrlimit(limit) for limit in LIMITS)
    priority = os.getpriority(os.PRIO_PROCESS, 0)
    return OwnState(limits, priority, os.sched_getscheduler(0), frozenset(os.sched_getaffinity(0)))
