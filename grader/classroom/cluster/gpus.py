"""The GPUs of this machine that this process may use."""

from __future__ import annotations

import os

from grader.gpu.nvml import gpus


def identifiers() -> list[str]:
    """Returns the UUID of each GPU that this process may use, in the order of CUDA_VISIBLE_DEVICES where it is set."""
    found = {gpu.uuid: str(gpu.index) for gpu in gpus()}
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        return list(found)
    wanted = [name.strip() for name in allowed.split(",") if name.strip()]
    return [uuid for name in wanted for uuid, index in found.items() if name == index or uuid.startswith(name)]
