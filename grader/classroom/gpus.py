"""The GPUs of this machine: which there are, and how busy."""

from __future__ import annotations

import os
import shutil
import subprocess


def identifiers() -> list[str]:
    """The UUID of each GPU that this process may use."""
    found = dict(row for row in _asked("uuid,index") if len(row) == 2)
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        return list(found)
    wanted = [name.strip() for name in allowed.split(",") if name.strip()]
    return [uuid for name in wanted for uuid, index in found.items() if name == index or uuid.startswith(name)]


def busy() -> list[int]:
    """Of each GPU the share of the last second in which it worked, in percent; empty where it cannot be told."""
    return [int(share) for (share, *_) in _asked("utilization.gpu") if share.isdecimal()]


def _asked(names: str) -> list[list[str]]:
    """A row per GPU of what nvidia-smi says; nothing where there is none."""
    command = shutil.which("nvidia-smi")
    if not command:
        return []
    query = [command, f"--query-gpu={names}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [] if done.returncode else done.stdout.splitlines()
    return [[cell.strip() for cell in row.split(",")] for row in rows]
