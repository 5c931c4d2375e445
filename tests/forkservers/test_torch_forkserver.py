"""The process that imports torch once for all Triton fork servers: what they share, and what must not depend on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.waiting import NEVER, until

START = """
import os, sys
from pathlib import Path
from grader.processes.child import ChildProcess
from grader.gpu.models import MODELS
from grader.processes.triton_forkserver_client import _shared, shared_triton_fork_server
from grader.processes.faults import MachineFault
from grader.processes.torch_forkserver_client import shared_torch_fork_server

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
"""


def told(script: str, **environment: str) -> list[str]:
    """The lines that a process of our own prints; it must end in order."""
    done = subprocess.run(
        [sys.executable, "-c", START + script], cwd=ROOT, capture_output=True, text=True, timeout=NEVER,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """What one process says of its fork servers as it starts them, loses one and loses the other, by part."""
    lines = told(
        """
import signal, time
child, of_a_model = ChildProcess(), ChildProcess(MODELS["sm_90"])
torch_server = shared_torch_fork_server()
print("one import:", len(set(torch_server.forked)), {parent(pid) for pid in torch_server.forked} == {os.getpid()},
      child.loaded, of_a_model.loaded, parent(child._pid) == os.getpid() == parent(of_a_model._pid))
pids = child._pid, *torch_server.forked, torch_server._process.pid
print("know ours:", *["of-ours" in Path(f"/proc/{pid}/environ").read_text() for pid in pids])

os.kill(torch_server.forked[0], signal.SIGKILL)
while child._fork_server.alive:
    time.sleep(0.01)
second = ChildProcess()
is_another = second._fork_server is not child._fork_server
print("a Triton fork server was killed:", is_another, shared_torch_fork_server() is torch_server,
      len(torch_server.forked))

torch_server._process.kill()
torch_server._process.wait()
again, other = ChildProcess(), ChildProcess(MODELS["sm_80"])
server = shared_triton_fork_server()
print("the torch fork server was killed:", len(_shared), server is again._fork_server is second._fork_server,
      shared_torch_fork_server() is not torch_server)
""",
        SECRET="of-ours",
    )
    return dict(line.split(": ") for line in lines)


def test_both_triton_fork_servers_of_a_process_come_from_one_import_of_torch(said):
    assert said["one import"] == "2 True False False True"


def test_no_process_of_a_submissions_knows_the_environment_of_ours(said):
    """What a process was started with stays readable in /proc, whatever it changes later."""
    assert said["know ours"] == "False False False False"


def test_a_triton_fork_server_that_was_killed_is_replaced_from_the_same_torch_fork_server(said):
    assert said["a Triton fork server was killed"] == "True True 3"


def test_a_triton_fork_server_outlives_the_torch_fork_server_and_the_next_one_gets_another(said):
    assert said["the torch fork server was killed"] == "3 True True"


@pytest.mark.parametrize("whom", ["triton_server", "torch_server and triton_server"])
def test_one_that_was_stopped_does_not_stay_behind(whom):
    """A submission may send signals to whatever process of this user it finds."""
    said = told(f"""
import signal
child, torch_server = ChildProcess(), shared_torch_fork_server()
for pid in torch_server.forked + [torch_server._process.pid] * {whom != "triton_server"}:
    os.kill(pid, signal.SIGSTOP)
print(*torch_server.forked, torch_server._process.pid, child._fork_server.folder)
""")
    *pids, folder = said[0].split()
    assert not [pid for pid in pids if Path("/proc", pid).exists()] and not Path(folder).exists()


def test_a_process_that_is_killed_leaves_neither_torch_fork_server_nor_triton_fork_server():
    script = "child = ChildProcess(); torch_server = shared_torch_fork_server()\n"
    script += "print(*torch_server.forked, torch_server._process.pid, flush=True); sys.stdin.read()"
    ours = subprocess.Popen(
        [sys.executable, "-c", START + script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pids = ours.stdout.readline().split()
    ours.send_signal(signal.SIGKILL)
    ours.wait()
    assert len(pids) == 2
    until(lambda: not any(_runs(pid) for pid in pids), lambda: pids)


def _runs(pid: str) -> bool:
    """Where nobody hears of its end, it stays in the list of processes."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("broken", ["torch", "triton"])
def test_what_cannot_be_imported_is_told(tmp_path, broken):
    """torch fails in the torch fork server, Triton in the Triton fork server."""
    (tmp_path / f"{broken}.py").write_text(f"raise ImportError('{broken} is broken here')")
    said = told(f"""
sys.path.insert(0, {str(tmp_path)!r})
for _ in range(2):
    try:
        ChildProcess(MODELS["sm_90"])
    except MachineFault as fault:
        print(fault)
""")
    assert said == [f"torch and triton could not be imported: ImportError: {broken} is broken here"] * 2
