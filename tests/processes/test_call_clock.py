"""A call is ended by what its process does: neither what others do with the cores nor what we are late with counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from grader.gpu.models import DEFAULT_MODEL
from grader.processes import bubblewrap, call_clock
from grader.processes.call_clock import LAST_RESORT, TICK, WAITING, CallClock, ProcessTimes, process_times
from grader.processes.child import ChildProcess
from grader.processes.faults import ChildEnded
from tests.waiting import until

SLEEPS = b"import time\ntime.sleep(1e6)\n"
IN_SANDBOX = pytest.mark.skipif(bool(bubblewrap.missing()), reason=bubblewrap.missing() or "-")


class Machine:
    """A process and a clock that do as they are told."""

    def __init__(self) -> None:
        self.now, self.running, self.queued, self.state, self.held_up = 1000.0, 5.0, 7.0, "R", False

    def passes(self, seconds: float, state: str, running: float = 0.0, queued: float = 0.0) -> None:
        self.now, self.state = self.now + seconds, state
        self.running, self.queued = self.running + running, self.queued + queued


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(call_clock.time, "monotonic", lambda: machine.now)
    monkeypatch.setattr(
        call_clock, "process_times", lambda pid: ProcessTimes(machine.running, machine.queued, machine.state)
    )
    return machine


def looks(machine: Machine, limit: float, state: str, every: float = TICK, **spent: float) -> tuple[int, float]:
    """How many looks a call gets before it is ended, where in each of them the process spends its time so; and the
    seconds that it is said to have waited."""
    clock = CallClock(1, lambda: machine.held_up)
    deadline, count = clock.deadline(limit), 0
    while count < 10 * LAST_RESORT / TICK:
        machine.passes(every, state, **spent)
        count += 1
        if deadline.later() <= machine.now:
            break
    return count, clock.waited


def test_one_that_sleeps_is_ended_after_its_limit_and_what_it_may_wait(machine):
    count, waited = looks(machine, 1.0, "S")
    assert count * TICK == pytest.approx(1.0 + WAITING + 2 * TICK, abs=TICK)
    assert waited == pytest.approx(1.0 + WAITING, abs=2 * TICK)


def test_one_that_computes_past_its_limit_and_is_deaf_to_the_kernels_signal_is_ended_too(machine):
    count, waited = looks(machine, 1.0, "R", running=TICK)
    assert count * TICK == pytest.approx(1.0 + WAITING + 2 * TICK, abs=TICK) and waited == 0.0


def test_one_that_computes_between_looks_and_sleeps_at_each_is_not_charged_for_what_it_computes(machine):
    _, waited = looks(machine, 1.0, "S", running=TICK / 2)
    assert waited == pytest.approx((1.0 + WAITING) / 2, abs=2 * TICK)


@pytest.mark.parametrize("state", ["R", "S", "D"])
def test_one_that_waits_for_a_core_has_until_the_last_resort(machine, state):
    count, waited = looks(machine, 1.0, state, queued=TICK)
    assert count * TICK == pytest.approx(LAST_RESORT, rel=0.01) and waited == pytest.approx(0.0, abs=1e-6)


def test_one_that_waits_for_a_disk_has_until_the_last_resort(machine):
    count, waited = looks(machine, 1.0, "D")
    assert count * TICK == pytest.approx(LAST_RESORT, rel=0.01) and waited == 0.0


def test_one_that_waits_until_we_have_read_its_answer_or_what_it_prints_does_not_wait(machine):
    machine.held_up = True
    count, waited = looks(machine, 1.0, "S")
    assert count * TICK == pytest.approx(LAST_RESORT, rel=0.01) and waited == 0.0


def test_a_look_that_comes_late_counts_as_one(machine):
    count, waited = looks(machine, 1.0, "S", every=5.0)
    assert waited <= 1.0 + WAITING + 2 * TICK and count >= (1.0 + WAITING) / TICK


def test_times_are_those_of_the_process():
    own = process_times(os.getpid())
    assert own.state == "R" and own.running > 0.0 and own.queued >= 0.0
    assert process_times(2**22 + 1) is None


THREAD = """
import sys, threading, time
computed = threading.Event()
def work():
    while time.thread_time() < 0.3:
        pass
    computed.set()
    if sys.argv[1] == "ends":
        return
    while True:
        pass
worker = threading.Thread(target=work)
worker.start()
computed.wait()
if sys.argv[1] == "ends":
    worker.join()
print(flush=True)
threading.Event().wait() if sys.argv[1] == "ends" else worker.join()
"""


@pytest.mark.parametrize(("thread", "state"), [("computes", "R"), ("ends", "S")])
def test_what_another_thread_computes_is_not_waited_for(thread, state):
    """The main thread sleeps until it has ended, and the seconds of a core that it had stay counted."""
    with subprocess.Popen([sys.executable, "-c", THREAD, thread], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            until(lambda: process_times(process.pid).state == state)
            assert process_times(process.pid).running >= 0.3
        finally:
            process.kill()


@pytest.mark.parametrize("sandbox", [None, pytest.param(bubblewrap.SUBMISSION, marks=IN_SANDBOX)])
def test_a_child_that_sleeps_is_ended(monkeypatch, sandbox):
    """Also in a sandbox, where its number is another: without it only the last resort would end it."""
    monkeypatch.setattr(call_clock, "WAITING", 0.2)
    child = ChildProcess(DEFAULT_MODEL, sandbox)
    with pytest.raises(ChildEnded) as ended:
        child.ask({"kind": "load", "filename": "kernel.py"}, SLEEPS, 0.2)
    assert (ended.value.how, ended.value.detail) == ("time", "0.2 s")
    assert child.seconds_waiting > 0.2


@pytest.mark.parametrize("sandbox", [None, pytest.param(bubblewrap.SUBMISSION, marks=IN_SANDBOX)])
def test_what_a_child_computes_is_counted(sandbox):
    child = ChildProcess(DEFAULT_MODEL, sandbox)
    try:
        before = child.seconds_of_a_core
        work = b"import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end:\n    pass\n"
        child.ask({"kind": "load", "filename": "kernel.py"}, work, 60.0)
        assert child.seconds_of_a_core - before >= 0.25
    finally:
        child.end()


def test_a_child_that_gets_no_core_for_longer_than_its_limit_is_not_at_fault(monkeypatch):
    """It is stopped, which /proc is made to show as waiting for a core, until it was looked at often enough."""
    child = ChildProcess(DEFAULT_MODEL)
    enough = (0.2 + WAITING) / TICK + 20
    seen = 0

    def queued(pid: int) -> ProcessTimes:
        nonlocal seen
        seen += 1
        if seen == enough:
            os.kill(child._pid, signal.SIGCONT)
        return ProcessTimes(1.0, min(seen, enough) * TICK, "R")

    monkeypatch.setattr(call_clock, "process_times", queued)
    try:
        os.kill(child._pid, signal.SIGSTOP)
        answer, _ = child.ask({"kind": "load", "filename": "kernel.py"}, b"X = 1\n", 0.2)
        assert answer["kind"] == "loaded" and seen >= enough and child.seconds_waiting == 0.0
    finally:
        child.end()
