"""Samples of speed that an unchanged kernel gave in earlier runs: the next run goes on where the last run stopped.

Without them a kernel just below its gate could be run again until noise lets it pass. They lie with files that can be
made again: if they are lost, or cannot be written, the next run begins anew.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import math
from pathlib import Path

from grader.files import write_whole
from grader.progress.progress import STATE_FOLDER, state_folder

KERNELS = 20  # of an exercise that are remembered: the latest


class EarlierSamples:
    """The shares of the anchor's speed that a learner's submission has reached in an exercise of the course at `root`.

    A submission stays the same if only comments and blank lines change.
    """

    def __init__(self, root: Path, exercise: str, submission: ast.Module) -> None:
        self._root, self._name, self._text = root, f"samples/{exercise}.json", ast.dump(submission)

    def of(self, measured: str) -> list[float]:
        """Returns the shares that are kept for `measured`: the call and the GPU, in any words."""
        return self._read().get(self._key(measured), [])

    def keep(self, measured: str, shares: list[float]) -> None:
        """Keeps these shares instead of the earlier shares; [] removes them. Nothing is raised if that fails."""
        key = self._key(measured)
        others = {other: samples for other, samples in self._read().items() if other != key}
        latest = dict(list((others | ({key: shares} if shares else {})).items())[-KERNELS:])
        with contextlib.suppress(OSError):
            path = state_folder(self._root) / self._name
            path.parent.mkdir(exist_ok=True)
            write_whole(path, json.dumps(latest) + "\n")

    def _read(self) -> dict[str, list[float]]:
        try:
            data = json.loads((self._root / STATE_FOLDER / self._name).read_text(encoding="utf-8"))
            return {key: [float(share) for share in shares if 0 < share < math.inf] for key, shares in data.items()}
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return {}

    def _key(self, measured: str) -> str:
        return hashlib.sha256(f"{measured}\n{self._text}".encode()).hexdigest()
