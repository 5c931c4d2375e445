"""Who may use a GPU when, between processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from grader.gpu.lock import GpuBusy, gpu_held
from tests.conftest import ROOT
from tests.waiting import NEVER

UUID = f"test-{os.getpid()}"
HOLD = (
    "import sys; from grader.gpu.lock import gpu_held\n"
    "with gpu_held(sys.argv[1], sys.argv[2] == 'alone'): print('held', flush=True); sys.stdin.readline()"
)


@pytest.fixture
def holder():
    """Starts processes that hold the lock until they are told to leave, or killed."""
    started = []

    def hold(how: str) -> subprocess.Popen:
        command = [sys.executable, "-c", HOLD, UUID, how]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def test_checks_share_a_gpu_and_keep_a_measurement_out(holder):
    holder("shared")
    with gpu_held(UUID, alone=False, limit=0.1):
        pass
    with pytest.raises(GpuBusy, match="another judge"), gpu_held(UUID, alone=True, limit=0.1):
        pass


def test_a_measurement_keeps_all_others_out_until_it_ends(holder):
    process = holder("alone")
    with pytest.raises(GpuBusy), gpu_held(UUID, alone=False, limit=0.1):
        pass
    process.stdin.write("leave\n")
    process.stdin.flush()
    with gpu_held(UUID, alone=False, limit=NEVER):
        pass


def test_the_lock_of_a_killed_process_is_free(holder):
    holder("alone").kill()
    with gpu_held(UUID, alone=True, limit=NEVER):
        pass
