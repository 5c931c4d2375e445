"""Ends a call of another process by what that process does, not by how busy the machine is.

A process without a core is not at fault, so seconds of real time count for nothing. Two times count, which are read
from /proc: the seconds that it had a core, and the seconds that it slept, waited for a lock or for input.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from grader.wire.timed_frames import Deadline

WAITING = 2.0  # seconds that a call may wait for something other than a core, beyond its limit
LAST_RESORT = 600.0  # seconds of real time, for a process that neither computes nor waits: it is stuck in the kernel
TICK = 0.05  # seconds between two looks at the process
WAITING_STATES = "STtZX"  # asleep, stopped, gone while another holds its pipe; a process that waits for a disk is in D
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class ProcessTimes:
    """The seconds that a process had a core, the seconds that it was ready to run without a core, and its state.

    All its threads count, but ended threads only for `running`. A Linux kernel that does not count the wait for a core
    gives 0 for `queued`. The state is a letter, as in /proc/PID/stat: of the main thread, or of a thread that does not
    wait.
    """

    running: float
    queued: float
    state: str


def process_times(pid: int) -> ProcessTimes | None:
    """Returns the times of a process; None where there is no process of this number, or /proc does not show it."""
    try:
        state, running = _state_and_running(f"/proc/{pid}")
        threads = [f"/proc/{pid}/task/{name}" for name in os.listdir(f"/proc/{pid}/task")]
    except (OSError, ValueError, IndexError):
        return None
    states, counted, queued = [state], 0.0, 0.0
    for thread in threads:
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended, or the kernel does not count
            states.append(_state_and_running(thread)[0])
            nanoseconds = _read(f"{thread}/schedstat").split()
            counted, queued = counted + int(nanoseconds[0]) / 1e9, queued + int(nanoseconds[1]) / 1e9
    does_not_wait = (state for state in states if state not in WAITING_STATES)
    return ProcessTimes(max(running, counted), queued, next(does_not_wait, state))


def _state_and_running(process: str) -> tuple[str, float]:
    """Returns the state and the seconds of a core of a process or a thread. Raises OSError, ValueError, IndexError."""
    fields = _read(f"{process}/stat").rpartition(b")")[2].split()  # the name before may hold anything
    return fields[0].decode(), (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


class CallClock:
    """Looks at a process every TICK of a call, and ends the call when the process has computed or waited for too long.

    `pid`: None where it is not known; then LAST_RESORT alone ends a call. `is_held_up()`: whether it may be waiting for
    us. A look that comes late counts as one TICK: the process that looks may have had no core either.
    """

    def __init__(self, pid: int | None, is_held_up: Callable[[], bool]) -> None:
        self.waited = 0.0  # seconds, in all calls so far
        self._computed = 0.0  # seconds of a core since it began, when it was last seen
        self._pid, self._is_held_up = pid, is_held_up
        self._looked = 0.0  # when, as time.monotonic tells it
        self._seen: ProcessTimes | None = None  # at the look before

    def deadline(self, limit: float) -> Deadline:
        """Returns the deadline of a call that begins now and may take `limit` seconds of a core."""
        began, waited_before = time.monotonic(), self.waited
        first = self._seen = None

        def later() -> float:
            nonlocal first
            self._look()
            first = first or self._seen
            computed = self._seen.running - first.running if self._seen and first else 0.0
            is_over = computed + self.waited - waited_before > limit + WAITING
            now = time.monotonic()
            return now if is_over else min(began + LAST_RESORT, now + TICK)

        return Deadline(began + TICK, later)

    def seconds_of_a_core(self) -> float:
        """Returns how long the process has had a core since it began, as far as it was seen; 0 where it never was."""
        self._times()
        return self._computed

    def seconds_in_queue(self) -> float:
        """Returns how long the process has waited for a core since it began; 0 where that is not known."""
        times = self._times()
        return times.queued if times else 0.0

    def _times(self) -> ProcessTimes | None:
        times = None if self._pid is None else process_times(self._pid)
        if times:
            self._computed = times.running
        return times

    def _look(self) -> None:
        is_held_up = self._is_held_up()  # before its state is read: what waited for us then may be awake by now
        times, before, now = self._times(), self._seen, time.monotonic()
        if times and before and times.state in WAITING_STATES and not is_held_up and not self._is_held_up():
            busy = times.running - before.running + max(0.0, times.queued - before.queued)  # less where a thread ended
            self.waited += max(0.0, min(now - self._looked, TICK) - busy)
        self._seen, self._looked = times, now
