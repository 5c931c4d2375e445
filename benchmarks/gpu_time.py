"""How long a call takes on the GPU, without the time that the host needs to launch it. Needs a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch

HEAD_START = 2_000_000  # cycles, about a millisecond: the host prepares its launches while the GPU still waits


def milliseconds(run: Callable[[], object]) -> float:
    """Returns the milliseconds between two events around one call, in which the GPU never waits for the host."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(HEAD_START)
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)
