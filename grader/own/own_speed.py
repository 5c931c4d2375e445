"""The speed of one's own kernel that is right: asked of the process that times it, and said in a sentence."""

from __future__ import annotations

import json
import os
import subprocess
from tempfile import gettempdir
from typing import Any

from grader.own.timing_process import COMPILED
from grader.processes.environment import PATIENT, python_calling
from grader.processes.torch_forkserver_client import clean_environment

MOST_SECONDS = 300  # of real time: torch.compile takes a minute
GPUS = "CUDA_VISIBLE_DEVICES"
NAMES = {"copy": "a copy of as many bytes", "matmul": "cuBLAS", "torch": "torch", COMPILED: "torch.compile"}


def speed_of(request: dict[str, Any]) -> dict[str, Any]:
    """Returns what the process that times has measured, or {"why", "next"} where it has not."""
    command = python_calling("grader.own.timing_process", collects=False)
    environment = {**clean_environment(gettempdir()), **PATIENT}
    del environment[GPUS]  # which is there to keep a child from the GPU
    if GPUS in os.environ:
        environment[GPUS] = os.environ[GPUS]
    try:
        done = subprocess.run(
            command, input=json.dumps(request).encode(), capture_output=True, timeout=MOST_SECONDS, cwd="/",
            env=environment,
        )  # fmt: skip
        return dict(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return {"why": f"The kernel was not timed: it took more than {MOST_SECONDS} s.", "next": "state smaller sizes."}
    except ValueError:
        return {"why": f"The process that times has ended (exit status {done.returncode}).", "next": "course doctor"}


def speed_words(speed: dict[str, Any]) -> list[str]:
    """Returns the lines of a report about the speed."""
    if "why" in speed:
        return [f"{speed['why']} {speed['next'][:1].upper()}{speed['next'][1:]}"]
    shares = [f"{share:.2f} of the speed of {NAMES[name]}" for name, share in speed["shares"].items()]
    lines = [f"Speed on {speed['gpu']}, {speed['case']}: {_duration(speed['seconds']['kernel'])}; {', '.join(shares)}."]
    return lines + [f"{NAMES[name]} was not timed: {why}." for name, why in speed["left_out"].items()]


def _duration(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"
