"""The process that imports torch once for all nurseries: what they share, and what must not depend on it."""

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
from grader.processes.triton_forkserver_client import _shared, shared_nursery
from grader.processes.faults import MachineFault
from grader.processes.torch_forkserver_client import shared_zygote

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


def test_both_nurseries_of_a_process_come_from_one_import_of_torch():
    said = told("""
children = [ChildProcess(), ChildProcess(MODELS["sm_90"])]
zygote = shared_zygote()
print(len(set(zygote.forked)), {parent(pid) for pid in zygote.forked} == {os.getpid()})
print([child.loaded for child in children], {parent(child._pid) == os.getpid() for child in children})
""")
    assert said == ["2 True", "[False, False] {True}"]


def test_no_process_of_a_submissions_knows_the_environment_of_ours():
    """What a process was started with stays readable in /proc, whatever it changes later."""
    said = told(
        """
child = ChildProcess()
for pid in (child._pid, *shared_zygote().forked, shared_zygote()._process.pid):
    print("of-ours" in Path(f"/proc/{pid}/environ").read_text())
""",
        SECRET="of-ours",
    )
    assert said == ["False"] * 3


def test_a_nursery_outlives_the_zygote_and_the_next_one_gets_another():
    said = told("""
first = ChildProcess()
gone = shared_zygote()
gone._process.kill()
gone._process.wait()
again, other = ChildProcess(), ChildProcess(MODELS["sm_90"])
print(len(_shared), shared_nursery() is again._nursery is first._nursery, shared_zygote() is not gone)
""")
    assert said == ["2 True True"]


def test_a_nursery_that_was_killed_is_replaced_from_the_same_zygote():
    said = told("""
import signal, time
first, zygote = ChildProcess(), shared_zygote()
os.kill(zygote.forked[0], signal.SIGKILL)
while first._nursery.alive:
    time.sleep(0.01)
second = ChildProcess()
print(second._nursery is not first._nursery, shared_zygote() is zygote, len(zygote.forked))
""")
    assert said == ["True True 2"]


@pytest.mark.parametrize("whom", ["nursery", "zygote and nursery"])
def test_one_that_was_stopped_does_not_stay_behind(whom):
    """A submission may send signals to whatever process of this user it finds."""
    said = told(f"""
import signal
child, zygote = ChildProcess(), shared_zygote()
for pid in zygote.forked + [zygote._process.pid] * {whom != "nursery"}:
    os.kill(pid, signal.SIGSTOP)
print(*zygote.forked, zygote._process.pid, child._nursery.folder)
""")
    *pids, folder = said[0].split()
    assert not [pid for pid in pids if Path("/proc", pid).exists()] and not Path(folder).exists()


def test_a_process_that_is_killed_leaves_neither_zygote_nor_nursery():
    script = "child = ChildProcess(); zygote = shared_zygote()\n"
    script += "print(*zygote.forked, zygote._process.pid, flush=True); sys.stdin.read()"
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
    """torch fails in the zygote, Triton in the nursery."""
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
