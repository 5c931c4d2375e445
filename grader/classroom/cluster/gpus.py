"""The GPUs of this machine: their UUIDs, and how busy they are."""

from __future__ import annotations

import os
import shutil
import subprocess


def identifiers() -> list[str]:
    """Returns the UUID of each GPU that this process may use, in the order of CUDA_VISIBLE_DEVICES where it is set."""
    found = dict(row for row in _asked("uuid,index") if len(row) == 2)
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        return list(found)
    wanted = [name.strip() for name in allowed.split(",") if name.strip()]
    return [uuid for name in wanted for uuid, index in found.items() if name == index or uuid.startswith(name)]


def busy() -> list[int]:
    """Returns for each GPU the share of the last second in which it worked, in percent; [] where it is not known."""
    return [int(share) for (share, *_) in _asked("utilization.gpu") if share.isdecimal()]


def _asked(names: str) -> list[list[str]]:
    """Returns nvidia-smi's values of these fields, a row per GPU; [] where there is no nvidia-smi, or it fails."""
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
