"""Finds workers that give nothing but faults while others work: a lost GPU, a full disk, a broken installation."""

from __future__ import annotations

from collections import Counter

MOST_SICK = 3  # faulty results in a row


class Health:
    """Counts each worker's faults in a row. No worker has to leave while none of the others works well."""

    def __init__(self) -> None:
        self._sick: Counter[str] = Counter()
        self._well: set[str] = set()

    def should_leave(self, worker: str, is_sick: bool) -> bool:
        """Notes whether a result of `worker` was sick, and returns whether the worker should get no more work."""
        if not is_sick:
            self._sick[worker] = 0
            self._well.add(worker)
            return False
        self._sick[worker] += 1
        self._well.discard(worker)
        return self._sick[worker] >= MOST_SICK and bool(self._well)
