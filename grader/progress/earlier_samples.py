"""Samples of speed that an unchanged kernel gave in earlier runs: another run goes on where the last one stopped.

Without them a kernel just below its gate could be run again until noise lets it pass. They lie with what can be made
again: if they are lost, or cannot be written, the next run begins anew.
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

KERNELS = 20  # of an exercise that are remembered: the latest ones


class EarlierSamples:
    """Of a learner's own submission for an exercise of the course at `root`: shares of the anchor's speed.

    Comments and blank lines make it no other submission.
    """

    def __init__(self, root: Path, exercise: str, submission: ast.Module) -> None:
        self._root, self._name, self._text = root, f"samples/{exercise}.json", ast.dump(submission)

    def of(self, measured: str) -> list[float]:
        """`measured`: what was measured and on what, in any words."""
        return self._read().get(self._key(measured), [])

    def keep(self, measured: str, shares: list[float]) -> None:
        """In place of those that were there; none forgets them."""
        key = self._key(measured)
        others = {other: found for other, found in self._read().items() if other != key}
        latest = dict(list((others | ({key: shares} if shares else {})).items())[-KERNELS:])
        with contextlib.suppress(OSError):
            path = state_folder(self._root) / self._name
            path.parent.mkdir(exist_ok=True)
            write_whole(path, json.dumps(latest) + "\n")

    def _read(self) -> dict[str, list[float]]:
        try:
            found = json.loads((self._root / STATE_FOLDER / self._name).read_text(encoding="utf-8"))
            return {key: [float(share) for share in shares if 0 < share < math.inf] for key, shares in found.items()}
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return {}

    def _key(self, measured: str) -> str:
        return hashlib.sha256(f"{measured}\n{self._text}".encode()).hexdigest()
