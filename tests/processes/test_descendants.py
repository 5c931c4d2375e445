"""What a submission starts is counted while it runs, and ended with it, whatever it does to hide."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.gpu.models import DEFAULT_MODEL
from grader.processes import bubblewrap
from grader.processes.child import ChildProcess
from grader.processes.descendants import MOST_TASKS, own_children, seconds_of_a_core, started_by
from grader.processes.faults import ChildEnded
from grader.processes.triton_forkserver_client import shared_triton_fork_server
from tests.conftest import ROOT
from tests.waiting import NEVER, until

# A process that does what it can to be nobody's: a session, a group and a parent of its own, no folder, no environment,
# no descriptor, no signal that it minds; at last another program under another name.
HIDES = """
import ctypes, os, signal
def hide():
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    libc = ctypes.CDLL(None)
    libc.prctl(36, 0, 0, 0, 0)
    libc.setsid()
    libc.setpgid(0, 0)
    os.chdir("/")
    os.closerange(0, 1024)
def twice_forked(act):
    if os.fork() == 0:
        hide()
        if os.fork() == 0:
            hide()
            act()
        os._exit(0)
"""
SLEEPS = f"{HIDES}\ntwice_forked(lambda: os.execve('/bin/sleep', ['nobody', '86400'], {{}}))\n"
# Always gone before anybody looks: each process forks the next one and ends.
FLEES = f"""{HIDES}
def flee():
    while True:
        if os.fork():
            os._exit(0)
for _ in range(4):
    twice_forked(flee)
"""


@pytest.fixture(params=["default", "strict"])
def sandbox(request) -> int | None:
    if request.param == "strict" and bubblewrap.missing():
        pytest.skip(bubblewrap.missing())
    return bubblewrap.SUBMISSION if request.param == "strict" else None


def load(child: ChildProcess, text: str) -> None:
    answer, _ = child.ask({"kind": "load", "filename": "kernel.py"}, text.encode(), NEVER)
    assert answer["error"] is None


@pytest.mark.parametrize("text", [SLEEPS, FLEES, SLEEPS * 8 + FLEES], ids=["sleeps", "flees", "both"])
def test_nothing_is_left_of_it(sandbox, text):
    """Whoever is left becomes this process's child, for that adopts orphans."""
    shared_triton_fork_server(DEFAULT_MODEL, sandbox)
    ChildProcess(DEFAULT_MODEL, sandbox).end()
    before = set(own_children())
    child = ChildProcess(DEFAULT_MODEL, sandbox)
    load(child, text)
    until(lambda: child.started.processes, lambda: child.started)
    child.end()
    assert set(own_children()) <= before
    assert sandbox is not None or group(child._pid) == []


def group(leader: int) -> list[str]:
    """Returns what Linux tells of the processes of a group that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text()
        except OSError:
            continue
        state, _, of_group = stat.rpartition(")")[2].split()[:3]
        if int(of_group) == leader and state != "Z":
            found.append(stat)
    return found


def test_a_child_that_ended_itself_leaves_nothing_either():
    before = set(own_children()) | {os.getpid()}
    child = ChildProcess(DEFAULT_MODEL)
    with pytest.raises(ChildEnded) as ended:
        load(child, f"{SLEEPS}\nos._exit(7)")
    assert (ended.value.how, ended.value.detail) == ("exit", "7")
    child.end()
    shared = set(own_children()) - before
    assert all(started_by(pid).processes == 0 for pid in shared) and group(child._pid) == []


def test_orphans_are_counted_too(sandbox):
    child = ChildProcess(DEFAULT_MODEL, sandbox)
    try:
        load(child, SLEEPS)
        until(lambda: child.started.processes == 2, lambda: child.started)  # the one between them has ended
    finally:
        child.end()


MANY_PROCESSES = f"""
import os, signal
for _ in range({2 * MOST_TASKS}):
    if os.fork() == 0:
        signal.pause()
"""
THREADS = f"""
import threading
never = threading.Event()
threading.stack_size(1 << 16)
for _ in range({2 * MOST_TASKS}):
    threading.Thread(target=never.wait, daemon=True).start()
never.wait()
"""
MANY_THREADS = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {THREADS!r}])"  # here none may start


@pytest.mark.parametrize("text", [MANY_PROCESSES, MANY_THREADS], ids=["processes", "threads"])
def test_too_many_end_the_child(sandbox, text):
    child = ChildProcess(DEFAULT_MODEL, sandbox)
    with pytest.raises(ChildEnded) as ended:
        load(child, f"{text}\nwhile True:\n    __import__('time').sleep(1)")
    assert (ended.value.how, ended.value.detail) == ("processes", str(MOST_TASKS))


def test_too_many_between_two_calls_end_it_too():
    child = ChildProcess(DEFAULT_MODEL)
    load(child, f"import os, time\nif os.fork() == 0:\n    {MANY_PROCESSES.strip().replace(chr(10), chr(10) + '    ')}")
    until(lambda: child._too_many)
    with pytest.raises(ChildEnded) as ended:
        load(child, "")
    assert ended.value.how == "processes"


def test_a_killed_parent_leaves_nothing_of_it():
    script = (
        "import sys; from grader.gpu.models import DEFAULT_MODEL; from grader.processes.child import ChildProcess\n"
        "child = ChildProcess(DEFAULT_MODEL)\n"
        f"child.ask({{'kind': 'load', 'filename': 'kernel.py'}}, {SLEEPS!r}.encode(), 60)\n"
        "print(child._pid, flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script]
    parent = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    until(lambda: len(group(child)) == 2, lambda: group(child))
    parent.kill()
    parent.wait()
    until(lambda: not group(child), lambda: group(child))


def test_what_it_has_started_counts_with_its_seconds_of_a_core_and_after_its_end():
    shell = ["/bin/sh", "-c", f"{sys.executable} -c 'while True: pass' & echo $!; wait; read never"]
    parent = subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        busy = int(parent.stdout.readline())
        until(lambda: seconds_of_a_core(parent.pid) > 0.5)
        os.kill(busy, signal.SIGKILL)
        until(lambda: not started_by(parent.pid).processes)
        ended = seconds_of_a_core(parent.pid)
        assert ended > 0.5 and seconds_of_a_core(parent.pid) == ended  # it waits
    finally:
        parent.communicate("\n")


def test_a_process_that_is_not_there_has_started_nothing():
    assert seconds_of_a_core(1 << 30) == 0
    assert started_by(None).tasks == started_by(1 << 30).tasks == 0
