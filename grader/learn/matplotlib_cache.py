"""Keeps the caches of matplotlib in the course's own folder, not in the learner's home."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from grader.progress import progress


def keep_caches_in(root: Path) -> None:
    """Makes matplotlib keep its caches in the course at `root`, and log errors alone. Call it before the import."""
    with contextlib.suppress(OSError):
        os.environ.setdefault("MPLCONFIGDIR", str(progress.state_folder(root) / "matplotlib"))
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
