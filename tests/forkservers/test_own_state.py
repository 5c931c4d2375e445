"""A fork server that was tampered with from outside forks no more: its children would have what was done to it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from grader.forkservers.own_state import own_state
from grader.gpu.models import DEFAULT_MODEL
from grader.processes import bubblewrap
from grader.processes.child import ChildProcess
from grader.processes.torch_forkserver_client import shared_torch_fork_server
from grader.processes.triton_forkserver_client import _shared, shared_triton_fork_server


def lower_memory(pid: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_AS, (1 << 40, 1 << 40))


def lower_files(pid: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def lower_priority(pid: int) -> None:
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid) + 1)


def lower_class(pid: int) -> None:
    os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))


def take_a_core(pid: int) -> None:
    os.sched_setaffinity(pid, set(list(os.sched_getaffinity(pid))[1:]))


TAMPERINGS = [lower_memory, lower_files, lower_priority, lower_class]
TAMPERINGS += [take_a_core] * (len(os.sched_getaffinity(0)) > 1)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def server_of(sandbox: int | None) -> int:
    """Returns the number of the process that forks the children that record, once it has forked one."""
    child = ChildProcess(DEFAULT_MODEL, sandbox)
    try:
        return parent(child._pid_here) if sandbox is not None else shared_torch_fork_server().forked[-1]
    finally:
        child.end()


def state_of(pid: int) -> tuple:
    """Returns what a child has of its server; the limits that it sets itself left out."""
    limits = [resource.prlimit(pid, limit) for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_STACK)]
    memory = resource.prlimit(pid, resource.RLIMIT_AS)[1] < 1 << 39, resource.prlimit(pid, resource.RLIMIT_FSIZE)[0] > 0
    return limits, memory, os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid), os.sched_getaffinity(pid)


# Each server looks at itself with the same function, of which the last test asks each of these.
@pytest.mark.parametrize(
    "tamper, isolation", [(TAMPERINGS[0], "default"), (TAMPERINGS[-1], "default"), (lower_files, "strict")]
)
def test_the_next_child_comes_from_another_server(tamper, isolation):
    if isolation == "strict" and bubblewrap.missing():
        pytest.skip(bubblewrap.missing())
    sandbox = bubblewrap.SUBMISSION if isolation == "strict" else None
    _shared.pop((DEFAULT_MODEL, sandbox), None)  # so that the server is the last one that was forked
    first = ChildProcess(DEFAULT_MODEL, sandbox)
    state = state_of(first._pid_here)
    first.end()
    server, triton_server = server_of(sandbox), shared_triton_fork_server(DEFAULT_MODEL, sandbox)
    tamper(server)
    child = ChildProcess(DEFAULT_MODEL, sandbox)
    try:
        assert child._fork_server is not triton_server and state_of(child._pid_here) == state
    finally:
        child.end()


def test_the_process_that_imports_torch_looks_too():
    ChildProcess(DEFAULT_MODEL).end()
    torch_server = shared_torch_fork_server()
    lower_files(torch_server._process.pid)
    _shared.pop((DEFAULT_MODEL, None))  # so that the next child wants another one forked
    child = ChildProcess(DEFAULT_MODEL)
    child.end()
    assert shared_torch_fork_server() is not torch_server


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda act: act.__name__)
def test_each_change_is_seen(tamper):
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        before = own_state()
        tamper(0)
        os.write(writing, b"changed" if own_state() != before and own_state() == own_state() else b"the same")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reading, 100) == b"changed"
