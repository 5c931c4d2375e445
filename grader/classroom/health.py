"""Which workers give nothing but faults while others work: a GPU that fell off, a full disk, a broken installation."""

from __future__ import annotations

from collections import Counter

MOST_SICK = 3  # results in a row


class Health:
    """Hears of each result. A machine on which all workers fail is not for this to mend."""

    def __init__(self) -> None:
        self._sick: Counter[str] = Counter()
        self._well: set[str] = set()

    def should_leave(self, worker: str, is_sick: bool) -> bool:
        """Told that `worker` gave a result, good or sick: whether it had better give no more."""
        if not is_sick:
            self._sick[worker] = 0
            self._well.add(worker)
            return False
        self._sick[worker] += 1
        self._well.discard(worker)
        return self._sick[worker] >= MOST_SICK and bool(self._well)
