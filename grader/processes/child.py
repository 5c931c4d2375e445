"""The child as the parent sees it: asked in frames under a time limit, ended without leftovers.

A child may stop, flood its pipe, start others or outlive its parent. Each of these ends here in a verdict, or in a
fault of the machine, and never in a parent that waits.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from grader.processes import scratch
from grader.processes.asked_process import AskedProcess, kill_group
from grader.processes.call_clock import TICK, CallClock
from grader.processes.descendants import MOST_TASKS, Started, own_children, started_by
from grader.processes.faults import ChildEnded, MachineFault, ServerLeft
from grader.processes.triton_forkserver_client import START_LIMIT, TritonForkServer, shared_triton_fork_server
from grader.processes.where import HEAD, Where, stack_in, where_in
from grader.wire.fence import Fence
from grader.wire.fields import build
from grader.wire.frames import OURS, SUBMISSIONS, JsonObject, Limits, ProtocolError
from grader.wire.messages import GpuModel
from grader.wire.timed_frames import Deadline

MOST_TEXT = 4000  # characters kept of what the learner's file prints
TIME_TO_TELL = 0.5  # seconds to tell where it is, once its time is used up
TIME_TO_LEAVE = 2.0  # seconds for a process that has closed its end of a pipe to be gone
TIME_TO_DIE = 10.0  # seconds for a killed process to be gone
LONGEST_WAIT = 120.0  # seconds of real time for each of these, however long it waits for a core
LOOK = 0.005  # seconds between two looks whether it has gone
MOST_STACK = 1 << 14  # bytes kept of the end of its output: there it tells where it is


OUT_OF_TIME = ChildEnded("signal", str(int(signal.SIGXCPU)))


class ChildProcess(AskedProcess):
    """A child that imports a file and records calls of its entry for `model`; without a model it interprets calls.

    `sandbox`: which of this process's sandboxes it is shut in, as each has room for one child; None for none. `task`:
    FRONT_END for a child that makes texts of a file's kernels for `model`. `limits`: how large its answers may be; None
    for SUBMISSIONS with a model, and for OURS without. Raises MachineFault where no child comes up.
    """

    Ended = ChildEnded

    def __init__(
        self,
        model: GpuModel | None = None,
        sandbox: int | None = None,
        task: str = "",
        limits: Limits | None = None,
    ) -> None:
        super().__init__(limits or (SUBMISSIONS if model else OURS))
        self.printed = ""
        self.printed_bytes = 0
        self.loaded = False  # the submission has been imported
        self._printed_last, self._filename = b"", ""
        self._status: int | None = None
        requests, replies = self._theirs
        self._output, output = os.pipe()
        self._output_seen = os.dup(self._output)  # the thread that reads the other closes it
        try:
            try:
                self._begin(shared_triton_fork_server(model, sandbox), task, requests, replies, output)
            except ServerLeft:
                self._begin(shared_triton_fork_server(model, sandbox), task, requests, replies, output)  # another one
        except (MachineFault, OSError):
            self._close_pipes()
            os.close(self._output)
            os.close(self._output_seen)
            raise
        finally:
            for descriptor in (requests, replies, output):
                os.close(descriptor)
        self.versions = self._fork_server.versions
        self._clock = CallClock(self._pid_here, self._waits_for_us)
        self._drain = threading.Thread(target=self._keep_printed, daemon=True)
        self._drain.start()
        self._too_many, self._ended = False, threading.Event()
        self._watch = threading.Thread(target=self._keep_few, daemon=True)
        self._watch.start()
        try:
            with self._told_how_it_ended():
                ready, _ = self._receive(Deadline(time.monotonic() + START_LIMIT))
                self.fence = build(Fence, ready.get("fence"))
        except ChildEnded as ended:
            self.end()
            raise MachineFault(f"the process that runs a submission did not come up ({ended.detail})") from None

    def _begin(self, server: TritonForkServer, task: str, requests: int, replies: int, output: int) -> None:
        """Has the child forked. Raises MachineFault, OSError."""
        self._fork_server = server
        # The child's folder lies in the Triton fork server's, so that it is removed with that at the latest.
        self.folder = Path(tempfile.mkdtemp(dir=server.folder))
        try:
            self._pid, self._pid_here = server.child(self.folder, requests, replies, output, task)
        except (MachineFault, OSError):
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def ask(self, header: JsonObject, blob: bytes, limit: float) -> tuple[JsonObject, bytes]:
        """Sends a frame and returns the answer. Raises ChildEnded when that takes more than `limit` seconds of a core,
        and when the child ends or gives no readable answer. The child has ended then.

        The child's own seconds count: a kernel is not at fault when other processes have the cores. A call that waits
        and does not compute ends as well, after seconds of waiting: see CallClock.
        """
        self._filename = header.get("filename", self._filename)
        deadline = self._clock.deadline(limit)
        try:
            return self._answer(deadline, {**header, "seconds": limit}, blob)
        except ChildEnded as ended:
            out_of_time = ended == OUT_OF_TIME or ended.how == "time"
            if ended.how == "time":
                self._ask_where_it_is()
            self.end()
            if out_of_time:
                raise ChildEnded("time", f"{limit:g} s", self._where_it_was()) from None
            raise

    @property
    def started(self) -> Started:
        """The counts of processes and threads that the child has started and that are still there."""
        return started_by(self._pid_here)

    @property
    def seconds_waiting(self) -> float:
        """The seconds that the child has waited for something other than a core, in all calls so far."""
        return self._clock.waited

    @property
    def seconds_of_a_core(self) -> float:
        """The seconds that the child has had a core since it began."""
        return self._clock.seconds_of_a_core()

    def _waits_for_us(self) -> bool:
        """Returns whether an answer or printed text lies unread: the child may wait until there is room for more."""
        lies_there = select.poll()
        for descriptor in (self._output_seen, self._reply):
            lies_there.register(descriptor, select.POLLIN)
        return any(event & select.POLLIN for _, event in lies_there.poll(0))

    def _ask_where_it_is(self) -> None:
        if not self._fork_server.sandboxed and self._status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self._pid, signal.SIGXCPU)
                self._wait_status(TIME_TO_TELL)

    def _where_it_was(self) -> Where:
        """Returns where the child was when its time was used up, and takes its stack out of what the file printed."""
        stack = stack_in(self._printed_last)
        self.printed_bytes -= len(stack)
        if stack and (head := HEAD.decode()) in self.printed:
            self.printed = self.printed.rpartition(head)[0]
        return where_in(stack, self._filename)

    def kill(self) -> None:
        """Kills the child and what it started, unless it is in a sandbox. A thread that waits for its answer learns
        that it is gone."""
        if not self.has_ended and not self._fork_server.sandboxed:
            kill_group(self._pid)

    def end(self) -> None:
        """Kills the child and everything it started, and removes its folder. May be called again."""
        if self.has_ended:
            return
        self._ended.set()
        self._watch.join()  # before the child's number can become another process's, which it would kill
        if self._fork_server.sandboxed:
            self._fork_server.end_child()
        else:
            kill_group(self._pid)
            self._wait_until(self._group_is_gone, TIME_TO_DIE)
        self._drain.join(TIME_TO_DIE)
        self._close_pipes()
        os.close(self._output_seen)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_status(self, limit: float) -> int | None:
        """Returns how the child ended, as os.waitstatus_to_exitcode tells it; None if it is there after `limit`
        seconds."""

        def has_ended() -> bool:
            self._status = self._status_now() if self._status is None else self._status
            return self._status is not None

        self._wait_until(has_ended, limit)
        return self._status

    def _wait_until(self, happened: Callable[[], bool], limit: float) -> None:
        """Waits until `happened()`, or for `limit` seconds without the time that the child or this thread waits for a
        core."""
        began, spent = time.monotonic(), 0.0
        while not happened() and spent < limit and time.monotonic() - began < LONGEST_WAIT:
            queued = self._clock.seconds_in_queue()
            time.sleep(LOOK)
            spent += min(LOOK, max(0.0, LOOK - (self._clock.seconds_in_queue() - queued)))

    def _status_now(self) -> int | None:
        """Returns how the child ended; None if it is still there, or if that cannot be known any more.

        An ended child keeps its number until `end`: it is its group's number too, and must not become another
        process's.
        """
        if self._fork_server.sandboxed:
            return self._fork_server.child_status()
        with contextlib.suppress(ChildProcessError):
            if ended := os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return None

    def _group_is_gone(self) -> bool:
        """Reaps the child and all its orphans that have ended; returns whether none is left."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-self._pid, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self._pid, 0)
        except ProcessLookupError:
            return True
        return False

    def _keep_few(self) -> None:
        """Kills the child and all that it started as soon as there are too many tasks, in a call or between calls."""
        while not self._ended.wait(TICK):
            if self._pid_here is not None and self.started.tasks > MOST_TASKS:
                self._too_many = True
                kill_group(self._pid_here)
                return

    def _how_it_ended(self, error: Exception) -> ChildEnded:
        if isinstance(error, ProtocolError):
            return ChildEnded("garbled", str(error))
        status = self._wait_status(TIME_TO_LEAVE)
        if self._too_many:
            return ChildEnded("processes", str(MOST_TASKS))
        if status is None:
            return ChildEnded("garbled", "it closed its descriptors")
        if status < 0:
            return ChildEnded("signal", str(-status))
        return ChildEnded("exit", str(status))

    def _keep_printed(self) -> None:
        kept = bytearray()
        with open(self._output, "rb", buffering=0) as output:
            while data := output.read(1 << 16):
                self.printed_bytes += len(data)
                self._printed_last = (self._printed_last + data)[-MOST_STACK:]
                if len(kept) < MOST_TEXT:
                    kept += data[: MOST_TEXT - len(kept)]
                    self.printed = kept.decode("utf-8", "replace")


def abandon_children() -> None:
    """Kills all children and removes their folders, before this process leaves at once, as from a signal handler."""
    scratch.make_no_more()
    for pid in own_children():
        kill_group(pid)
    scratch.remove_all()
