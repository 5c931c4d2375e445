"""The fence around a process that works on what others wrote, closed by that process itself before it does.

Three parts of Linux hold it, each as far as it is there: capabilities are given up, Landlock keeps files, and seccomp
system calls. None of them can be undone, and all that the process starts is inside as well.
"""

from __future__ import annotations

import os
from pathlib import Path

from grader.child import capabilities, landlock, seccomp
from grader.wire.fence import Fence


def close_fence(own: Path) -> Fence:
    """Closes it, with `own` for the only folder to write in. Returns what holds."""
    given_up = capabilities.drop()
    abi = landlock.close(own, Path(os.devnull))
    return Fence(abi, seccomp.close(), given_up)
